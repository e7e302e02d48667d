#include "checkpoint/format/attempt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/failpoint.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

TEST(AttemptName, DistinguishesAttemptsFromOtherNames) {
  EXPECT_EQ(AttemptName(50, 2, 7, 123), "step-00000050-epoch-2-attempt-7-at-123");
  EXPECT_EQ(AttemptName(0, 2, 7, 123), "request-epoch-2-attempt-7-at-123");
  EXPECT_TRUE(IsAttemptName(AttemptName(123456789, 10, 1, 1764000000000000000)));
  EXPECT_TRUE(IsAttemptName(AttemptName(0, 2, 7, 1764000000000000000)));
  EXPECT_TRUE(IsAttemptName("step-00000050-epoch-2-attempt-7"));
  for (const char* name : {"", ".", "..", "step", "step-1", "step--epoch-1-attempt-1",
                           "step-1-epoch-1-attempt-", "step-1-epoch-1-attempt-1x",
                           "step-1-epoch-1-attempt-1-at-", "step-1-epoch-1-attempt-1-at-1x", "home",
                           "request-epoch-1", "step-1-epoch-1-attempt-1/.."}) {
    EXPECT_FALSE(IsAttemptName(name)) << name;
  }
}

class DeleteAttemptTest : public ::testing::Test {
 protected:
  DeleteAttemptTest() {
    TROUPE_CHECK_OK(MakeAttemptDirectory(files_, path_));
    for (const char* name : {"manifest.json", "rank-00000.safetensors", "a.tmp"}) {
      TROUPE_CHECK_OK(WriteFileDurably(files_, JoinPath(path_, name), AsBytes("x")));
    }
  }
  bool Exists(const std::string& path) { return files_.Stat(path, SymbolicLinks::kRefuse).ok(); }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
  const std::string path_ = folder_.Child("jobs/x/" + AttemptName(1, 1, 1, 1));
};

TEST_F(DeleteAttemptTest, RemovesTheDirectoryAndMayBeRepeated) {
  EXPECT_TRUE(DeleteAttempt(files_, path_).ok());
  EXPECT_FALSE(Exists(path_));
  EXPECT_TRUE(DeleteAttempt(files_, path_).ok());
  EXPECT_TRUE(DeleteAttempt(files_, folder_.Child("gone/step-1-epoch-1-attempt-1")).ok());
}

TEST_F(DeleteAttemptTest, TakesTheManifestAwayBeforeAnyShard) {
  FaultyFileSystem faulty(files_);
  faulty.Add({.operation = FileOperation::kRemove, .first_call = 2, .error_number = EIO});
  EXPECT_FALSE(DeleteAttempt(faulty, path_).ok());
  EXPECT_FALSE(Exists(JoinPath(path_, "manifest.json")));
  EXPECT_TRUE(Exists(JoinPath(path_, "rank-00000.safetensors")));
  EXPECT_TRUE(DeleteAttempt(files_, path_).ok());
}

TEST_F(DeleteAttemptTest, RefusesWhatIsNoAttemptAndRemovesNothing) {
  const std::string precious = folder_.Child("precious");
  TROUPE_CHECK_OK(files_.MakeDirectory(precious));
  TROUPE_CHECK_OK(WriteFileDurably(files_, JoinPath(precious, "f"), AsBytes("x")));
  EXPECT_EQ(DeleteAttempt(files_, precious).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Exists(JoinPath(precious, "f")));

  const std::string link = folder_.Child("step-1-epoch-1-attempt-2");
  ASSERT_EQ(symlink(precious.c_str(), link.c_str()), 0);
  EXPECT_EQ(DeleteAttempt(files_, link).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Exists(JoinPath(precious, "f")));

  ASSERT_EQ(symlink(precious.c_str(), JoinPath(path_, "link").c_str()), 0);
  EXPECT_EQ(DeleteAttempt(files_, path_).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Exists(JoinPath(path_, "manifest.json")));
}

TEST_F(DeleteAttemptTest, StopsAtItsFailpoints) {
  TROUPE_CHECK_OK(ArmFailpoints("checkpoint.delete.unlinked=error@1"));
  EXPECT_FALSE(DeleteAttempt(files_, path_).ok());
  EXPECT_FALSE(Exists(JoinPath(path_, "manifest.json")));
  EXPECT_TRUE(DeleteAttempt(files_, path_).ok());
  TROUPE_CHECK_OK(ArmFailpoints(""));
}

}  // namespace
}  // namespace troupe
