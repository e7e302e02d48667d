// The interface to files that checkpoints, data and the code around the catalog use, so that tests
// can make a disk fail at a chosen call (base/faulty_file_system.h).
//
// Every operation returns a Status that names the path. No operation follows a symbolic link in the
// last component of a path unless asked to; FIFOs, devices and sockets are never opened. A
// FileSystem is thread-safe; a WritableFile or a StreamingFile is not. Several threads may read a
// ReadableFile or a MappedFile.
#ifndef TROUPE_BASE_FILE_SYSTEM_H_
#define TROUPE_BASE_FILE_SYSTEM_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/streaming_file.h"

namespace troupe {

// A file open for writing. The destructor closes the file without syncing it.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // Writes all of `bytes` after the bytes appended before. After an error the file's contents are
  // undefined.
  virtual Status Append(std::span<const std::byte> bytes) = 0;

  // Writes all of `bytes` at `offset` without moving Append's position. REQUIRES: offset >= 0.
  virtual Status WriteAt(int64_t offset, std::span<const std::byte> bytes) = 0;

  // Returns once everything written is on the disk. After a failure the kernel may have dropped the
  // dirty pages and would report success the next time: the file is lost and Sync must not be
  // called again.
  virtual Status Sync() = 0;

  // Closes the file and reports a delayed error. REQUIRES: nothing is called on the file
  // afterwards.
  virtual Status Close() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Returns the size in bytes at the time the file was opened.
  virtual int64_t size() const = 0;
  // Fills all of `out` from `offset`. OUT_OF_RANGE if the file ends earlier. REQUIRES: offset >= 0.
  virtual Status ReadAt(int64_t offset, std::span<std::byte> out) const = 0;
};

// A file mapped read-only; the bytes are valid as long as the object lives. Truncating a mapped
// file kills its readers with SIGBUS, so map only files that are written once.
class MappedFile {
 public:
  virtual ~MappedFile() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};

enum class FileKind { kRegular, kDirectory, kSymbolicLink, kOther };

struct FileInfo {
  FileKind kind = FileKind::kOther;
  int64_t size_bytes = 0;
  // Together they identify the file, whatever the path that led to it.
  uint64_t device = 0;
  uint64_t inode = 0;
};

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::kOther;
};

enum class CreateMode {
  kExclusive,  // ALREADY_EXISTS if the name exists
  kTruncate,   // an existing regular file is emptied
  // Like kExclusive, and only the file's owner may read it; all users may read other new files.
  kExclusiveOfOwner,
};

enum class SymbolicLinks { kRefuse, kFollow };

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                         CreateMode mode) = 0;
  // Creates a file for large sequential data; see StreamingFile. ALREADY_EXISTS if the name exists,
  // RESOURCE_EXHAUSTED if the disk has no room for the file, of which then nothing is left.
  virtual StatusOr<std::unique_ptr<StreamingFile>> CreateStreaming(
      const std::string& path, const StreamingOptions& options) = 0;
  // NOT_FOUND if there is no such file; FAILED_PRECONDITION if it is not a regular file, or if it
  // is a symbolic link and `links` is kRefuse.
  virtual StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path,
                                                       SymbolicLinks links) = 0;
  virtual StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& path,
                                                    SymbolicLinks links) = 0;
  // Atomically renames `from`, replacing a file at `to`. Durable only after SyncDirectory.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // Unlinks a file or a symbolic link, never the target of the link.
  virtual Status Remove(const std::string& path) = 0;
  // Removes an empty directory.
  virtual Status RemoveDirectory(const std::string& path) = 0;
  // Creates a directory; its parent must exist. ALREADY_EXISTS if the name exists.
  virtual Status MakeDirectory(const std::string& path) = 0;
  // Makes creations, renames and removals in the directory durable.
  virtual Status SyncDirectory(const std::string& path) = 0;
  // Returns the entries sorted by name, without `.` and `..`.
  virtual StatusOr<std::vector<DirectoryEntry>> List(const std::string& path) = 0;
  virtual StatusOr<FileInfo> Stat(const std::string& path, SymbolicLinks links) = 0;
  // Returns the bytes that an unprivileged user may still write to the file system of `path`.
  virtual StatusOr<int64_t> FreeBytes(const std::string& path) = 0;
};

// An open file descriptor, which the destructor closes. A negative number is none, or AT_FDCWD.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.Release()) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();
  int get() const { return number_; }
  // Returns the descriptor, which the caller now closes.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// A name in an open directory.
struct PlaceInDirectory {
  FileDescriptor directory;
  std::string name;  // one component, unless the directory is AT_FDCWD
};

// The operating system's files. A derived class may restrict which paths reach them.
class PosixFileSystem : public FileSystem {
 public:
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path, CreateMode mode) override;
  StatusOr<std::unique_ptr<StreamingFile>> CreateStreaming(
      const std::string& path, const StreamingOptions& options) override;
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path,
                                               SymbolicLinks links) override;
  StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& path, SymbolicLinks links) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;
  Status MakeDirectory(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
  StatusOr<std::vector<DirectoryEntry>> List(const std::string& path) override;
  StatusOr<FileInfo> Stat(const std::string& path, SymbolicLinks links) override;
  StatusOr<int64_t> FreeBytes(const std::string& path) override;

 protected:
  // Opens `path` as open(2) does with these flags and O_CLOEXEC; a created file has these
  // permissions. `operation` is the first word of the error.
  virtual StatusOr<FileDescriptor> OpenPath(std::string_view operation, const std::string& path,
                                            int flags, mode_t permissions);
  // Returns where the last component of `path` is, for the calls that change a directory.
  virtual StatusOr<PlaceInDirectory> FindPlace(std::string_view operation, const std::string& path);
  // Returns what the descriptor is open for. `path` is named in the error.
  static StatusOr<FileInfo> InfoOf(const FileDescriptor& file, const std::string& path);

 private:
  struct RegularFile {
    FileDescriptor descriptor;
    int64_t size_bytes;
  };
  StatusOr<RegularFile> OpenForReading(const std::string& path, SymbolicLinks links);
};

// Returns `directory/name`, with one slash in between.
std::string JoinPath(std::string_view directory, std::string_view name);

// Returns the part of `path` before its last slash: "/a" for "/a/b", "/" for "/b", "." for "b".
std::string ParentDirectory(std::string_view path);

// Durably creates `path` and its missing parents. OK if it is a directory already.
Status MakeDirectories(FileSystem& files, const std::string& path);

// Reads the whole file. RESOURCE_EXHAUSTED if it is longer than `limit_bytes`.
StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path, int64_t limit_bytes,
                               SymbolicLinks links);

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace troupe

#endif  // TROUPE_BASE_FILE_SYSTEM_H_
