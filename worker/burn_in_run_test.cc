#include "worker/burn_in_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <optional>

#include "base/temporary_directory.h"
#include "checkpoint/folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr int kLimitMilliseconds = 60'000;

class BurnInRunTest : public ::testing::Test {
 protected:
  std::unique_ptr<BurnInRun> MakeRun(const std::string& executable) {
    return std::make_unique<BurnInRun>(BurnInOptions{.executable = executable,
                                                     .devices = "cpu:2",
                                                     .name = "worker-0",
                                                     .log_directory = directory_.path()},
                                       queue_);
  }
  // The answer to `request`; none within the limit is a failure.
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

}  // namespace
}  // namespace troupe
