#include "worker/executor/folder_fault.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/durable_write.h"
#include "base/failure_cause.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

TEST(FolderFault, IsOfAFolderThatMayBeAwayAndNotOfWhatIsThere) {
  struct Case {
    int error_number;
    StatusCode code;
  };
  for (const Case& is :
       {Case{ENOENT, StatusCode::kFailedPrecondition},
        Case{EACCES, StatusCode::kFailedPrecondition}, Case{EIO, StatusCode::kUnavailable},
        Case{ESTALE, StatusCode::kUnavailable}, Case{ENOTDIR, StatusCode::kUnavailable}}) {
    const Status error = ErrnoStatus(is.error_number, "open /m/x");
    const Status fault = FolderFault(error, "model.from");
    EXPECT_EQ(fault.code(), is.code) << fault;
    EXPECT_EQ(AttachedCause(fault), "STORAGE");
    EXPECT_EQ(Message(fault), fmt::format("model.from cannot be read: {}", Message(error)));
  }
  for (const Status& error : {InvalidArgument("x"), DataLoss("x"), OutOfRange("x")})
    EXPECT_TRUE(FolderFault(error, "model.from").ok()) << error;
  EXPECT_TRUE(FolderFault(WithCause(NotFound("x"), cause::kPathOutsideRoot), "model.from").ok());
  EXPECT_TRUE(FolderFault(OkStatus(), "model.from").ok());
}

TEST(FolderIsAway, WhereItIsAbsentOrEmptyOrCannotBeListed) {
  const TemporaryDirectory folder;
  PosixFileSystem files;
  const std::string path = folder.Child("m");
  EXPECT_TRUE(FolderIsAway(files, path));
  ASSERT_TRUE(files.MakeDirectory(path).ok());
  EXPECT_TRUE(FolderIsAway(files, path)) << "a mount point";
  ASSERT_TRUE(WriteFileDurably(files, path + "/x", AsBytes("x")).ok());
  EXPECT_FALSE(FolderIsAway(files, path));
  EXPECT_TRUE(FolderIsAway(files, path + "/x")) << "it is a file";
  FaultyFileSystem faulty(files);
  faulty.Add({.operation = FileOperation::kList, .path_contains = "/m", .error_number = ESTALE});
  EXPECT_TRUE(FolderIsAway(faulty, path));
}

}  // namespace
}  // namespace troupe
