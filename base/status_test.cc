#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace troupe {
namespace {

TEST(Status, AnnotatePutsThePrefixBeforeTheMessageAndKeepsTheCode) {
  const Status status = Annotate(NotFound("file {}", "a"), "open");
  EXPECT_EQ(ToString(status), "NOT_FOUND: open: file a");
  EXPECT_TRUE(Annotate(OkStatus(), "open").ok());
}

TEST(Status, AFullDiskIsResourceExhausted) {
  EXPECT_EQ(ErrnoStatus(ENOSPC, "write").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(ErrnoStatus(ENOENT, "open x")), "open x: No such file or directory");
}

Status ReturnsEarly(const StatusOr<int>& input, int& seen) {
  TROUPE_ASSIGN_OR_RETURN(seen, input);
  return OkStatus();
}

TEST(Status, AssignOrReturnPassesTheErrorOn) {
  int seen = 0;
  EXPECT_TRUE(ReturnsEarly(3, seen).ok());
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(ReturnsEarly(Aborted("x"), seen).code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace troupe
