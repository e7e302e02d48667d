// The seam to files: what checkpoints, data and the catalog's neighbours do to a disk, so that
// tests can make a disk fail at a chosen call (base/faulty_file_system.h).
//
// Every operation returns a Status that names the path. Nothing follows a symbolic link in the last
// component of a path unless asked to; FIFOs, devices and sockets are never opened. Thread-safe: a
// FileSystem; not thread-safe: a WritableFile or a StreamingFile. ReadableFile and MappedFile may
// be read from several threads.
#ifndef TROUPE_BASE_FILE_SYSTEM_H_
#define TROUPE_BASE_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/streaming_file.h"

namespace troupe {

// A file open for writing. The destructor closes without syncing.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // Writes all of `bytes` behind what was appended before. After an error the file's contents are
  // undefined.
  virtual Status Append(std::span<const std::byte> bytes) = 0;

  // Writes all of `bytes` at `offset`, leaving Append's position alone. REQUIRES: offset >= 0.
  virtual Status WriteAt(int64_t offset, std::span<const std::byte> bytes) = 0;

  // Returns once everything written is on the disk. After a failure the kernel may have dropped the
  // dirty pages and would report success the next time: the file is lost, never call Sync on it
  // again.
  virtual Status Sync() = 0;

  // Closes and reports a late error. REQUIRES: nothing is called on the file afterwards.
  virtual Status Close() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Bytes when the file was opened.
  virtual int64_t size() const = 0;
  // Fills all of `out` from `offset`. OUT_OF_RANGE if the file ends before. REQUIRES: offset >= 0.
  virtual Status ReadAt(int64_t offset, std::span<std::byte> out) const = 0;
};

// A file mapped read-only; the bytes are valid as long as the object lives. Whoever truncates a
// mapped file kills its readers with SIGBUS, so map only what is written once.
class MappedFile {
 public:
  virtual ~MappedFile() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};

enum class FileKind { kRegular, kDirectory, kSymbolicLink, kOther };

struct FileInfo {
  FileKind kind = FileKind::kOther;
  int64_t size_bytes = 0;
};

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::kOther;
};

enum class CreateMode {
  kExclusive,  // ALREADY_EXISTS if there is anything of that name
  kTruncate,   // an existing regular file is emptied
};

enum class SymbolicLinks { kRefuse, kFollow };

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                         CreateMode mode) = 0;
  // A file for large sequential data; see StreamingFile. Errors of CreateStreamingFile.
  virtual StatusOr<std::unique_ptr<StreamingFile>> CreateStreaming(
      const std::string& path, const StreamingOptions& options) = 0;
  // NOT_FOUND if there is none, FAILED_PRECONDITION if it is no regular file or a link that is not
  // to be followed.
  virtual StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path,
                                                       SymbolicLinks links) = 0;
  virtual StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& path,
                                                    SymbolicLinks links) = 0;
  // Atomic; replaces a file of that name. Durable only after SyncDirectory.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // Unlinks a file or a symbolic link (never what it points to).
  virtual Status Remove(const std::string& path) = 0;
  // Removes an empty directory.
  virtual Status RemoveDirectory(const std::string& path) = 0;
  // ALREADY_EXISTS if there is anything of that name. The parent must exist.
  virtual Status MakeDirectory(const std::string& path) = 0;
  // Makes creations, renames and removals in the directory durable.
  virtual Status SyncDirectory(const std::string& path) = 0;
  // Sorted by name, without `.` and `..`.
  virtual StatusOr<std::vector<DirectoryEntry>> List(const std::string& path) = 0;
  virtual StatusOr<FileInfo> Stat(const std::string& path, SymbolicLinks links) = 0;
  // What an ordinary user may still write to the file system that holds `path`.
  virtual StatusOr<int64_t> FreeBytes(const std::string& path) = 0;
};

// The operating system's files.
class PosixFileSystem final : public FileSystem {
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
};

// `directory/name`, with one slash between.
std::string JoinPath(std::string_view directory, std::string_view name);

// What lies before the last slash of `path`: "/a" of "/a/b", "/" of "/b", "." of "b".
std::string ParentDirectory(std::string_view path);

// Makes `path` and what is missing above it, durably. OK if it is a directory already.
Status MakeDirectories(FileSystem& files, const std::string& path);

// The whole file. RESOURCE_EXHAUSTED if it is longer than `limit_bytes`.
StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path, int64_t limit_bytes,
                               SymbolicLinks links);

// Writes `path` so that after a crash it is the old file, the new file or (before the first)
// absent, never a part: `path.tmp`, fsync, rename, fsync of the directory. Durable on return.
Status WriteFileDurably(FileSystem& files, const std::string& path,
                        std::span<const std::byte> bytes);

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace troupe

#endif  // TROUPE_BASE_FILE_SYSTEM_H_
