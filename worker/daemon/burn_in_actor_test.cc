#include "worker/daemon/burn_in_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <memory>

#include "base/temporary_directory.h"
#include "checkpoint/format/folder.h"
#include "worker/daemon/testing/session_probe.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr int kLimitMilliseconds = 60'000;

class BurnInActorTest : public ::testing::Test {
 protected:
  BurnInOptions Options(const std::string& executable) {
    return {.executable = executable,
            .devices = "cpu:2",
            .name = "worker-0",
            .log_directory = directory_.path()};
  }
  Address MakeRun(const std::string& executable) { return MakeRun(Options(executable)); }
  Address MakeRun(BurnInOptions options) {
    return probe_.Own(MakeBurnInActor(std::move(options), probe_.gate()));
  }
  void Start(Address run, v1::BurnIn request) {
    ASSERT_TRUE(probe_.Send(run, WantBurnIn{std::move(request)}).ok());
  }
  void Stop(Address run) { ASSERT_TRUE(probe_.Send(run, WantBurnIn{}).ok()); }
  // A program that ignores its arguments and SIGTERM and does not end by itself.
  std::string ProgramThatHangs() {
    const std::string path = directory_.path() + "/hangs";
    std::ofstream(path) << "#!/bin/sh\ntrap '' TERM\nexec sleep 3600\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  // Returns the answer to `request`; fails the test if none comes within the limit.
  v1::BurnInDone Await(uint64_t request) {
    while (!HasFailure()) {
      const v1::BurnInDone done = probe_.log().NextOf<session::BurnInEnded>().done;
      if (done.request() == request) return done;
    }
    return {};
  }

  static v1::BurnIn Request(uint64_t number, double seconds) {
    v1::BurnIn request;
    request.set_request(number);
    request.set_seconds(seconds);
    return request;
  }

  TemporaryDirectory directory_;
  SessionProbe probe_;
};

TEST_F(BurnInActorTest, FindsASoundHostSound) {
  const Address run = MakeRun(TROUPE_WORKER_BINARY);
  v1::BurnIn request = Request(7, 0);
  request.add_folders(directory_.path());
  PosixFileSystem files;
  ASSERT_TRUE(EstablishFolderId(files, directory_.path(), *RandomFolderId()).ok());
  Start(run, request);
  const v1::BurnInDone done = Await(7);
  EXPECT_TRUE(done.sound()) << done.reason();
}

TEST_F(BurnInActorTest, NamesTheFolderThatCannotBeWritten) {
  const Address run = MakeRun(TROUPE_WORKER_BINARY);
  v1::BurnIn request = Request(7, 0);
  request.add_folders(directory_.path() + "/gone");
  Start(run, request);
  const v1::BurnInDone done = Await(7);
  EXPECT_FALSE(done.sound());
  EXPECT_THAT(done.reason(), HasSubstr("/gone"));
}

TEST_F(BurnInActorTest, FindsTheEmptyPlaceOfAFolderThatIsNotMounted) {
  const Address run = MakeRun(TROUPE_WORKER_BINARY);
  v1::BurnIn request = Request(7, 0);
  request.add_folders(directory_.path());
  Start(run, request);
  const v1::BurnInDone done = Await(7);
  EXPECT_FALSE(done.sound());
  EXPECT_THAT(done.reason(), HasSubstr("not mounted"));
}

TEST_F(BurnInActorTest, TriesTheFolderOfTheIdentityThatItIsGivenAndNoOther) {
  PosixFileSystem files;
  const StatusOr<std::string> here = EstablishFolderId(files, directory_.path(), *RandomFolderId());
  ASSERT_TRUE(here.ok());
  EXPECT_TRUE(TryFolder(files, FolderIdPath(directory_.path(), *here), "w").ok());
  EXPECT_TRUE(TryFolder(files, directory_.path(), "w").ok()) << "none is known";
  const Status other = TryFolder(files, FolderIdPath(directory_.path(), *RandomFolderId()), "w");
  EXPECT_EQ(other.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(other)), HasSubstr("another disk, or none, is mounted"));
}

TEST_F(BurnInActorTest, ReportsWhatTheProcessReportsThatFindsAFault) {
  const Address run = MakeRun("/bin/false");
  Start(run, Request(1, 0));
  EXPECT_THAT(Await(1).reason(), HasSubstr("exit code 1"));
  const Address absent = MakeRun(directory_.path() + "/no-such-program");
  Start(absent, Request(2, 0));
  EXPECT_THAT(Await(2).reason(), HasSubstr("no-such-program"));
}

TEST_F(BurnInActorTest, IsOverAtOnceWhereTheDevicesAreWanted) {
  const Address run = MakeRun(TROUPE_WORKER_BINARY);
  Start(run, Request(1, 3600));
  Stop(run);
  EXPECT_FALSE(Await(1).sound());
  Start(run, Request(2, 3600));
  Start(run, Request(3, 0));
  EXPECT_FALSE(Await(2).sound());
  EXPECT_TRUE(Await(3).sound());
}

TEST_F(BurnInActorTest, AProcessThatDoesNotEndIsKilledAtTheLimit) {
  BurnInOptions options = Options(ProgramThatHangs());
  options.allowance = std::chrono::milliseconds(200);
  Start(MakeRun(options), Request(1, 0));
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

TEST_F(BurnInActorTest, AFolderThatHangsIsNamedAtTheLimitAndLeftBehind) {
  HungMount mount;
  BurnInOptions options = Options(TROUPE_WORKER_BINARY);
  options.allowance = std::chrono::milliseconds(500);
  options.stop_limit = std::chrono::milliseconds(50);
  options.try_folder = mount.Call();
  const Address run = MakeRun(options);
  v1::BurnIn request = Request(1, 0);
  request.add_folders("/hung");
  Start(run, request);
  EXPECT_THAT(Await(1).reason(), HasSubstr("did not end within 0.5 s: it is testing folder /hung"));
  probe_.End();  // does not wait for the call
}

TEST_F(BurnInActorTest, TheNextBurnInDoesNotWaitForAFolderThatHangs) {
  HungMount mount;
  BurnInOptions options = Options("/bin/false");
  options.stop_limit = std::chrono::milliseconds(50);
  options.try_folder = mount.Call();
  const Address run = MakeRun(options);
  v1::BurnIn request = Request(1, 0);
  request.add_folders("/hung");
  Start(run, request);
  mount.AwaitCall();
  Start(run, Request(2, 0));
  EXPECT_THAT(Await(1).reason(), HasSubstr("stopped"));
  EXPECT_THAT(Await(2).reason(), HasSubstr("exit code 1"));
}

TEST_F(BurnInActorTest, ARequestThatWaitsIsAnsweredWhenANewerOneReplacesIt) {
  HungMount mount;
  BurnInOptions options = Options("/bin/false");
  options.stop_limit = std::chrono::hours(1);
  options.try_folder = mount.Call();
  const Address run = MakeRun(options);
  v1::BurnIn request = Request(1, 0);
  request.add_folders("/hung");
  Start(run, request);
  mount.AwaitCall();
  Start(run, Request(2, 0));
  Start(run, Request(3, 0));
  EXPECT_EQ(Await(2).reason(), "stopped");
}

}  // namespace
}  // namespace troupe
