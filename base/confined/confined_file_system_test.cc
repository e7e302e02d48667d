#include "base/confined/confined_file_system.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/durable_write.h"
#include "base/failure_cause.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

struct Operation {
  std::string name;
  // Performs it at a path.
  std::function<Status(FileSystem&, const std::string&)> run;
  // Whether it uses the target of a symbolic link at the end of the path.
  bool follows = false;
};

const std::vector<Operation> kOperations = {
    {"Create",
     [](FileSystem& files, const std::string& path) {
       return files.Create(path, CreateMode::kExclusive).status();
     }},
    {"Overwrite",
     [](FileSystem& files, const std::string& path) {
       return files.Create(path, CreateMode::kTruncate).status();
     }},
    {"CreateStreaming",
     [](FileSystem& files, const std::string& path) {
       return files.CreateStreaming(path, {.size_bytes = 4096}).status();
     }},
    {"Open",
     [](FileSystem& files, const std::string& path) {
       return files.Open(path, SymbolicLinks::kRefuse).status();
     }},
    {"OpenFollowing",
     [](FileSystem& files, const std::string& path) {
       return files.Open(path, SymbolicLinks::kFollow).status();
     },
     true},
    {"Map",
     [](FileSystem& files, const std::string& path) {
       return files.Map(path, SymbolicLinks::kRefuse).status();
     }},
    {"MapFollowing",
     [](FileSystem& files, const std::string& path) {
       return files.Map(path, SymbolicLinks::kFollow).status();
     },
     true},
    {"Remove", [](FileSystem& files, const std::string& path) { return files.Remove(path); }},
    {"RemoveDirectory",
     [](FileSystem& files, const std::string& path) { return files.RemoveDirectory(path); }},
    {"MakeDirectory",
     [](FileSystem& files, const std::string& path) { return files.MakeDirectory(path); }},
    {"SyncDirectory",
     [](FileSystem& files, const std::string& path) { return files.SyncDirectory(path); }, true},
    {"List", [](FileSystem& files, const std::string& path) { return files.List(path).status(); },
     true},
    {"Stat",
     [](FileSystem& files, const std::string& path) {
       return files.Stat(path, SymbolicLinks::kRefuse).status();
     }},
    {"StatFollowing",
     [](FileSystem& files, const std::string& path) {
       return files.Stat(path, SymbolicLinks::kFollow).status();
     },
     true},
    {"FreeBytes",
     [](FileSystem& files, const std::string& path) { return files.FreeBytes(path).status(); },
     true},
};

// root/ has the file `inside`, the directory `sub` with the file `x`, and links. Its neighbour
// outside/ has the file `x` and the directory `d`.
class ConfinedFileSystemTest : public ::testing::Test {
 protected:
  ConfinedFileSystemTest() : root_(folder_.Child("fence")), outside_(folder_.Child("outside")) {
    for (const std::string& path : {root_, root_ + "/sub", outside_, outside_ + "/d"})
      EXPECT_TRUE(posix_.MakeDirectory(path).ok());
    Write(root_ + "/inside", "mine");
    Write(root_ + "/sub/x", "mine");
    Write(outside_ + "/x", "secret");
  }

  void Write(const std::string& path, std::string_view text) {
    ASSERT_TRUE(WriteFileDurably(posix_, path, AsBytes(text)).ok()) << path;
  }

  void Link(const std::string& target, const std::string& path) {
    ASSERT_EQ(symlink(target.c_str(), path.c_str()), 0) << path;
  }

  // Everything in outside_ and in the folder that has it, to compare before and after.
  std::vector<std::string> Outside() {
    std::vector<std::string> found;
    for (const std::string& path : {folder_.path(), outside_, outside_ + "/d"}) {
      const std::vector<DirectoryEntry> entries = posix_.List(path).value();
      for (const DirectoryEntry& entry : entries) found.push_back(JoinPath(path, entry.name));
    }
    found.push_back(ReadFile(posix_, outside_ + "/x", 100, SymbolicLinks::kRefuse).value_or(""));
    return found;
  }

  void ExpectEscape(const Status& status, const std::string& path) {
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << ToString(status);
    EXPECT_EQ(AttachedCause(status), cause::kPathOutsideRoot);
    EXPECT_THAT(ToString(status), HasSubstr(path));
    EXPECT_THAT(ToString(status), HasSubstr(root_));
  }

  TemporaryDirectory folder_;
  const std::string root_;
  const std::string outside_;
  PosixFileSystem posix_;
};

TEST_F(ConfinedFileSystemTest, EveryOperationRefusesEveryEscape) {
  Link("../outside", root_ + "/relative");
  Link(outside_, root_ + "/absolute");
  Link("absolute", root_ + "/chained");
  Link("..", root_ + "/parent");
  Link("/", root_ + "/slash");
  const std::vector<std::string> escapes = {
      root_ + "/../outside/x",            // `..`
      root_ + "/sub/../../outside/x",     // `..` in the middle
      root_ + "/../fence/../outside/x",   // out, in, and out again
      outside_ + "/x",                    // absolute, elsewhere
      root_ + "side/x",                   // the root's path is a prefix of the text only
      "relative/path",                    // below the current directory
      "",                                 // nothing
      root_ + "/relative/x",              // a link in the middle
      root_ + "/absolute/x",              //
      root_ + "/chained/x",               // a link to a link
      root_ + "/parent/outside/x",        // a link to `..`
      root_ + "/slash" + outside_ + "/x"  // a link to the root of the host
  };
  const std::vector<std::string> before = Outside();
  ConfinedFileSystem files(root_);
  for (const Operation& operation : kOperations) {
    for (const std::string& path : escapes) {
      SCOPED_TRACE(operation.name + " " + path);
      ExpectEscape(operation.run(files, path), path);
    }
    EXPECT_EQ(Outside(), before) << operation.name;
  }
}

TEST_F(ConfinedFileSystemTest, ALinkAtTheEndOfAPathIsNeverTheWayOut) {
  Link("../outside/x", root_ + "/file");
  Link(outside_, root_ + "/folder");
  Link("../outside/new", root_ + "/dangling");
  const std::vector<std::string> before = Outside();
  ConfinedFileSystem files(root_);
  for (const Operation& operation : kOperations) {
    // It removes the link.
    if (operation.name == "Remove") continue;
    for (const std::string name : {"file", "folder", "dangling"}) {
      SCOPED_TRACE(operation.name + " " + name);
      const std::string path = JoinPath(root_, name);
      const Status status = operation.run(files, path);
      // The kind of a link is no secret.
      EXPECT_EQ(status.ok(), operation.name == "Stat") << ToString(status);
      if (operation.follows) ExpectEscape(status, path);
    }
    EXPECT_EQ(Outside(), before) << operation.name;
  }
  for (const std::string name : {"file", "folder", "dangling"})
    EXPECT_TRUE(files.Remove(JoinPath(root_, name)).ok());
  EXPECT_EQ(Outside(), before);
}

TEST_F(ConfinedFileSystemTest, RenamesNothingIntoOrOutOfTheRoot) {
  Link(outside_, root_ + "/link");
  const std::vector<std::string> before = Outside();
  ConfinedFileSystem files(root_);
  const std::string inside = root_ + "/inside";
  for (const std::string& elsewhere :
       {outside_ + "/x", root_ + "/../outside/x", root_ + "/link/x"}) {
    ExpectEscape(files.Rename(inside, elsewhere), elsewhere);
    ExpectEscape(files.Rename(elsewhere, inside), elsewhere);
  }
  EXPECT_EQ(Outside(), before);
  EXPECT_EQ(ReadFile(files, inside, 100, SymbolicLinks::kRefuse).value_or(""), "mine");
}

TEST_F(ConfinedFileSystemTest, TheRootAndItsParentCannotBeCreatedRenamedOrRemoved) {
  ConfinedFileSystem files(root_);
  for (const std::string& path :
       {root_, root_ + "/", root_ + "/.", root_ + "/..", root_ + "/sub/.."}) {
    SCOPED_TRACE(path);
    ExpectEscape(files.MakeDirectory(path), path);
    ExpectEscape(files.RemoveDirectory(path), path);
    ExpectEscape(files.Remove(path), path);
    ExpectEscape(files.Rename(path, root_ + "/y"), path);
    ExpectEscape(files.Rename(root_ + "/inside", path), path);
  }
  EXPECT_TRUE(files.List(root_).ok());
  EXPECT_TRUE(files.List(root_ + "/").ok());
  EXPECT_TRUE(files.SyncDirectory(root_).ok());
  EXPECT_TRUE(MakeDirectories(files, root_).ok());
}

TEST_F(ConfinedFileSystemTest, EveryOperationWorksBeneathTheRoot) {
  ConfinedFileSystem files(root_);
  ASSERT_TRUE(MakeDirectories(files, root_ + "/a/b").ok());
  const std::string path = root_ + "/a/b/file";
  ASSERT_TRUE(WriteFileDurably(files, path, AsBytes("text")).ok());
  EXPECT_EQ(ReadFile(files, path, 100, SymbolicLinks::kRefuse).value_or(""), "text");
  EXPECT_EQ(files.Map(path, SymbolicLinks::kRefuse).value()->bytes().size(), 4u);
  EXPECT_EQ(files.Stat(path, SymbolicLinks::kRefuse)->size_bytes, 4);
  ASSERT_TRUE(files.Rename(path, root_ + "/a/moved").ok());
  auto stream = files.CreateStreaming(root_ + "/a/streamed", {.size_bytes = 5});
  ASSERT_TRUE(stream.ok());
  EXPECT_TRUE((*stream)->Finish().ok());
  EXPECT_TRUE((*stream)->Close().ok());
  EXPECT_EQ(files.Stat(root_ + "/a/streamed", SymbolicLinks::kRefuse)->size_bytes, 5);
  EXPECT_EQ(files.List(root_ + "/a")->size(), 3u);
  EXPECT_GT(files.FreeBytes(root_ + "/a").value_or(0), 0);
  EXPECT_TRUE(files.Remove(root_ + "/a/moved").ok());
  EXPECT_TRUE(files.RemoveDirectory(root_ + "/a/b").ok());
  // `..` and repeated slashes that stay beneath the root.
  EXPECT_TRUE(files.Open(root_ + "//a/../inside", SymbolicLinks::kRefuse).ok());
  EXPECT_EQ(files.Open(root_ + "/none", SymbolicLinks::kRefuse).status().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(files.MakeDirectory(root_ + "/a").code(), StatusCode::kAlreadyExists);
}

TEST_F(ConfinedFileSystemTest, FollowsLinksThatStayBeneathTheRoot) {
  Link("sub", root_ + "/relative");
  Link(root_ + "/sub", root_ + "/absolute");
  Link("absolute", root_ + "/chained");
  Link("../chained/x", root_ + "/sub/up");
  Link(root_ + "/sub/../sub/up", root_ + "/long");
  ConfinedFileSystem files(root_);
  for (const std::string name :
       {"relative/x", "absolute/x", "chained/x", "sub/up", "long", "absolute/../relative/up"}) {
    const auto text = ReadFile(files, JoinPath(root_, name), 100, SymbolicLinks::kFollow);
    EXPECT_EQ(text.ok() ? *text : ToString(text.status()), "mine") << name;
  }
  EXPECT_TRUE(WriteFileDurably(files, root_ + "/chained/new", AsBytes("text")).ok());
  EXPECT_TRUE(files.Rename(root_ + "/absolute/new", root_ + "/relative/renamed").ok());
  EXPECT_TRUE(posix_.Stat(root_ + "/sub/renamed", SymbolicLinks::kRefuse).ok());
}

TEST_F(ConfinedFileSystemTest, ALoopOfLinksEnds) {
  Link("b", root_ + "/a");
  Link(root_ + "/a", root_ + "/b");
  ConfinedFileSystem files(root_);
  ExpectEscape(files.Open(root_ + "/a", SymbolicLinks::kFollow).status(), root_ + "/a");
  EXPECT_EQ(files.Open(root_ + "/a", SymbolicLinks::kRefuse).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(ConfinedFileSystemTest, TheRootItselfMayBeALink) {
  Link("fence", folder_.Child("alias"));
  Link(root_ + "/sub", root_ + "/by-its-path");
  Link(folder_.Child("alias/sub"), root_ + "/by-the-link");
  ConfinedFileSystem files(folder_.Child("alias/"));
  for (const std::string path :
       {"alias/sub/x", "alias/by-its-path/x", "alias/by-the-link/x", "fence/sub/x"})
    EXPECT_TRUE(files.Open(folder_.Child(path), SymbolicLinks::kRefuse).ok()) << path;
  EXPECT_EQ(files.Open(folder_.Child("alias/../outside/x"), SymbolicLinks::kFollow).status().code(),
            StatusCode::kPermissionDenied);
}

TEST_F(ConfinedFileSystemTest, TheRootOfTheHostConfinesNothing) {
  ConfinedFileSystem files("/");
  Link(outside_, root_ + "/link");
  EXPECT_TRUE(files.Open(root_ + "/link/x", SymbolicLinks::kRefuse).ok());
}

// While a thread replaces a directory by a link that leads out and back, no operation leaves.
TEST_F(ConfinedFileSystemTest, ADirectoryThatIsReplacedByALinkMeanwhileLeadsNowhere) {
  Write(outside_ + "/victim", "secret");
  Link(outside_, root_ + "/link");
  std::atomic<bool> ends{false};
  std::thread swapper([&] {
    while (!ends) {
      std::ignore = renameat2(AT_FDCWD, (root_ + "/sub").c_str(), AT_FDCWD,
                              (root_ + "/link").c_str(), RENAME_EXCHANGE);
    }
  });
  const std::vector<std::string> before = Outside();
  ConfinedFileSystem files(root_);
  int read = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto text = ReadFile(files, root_ + "/sub/x", 100, SymbolicLinks::kFollow);
    if (text.ok()) {
      ++read;
      EXPECT_EQ(*text, "mine");
    } else {
      ++refused;
      EXPECT_EQ(text.status().code(), StatusCode::kPermissionDenied) << ToString(text.status());
    }
    files.Remove(root_ + "/sub/victim").IgnoreError();
    files.Create(root_ + "/sub/made", CreateMode::kTruncate).status().IgnoreError();
    files.MakeDirectory(root_ + "/sub/made-folder").IgnoreError();
    files.Rename(root_ + "/sub/made", root_ + "/sub/renamed").IgnoreError();
  }
  ends = true;
  swapper.join();
  EXPECT_EQ(Outside(), before);
  RecordProperty("read", read);
  RecordProperty("refused", refused);
}

TEST_F(ConfinedFileSystemTest, ARootThatIsNotUsableIsAFaultOfTheHost) {
  for (const std::string& root : {folder_.Child("none"), root_ + "/inside", std::string("a/b")}) {
    ConfinedFileSystem files(root);
    for (const Operation& operation : kOperations) {
      const Status status = operation.run(files, root + "/x");
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << ToString(status);
      EXPECT_EQ(AttachedCause(status), cause::kStorage);
      EXPECT_THAT(ToString(status), HasSubstr("root " + root));
    }
  }
  // It is opened once it is there.
  ConfinedFileSystem files(folder_.Child("later"));
  EXPECT_FALSE(files.List(folder_.Child("later")).ok());
  ASSERT_TRUE(posix_.MakeDirectory(folder_.Child("later")).ok());
  EXPECT_TRUE(files.List(folder_.Child("later")).ok());
}

// Makes openat2 fail with `error_number` for this process from now on.
void ForbidOpenAt2(int error_number) {
  const uint32_t result = SECCOMP_RET_ERRNO | (static_cast<uint32_t>(error_number) & 0xffffu);
  sock_filter instructions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offsetof(seccomp_data, nr))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, result),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, instructions};
  const bool set = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  if (!set) _exit(2);
}

TEST_F(ConfinedFileSystemTest, WithoutOpenAt2NothingIsOpened) {
  for (const int error_number : {ENOSYS, EPERM}) {
    const pid_t child = fork();
    if (child == 0) {
      ForbidOpenAt2(error_number);
      ConfinedFileSystem files(root_);
      const Status status = files.Open(root_ + "/inside", SymbolicLinks::kRefuse).status();
      const bool named = ToString(status).find("openat2") != std::string::npos;
      const bool fits = status.code() == StatusCode::kFailedPrecondition &&
                        AttachedCause(status) == cause::kStorage;
      _exit(named && fits ? 0 : 1);
    }
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    if (WIFEXITED(state) && WEXITSTATUS(state) == 2)
      GTEST_SKIP() << "this host does not allow a process to set a seccomp filter";
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << error_number << " " << state;
  }
}

}  // namespace
}  // namespace troupe
