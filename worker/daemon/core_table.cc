#include "worker/daemon/core_table.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/file_system.h"

namespace troupe {
namespace {

// A daemon has two files: NAME.lock, locked as long as the daemon lives and never replaced, and
// NAME.cores with its claims. A name belongs to one life of a daemon and is never reused, so the
// files of a dead daemon can be removed.
constexpr std::string_view kLock = ".lock";
constexpr std::string_view kClaims = ".cores";
// A file that is not yet locked or not yet complete; nobody reads it.
constexpr std::string_view kUnfinished = ".unfinished";
constexpr int64_t kBytesMax = 1 << 20;

// A name unique to this process, also among processes in other PID namespaces.
std::string UniqueName() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return fmt::format("{}-{}.{:09}", getpid(), now.tv_sec, now.tv_nsec);
}

int OpenAnew(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
}

// Whether a living daemon holds the lock; false if the file is gone or cannot be opened.
bool IsHeld(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return false;
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return held;
}

// Removes the lock last: while it exists, other daemons still clean up the remaining files. Files
// of other users stay.
void RemoveFilesOf(const std::string& directory, const std::string& name) {
  for (const std::string_view suffix : {std::string_view(".cores.unfinished"), kClaims, kLock})
    (void)unlink(JoinPath(directory, name + std::string(suffix)).c_str());
}

}  // namespace

CoreTable::CoreTable(std::string directory)
    : directory_(std::move(directory)), name_(UniqueName()) {}

StatusOr<std::unique_ptr<CoreTable>> CoreTable::Open(const std::string& directory) {
  if (mkdir(directory.c_str(), 0777) == 0) {
    // Overrides the umask: a daemon of any user may add its files but not remove another's.
    if (chmod(directory.c_str(), 01777) != 0) return ErrnoStatus(errno, "chmod " + directory);
  } else if (errno != EEXIST) {
    return ErrnoStatus(errno, "mkdir " + directory);
  }
  std::unique_ptr<CoreTable> table(new CoreTable(directory));
  TROUPE_RETURN_IF_ERROR(table->Publish({}));
  const std::string path = table->Path(kLock);
  const std::string unfinished = path + std::string(kUnfinished);
  table->lock_ = OpenAnew(unfinished);
  if (table->lock_ < 0) return ErrnoStatus(errno, "open " + unfinished);
  // The file is locked before others can see it.
  if (flock(table->lock_, LOCK_EX | LOCK_NB) != 0) return ErrnoStatus(errno, "lock " + unfinished);
  if (rename(unfinished.c_str(), path.c_str()) != 0)
    return ErrnoStatus(errno, "rename " + unfinished);
  return table;
}

CoreTable::~CoreTable() {
  RemoveFilesOf(directory_, name_);
  if (lock_ >= 0) close(lock_);
}

std::string CoreTable::Path(std::string_view suffix) const {
  return JoinPath(directory_, name_ + std::string(suffix));
}

Status CoreTable::Publish(const v1::CoreClaims& claims) {
  const std::string path = Path(kClaims);
  const std::string unfinished = path + std::string(kUnfinished);
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const auto file, files.Create(unfinished, CreateMode::kTruncate));
  TROUPE_RETURN_IF_ERROR(file->Append(AsBytes(claims.SerializeAsString())));
  TROUPE_RETURN_IF_ERROR(file->Close());
  return files.Rename(unfinished, path);
}

StatusOr<std::vector<v1::CoreClaims>> CoreTable::Others() {
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, files.List(directory_));
  std::vector<v1::CoreClaims> others;
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.ends_with(kLock)) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - kLock.size());
    if (name == name_) continue;
    if (!IsHeld(JoinPath(directory_, entry.name))) {
      RemoveFilesOf(directory_, name);
      continue;
    }
    // The file of a daemon that is ending just now may be gone.
    const StatusOr<std::string> bytes =
        ReadFile(files, JoinPath(directory_, name + std::string(kClaims)), kBytesMax,
                 SymbolicLinks::kRefuse);
    v1::CoreClaims claims;
    if (bytes.ok() && claims.ParseFromString(*bytes)) others.push_back(std::move(claims));
  }
  return others;
}

}  // namespace troupe
