#include "worker/daemon/incarnation.h"

#include <gtest/gtest.h>

#include "base/durable_write.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

TEST(Incarnation, RisesWithEachLifeAlsoIfTheClockWentBack) {
  PosixFileSystem files;
  const TemporaryDirectory folder;
  const std::string directory = folder.Child("data");
  EXPECT_EQ(*NextIncarnation(files, directory, "worker-0", 1000), 1000u);
  EXPECT_EQ(*NextIncarnation(files, directory, "worker-0", 900), 1001u);
  EXPECT_EQ(*NextIncarnation(files, directory, "worker-0", 900), 1002u);
  EXPECT_EQ(*NextIncarnation(files, directory, "worker-1", 900), 900u);
  EXPECT_EQ(*NextIncarnation(files, directory, "worker-0", 5000), 5000u);
}

TEST(Incarnation, AFileThatIsNoNumberIsRefused) {
  PosixFileSystem files;
  const TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileDurably(files, folder.Child("w.incarnation"), AsBytes("seven\n")).ok());
  const Status damaged = NextIncarnation(files, folder.path(), "w", 1).status();
  EXPECT_EQ(damaged.code(), StatusCode::kDataLoss);
  EXPECT_NE(Message(damaged).find("remove the file"), std::string::npos) << damaged;
}

}  // namespace
}  // namespace troupe
