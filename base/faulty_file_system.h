// A FileSystem that fails at the calls that a test selects: the n-th call of an operation on paths
// that contain a given text.
//
// Thread-safe. Calls that match no fault go to the underlying file system.
#ifndef TROUPE_BASE_FAULTY_FILE_SYSTEM_H_
#define TROUPE_BASE_FAULTY_FILE_SYSTEM_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"

namespace troupe {

enum class FileOperation {
  kCreate,
  kOpen,
  kMap,
  kWrite,  // Append, WriteAt and StartWrite
  kRead,
  kSync,  // Sync and Finish
  kClose,
  kRename,  // matched by the destination path
  kRemove,
  kRemoveDirectory,
  kMakeDirectory,
  kSyncDirectory,
  kList,
  kStat,
  kFreeBytes,
};

class FaultyFileSystem final : public FileSystem {
 public:
  struct Fault {
    FileOperation operation;
    std::string path_contains;  // empty: every path
    int first_call = 1;         // counted from 1 over the matching calls since the fault was added
    int calls = 1;              // number of consecutive calls that fail
    int error_number;           // EIO, ENOSPC …
  };

  // `base` must outlive this object and the files it opens. Streaming files use `best_method` or a
  // lesser method.
  explicit FaultyFileSystem(FileSystem& base,
                            WriteMethod best_method = WriteMethod::kIoUringRegistered)
      : base_(base), best_method_(best_method) {}

  // Adds a fault. A failing write leaves the first half of its bytes in the file, as a full disk
  // does.
  void Add(Fault fault);

  // Returns the number of calls of `operation` so far, failed ones included, on paths that contain
  // `path_contains`.
  int Calls(FileOperation operation, const std::string& path_contains) const;

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

  // Counts the call and returns the error if a fault is due. Used by the files that this object
  // opens.
  Status Enter(FileOperation operation, const std::string& path);

 private:
  struct Armed {
    Fault fault;
    int seen = 0;
  };
  FileSystem& base_;
  const WriteMethod best_method_;
  mutable std::mutex mutex_;
  std::vector<Armed> faults_;
  std::vector<std::pair<FileOperation, std::string>> calls_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_FAULTY_FILE_SYSTEM_H_
