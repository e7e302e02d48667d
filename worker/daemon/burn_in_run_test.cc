#include "worker/daemon/burn_in_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <memory>

#include "base/temporary_directory.h"
#include "checkpoint/format/folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr int kLimitMilliseconds = 60'000;

class BurnInRunTest : public ::testing::Test {
 protected:
  BurnInOptions Options(const std::string& executable) {
    return {.executable = executable,
            .devices = "cpu:2",
            .name = "worker-0",
            .log_directory = directory_.path()};
  }
  std::unique_ptr<BurnInRun> MakeRun(const std::string& executable) {
    return std::make_unique<BurnInRun>(Options(executable), queue_);
  }
  // A program that ignores its arguments and SIGTERM and does not end by itself.
  std::string ProgramThatHangs() {
    const std::string path = directory_.path() + "/hangs";
    std::ofstream(path) << "#!/bin/sh\ntrap '' TERM\nexec sleep 3600\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  // Returns the answer to `request`; fails the test if none comes within the limit.
  v1::BurnInDone Await(uint64_t request) {
    while (true) {
      pollfd polled = {queue_->descriptor(), POLLIN, 0};
      if (poll(&polled, 1, kLimitMilliseconds) != 1) {
        ADD_FAILURE() << "no answer to burn-in " << request;
        return {};
      }
      for (QueuedEvent& event : queue_->TakeAll()) {
        const v1::BurnInDone& done = std::get<session::BurnInEnded>(event).done;
        if (done.request() == request) return done;
      }
    }
  }

  static v1::BurnIn Request(uint64_t number, double seconds) {
    v1::BurnIn request;
    request.set_request(number);
    request.set_seconds(seconds);
    return request;
  }

  TemporaryDirectory directory_;
  std::shared_ptr<EventQueue> queue_ = std::make_shared<EventQueue>();
};

TEST_F(BurnInRunTest, FindsASoundHostSound) {
  const auto run = MakeRun(TROUPE_WORKER_BINARY);
  v1::BurnIn request = Request(7, 0);
  request.add_folders(directory_.path());
  PosixFileSystem files;
  ASSERT_TRUE(EstablishFolderId(files, directory_.path(), *RandomFolderId()).ok());
  run->Start(request);
  const v1::BurnInDone done = Await(7);
  EXPECT_TRUE(done.sound()) << done.reason();
}

TEST_F(BurnInRunTest, NamesTheFolderThatCannotBeWritten) {
  const auto run = MakeRun(TROUPE_WORKER_BINARY);
  v1::BurnIn request = Request(7, 0);
  request.add_folders(directory_.path() + "/gone");
  run->Start(request);
  const v1::BurnInDone done = Await(7);
  EXPECT_FALSE(done.sound());
  EXPECT_THAT(done.reason(), HasSubstr("/gone"));
}

TEST_F(BurnInRunTest, FindsTheEmptyPlaceOfAFolderThatIsNotMounted) {
  const auto run = MakeRun(TROUPE_WORKER_BINARY);
  v1::BurnIn request = Request(7, 0);
  request.add_folders(directory_.path());
  run->Start(request);
  const v1::BurnInDone done = Await(7);
  EXPECT_FALSE(done.sound());
  EXPECT_THAT(done.reason(), HasSubstr("not mounted"));
}

TEST_F(BurnInRunTest, TriesTheFolderOfTheIdentityThatItIsGivenAndNoOther) {
  PosixFileSystem files;
  const StatusOr<std::string> here = EstablishFolderId(files, directory_.path(), *RandomFolderId());
  ASSERT_TRUE(here.ok());
  EXPECT_TRUE(TryFolder(files, FolderIdPath(directory_.path(), *here), "w").ok());
  EXPECT_TRUE(TryFolder(files, directory_.path(), "w").ok()) << "none is known";
  const Status other = TryFolder(files, FolderIdPath(directory_.path(), *RandomFolderId()), "w");
  EXPECT_EQ(other.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(other)), HasSubstr("another disk, or none, is mounted"));
}

TEST_F(BurnInRunTest, SaysWhatTheProcessSaysThatFindsAFault) {
  const auto run = MakeRun("/bin/false");
  run->Start(Request(1, 0));
  EXPECT_THAT(Await(1).reason(), HasSubstr("exit code 1"));
  const auto absent = MakeRun(directory_.path() + "/no-such-program");
  absent->Start(Request(2, 0));
  EXPECT_THAT(Await(2).reason(), HasSubstr("no-such-program"));
}

TEST_F(BurnInRunTest, IsOverAtOnceWhereTheDevicesAreWanted) {
  const auto run = MakeRun(TROUPE_WORKER_BINARY);
  run->Start(Request(1, 3600));
  run->Stop();
  EXPECT_FALSE(Await(1).sound());
  run->Start(Request(2, 3600));
  run->Start(Request(3, 0));
  EXPECT_FALSE(Await(2).sound());
  EXPECT_TRUE(Await(3).sound());
}

TEST_F(BurnInRunTest, AProcessThatDoesNotEndIsKilledAtTheLimit) {
  BurnInOptions options = Options(ProgramThatHangs());
  options.allowance = std::chrono::milliseconds(200);
  BurnInRun run(options, queue_);
  run.Start(Request(1, 0));
  const v1::BurnInDone done = Await(1);
  EXPECT_FALSE(done.sound());
  EXPECT_THAT(done.reason(), HasSubstr("failed: it did not end within 0.2 s: its process"));
}

// A mount on which calls hang until the test ends, long after the burn-in was abandoned.
class HungMount {
 public:
  ~HungMount() { released_.set_value(); }
  std::function<Status(const std::string&)> Call() {
    return [entered = entered_, released = released_.get_future().share()](const std::string&) {
      entered->set_value();
      released.wait();
      return OkStatus();
    };
  }
  void AwaitCall() {
    const auto limit = std::chrono::milliseconds(kLimitMilliseconds);
    ASSERT_EQ(entered_->get_future().wait_for(limit), std::future_status::ready);
  }

 private:
  std::promise<void> released_;
  const std::shared_ptr<std::promise<void>> entered_ = std::make_shared<std::promise<void>>();
};

TEST_F(BurnInRunTest, AFolderThatHangsIsNamedAtTheLimitAndLeftBehind) {
  HungMount mount;
  BurnInOptions options = Options(TROUPE_WORKER_BINARY);
  options.allowance = std::chrono::milliseconds(500);
  options.stop_limit = std::chrono::milliseconds(50);
  options.try_folder = mount.Call();
  auto run = std::make_unique<BurnInRun>(options, queue_);
  v1::BurnIn request = Request(1, 0);
  request.add_folders("/hung");
  run->Start(request);
  EXPECT_THAT(Await(1).reason(), HasSubstr("did not end within 0.5 s: it is testing folder /hung"));
  run.reset();  // does not wait for the call
}

TEST_F(BurnInRunTest, TheNextBurnInDoesNotWaitForAFolderThatHangs) {
  HungMount mount;
  BurnInOptions options = Options("/bin/false");
  options.stop_limit = std::chrono::milliseconds(50);
  options.try_folder = mount.Call();
  BurnInRun run(options, queue_);
  v1::BurnIn request = Request(1, 0);
  request.add_folders("/hung");
  run.Start(request);
  mount.AwaitCall();
  run.Start(Request(2, 0));
  EXPECT_THAT(Await(1).reason(), HasSubstr("stopped"));
  EXPECT_THAT(Await(2).reason(), HasSubstr("exit code 1"));
}

}  // namespace
}  // namespace troupe
