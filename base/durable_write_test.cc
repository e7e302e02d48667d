#include "base/durable_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

std::string PointOf(const std::string& set, const std::string& step) {
  return fmt::format("{}.{}", set, step);
}

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSets[] = {"file", "checkpoint.shard", "checkpoint.manifest"};
constexpr const char* kBeforeTheRename[] = {"created", "written", "synced"};
constexpr const char* kAfterTheRename[] = {"renamed", "durable"};

class DurableWrite : public ::testing::Test {
 protected:
  DurableWrite() { TROUPE_CHECK_OK(WriteFileDurably(files_, Path(), AsBytes("former"))); }
  ~DurableWrite() override { TROUPE_CHECK_OK(ArmFailpoints("")); }

  std::string Path(const std::string& name = "f") const { return folder_.Child(name); }
  std::string Contents(const std::string& name = "f") {
    const auto text = ReadFile(files_, Path(name), 1 << 20, SymbolicLinks::kRefuse);
    return text.ok() ? *text : ToString(text.status());
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto entries = files_.List(folder_.path());
    for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
    return names;
  }
  mode_t PermissionsOf(const std::string& name) {
    struct stat info {};
    EXPECT_EQ(stat(Path(name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

// Runs `body` in a child process, and returns whether a failpoint killed it.
bool DiesAt(const std::string& failpoint, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    TROUPE_CHECK_OK(ArmFailpoints(failpoint + "=kill"));
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

TEST_F(DurableWrite, EverySetHasAFailpointForEachStep) {
  std::vector<std::string> names;
  for (const FailpointName& point : AllFailpoints()) names.emplace_back(point.name);
  for (const std::string set : kSets) {
    for (const std::string step : kBeforeTheRename)
      EXPECT_THAT(names, Contains(PointOf(set, step)));
    for (const std::string step : kAfterTheRename) EXPECT_THAT(names, Contains(PointOf(set, step)));
  }
}

// A failing write leaves half of the bytes.
TEST_F(DurableWrite, AFaultOfTheDiskBeforeTheRenameLeavesTheFormerFile) {
  for (const FileOperation operation :
       {FileOperation::kCreate, FileOperation::kWrite, FileOperation::kSync, FileOperation::kClose,
        FileOperation::kRename}) {
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .error_number = EIO});
    EXPECT_THAT(ToString(WriteFileDurably(faulty, Path(), AsBytes("new"))), HasSubstr("injected"));
    EXPECT_EQ(Contents(), "former");
    EXPECT_LE(faulty.Calls(FileOperation::kSync, ""), 1);  // a failed fsync is never retried
  }
  EXPECT_THAT(Names(), ElementsAre("f", "f.tmp"));
  // The next write replaces what the failed ones left.
  EXPECT_TRUE(WriteFileDurably(files_, Path(), AsBytes("new")).ok());
  EXPECT_THAT(Names(), ElementsAre("f"));
}

TEST_F(DurableWrite, AFaultOfTheFoldersSyncIsReportedAndLeavesTheWholeNewFile) {
  FaultyFileSystem faulty(files_);
  faulty.Add({.operation = FileOperation::kSyncDirectory, .error_number = EIO});
  EXPECT_THAT(ToString(WriteFileDurably(faulty, Path(), AsBytes("new"))), HasSubstr("injected"));
  EXPECT_EQ(Contents(), "new");
}

TEST_F(DurableWrite, AnErrorOrADeathAtAFailpointLeavesTheFormerFileUntilTheRename) {
  for (const std::string set : kSets) {
    const auto write = [&] {
      return WriteFileDurably(files_, {Path(), AsBytes("new")}, {.failpoints = set});
    };
    const auto expect_error_at = [&](const std::string& point) {
      TROUPE_CHECK_OK(ArmFailpoints(point + "=error"));
      EXPECT_EQ(Message(write()), "failpoint " + point);
      TROUPE_CHECK_OK(ArmFailpoints(""));
    };
    for (const std::string step : kBeforeTheRename) {
      const std::string point = PointOf(set, step);
      expect_error_at(point);
      EXPECT_EQ(Contents(), "former") << point;
      EXPECT_TRUE(DiesAt(point, [&] { write().IgnoreError(); })) << point;
      EXPECT_EQ(Contents(), "former") << point;
    }
    for (const std::string step : kAfterTheRename) {
      const std::string point = PointOf(set, step);
      EXPECT_TRUE(DiesAt(point, [&] { write().IgnoreError(); })) << point;
      EXPECT_EQ(Contents(), "new") << point;
      TROUPE_CHECK_OK(WriteFileDurably(files_, Path(), AsBytes("former")));
      expect_error_at(point);
      EXPECT_EQ(Contents(), "new") << point;
      TROUPE_CHECK_OK(WriteFileDurably(files_, Path(), AsBytes("former")));
    }
  }
}

TEST_F(DurableWrite, ATemporaryFileIsRemovedAfterAnErrorIfTheCallerAsks) {
  for (const FileOperation operation :
       {FileOperation::kWrite, FileOperation::kSync, FileOperation::kRename}) {
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .error_number = ENOSPC});
    EXPECT_FALSE(
        WriteFileDurably(faulty, {Path(), AsBytes("new")}, {.removes_temporary = true}).ok());
    EXPECT_THAT(Names(), ElementsAre("f"));
  }
  // Another process writes that one.
  TROUPE_CHECK_OK(WriteFileDurably(files_, Path("f.1"), AsBytes("another's")));
  EXPECT_EQ(WriteFileDurably(files_, {Path(), AsBytes("new"), CreateMode::kExclusive},
                             {.suffix = ".1", .removes_temporary = true})
                .code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(Contents("f.1"), "another's");
}

TEST_F(DurableWrite, OfSeveralFilesNoneIsRenamedUnlessAllAreSynced) {
  const std::array<NewFile, 2> both = {
      {{Path(), AsBytes("new")}, {Path("g"), AsBytes("second"), CreateMode::kExclusiveOfOwner}}};
  for (const FileOperation operation : {FileOperation::kWrite, FileOperation::kSync}) {
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .path_contains = "g", .error_number = ENOSPC});
    EXPECT_EQ(WriteFilesDurably(faulty, both, {.removes_temporary = true}).code(),
              StatusCode::kResourceExhausted);
    EXPECT_EQ(Contents(), "former");
    EXPECT_THAT(Names(), ElementsAre("f"));
  }
  FaultyFileSystem faulty(files_);
  faulty.Add({.operation = FileOperation::kRename, .first_call = 2, .error_number = EIO});
  EXPECT_FALSE(WriteFilesDurably(faulty, both, {.removes_temporary = true}).ok());
  EXPECT_THAT(Names(), ElementsAre("f"));
  EXPECT_EQ(Contents(), "new");
  EXPECT_TRUE(WriteFilesDurably(files_, both).ok());
  EXPECT_EQ(Contents("g"), "second");
  EXPECT_EQ(PermissionsOf("g"), mode_t{0600});
}

TEST_F(DurableWrite, AStreamedFileAppearsWithTheRename) {
  auto memory = AlignedMemory::Make(kStreamAlignment);
  ASSERT_TRUE(memory.ok());
  const auto write = [&](FileSystem& files) {
    return StreamFileDurably(
        files, Path("s"), {.size_bytes = 10}, "checkpoint.shard",
        [&](StreamingFile& file) { return file.StartWrite(0, 0, memory->bytes()); });
  };
  const auto remove = [&] {
    for (const char* const name : {"s", "s.tmp"}) files_.Remove(Path(name)).IgnoreError();
  };
  for (const FileOperation operation :
       {FileOperation::kCreate, FileOperation::kWrite, FileOperation::kSync, FileOperation::kClose,
        FileOperation::kRename}) {
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .error_number = EIO});
    EXPECT_FALSE(write(faulty).ok());
    EXPECT_EQ(files_.Stat(Path("s"), SymbolicLinks::kRefuse).status().code(),
              StatusCode::kNotFound);
    remove();
  }
  for (const std::string step : kBeforeTheRename) {
    EXPECT_TRUE(DiesAt("checkpoint.shard." + step, [&] { write(files_).IgnoreError(); })) << step;
    EXPECT_THAT(Names(), ElementsAre("f", "s.tmp")) << step;
    EXPECT_EQ(write(files_).code(), StatusCode::kAlreadyExists);
    remove();
  }
  EXPECT_TRUE(write(files_).ok());
  EXPECT_EQ(Contents("s").size(), 10u);
}

}  // namespace
}  // namespace troupe
