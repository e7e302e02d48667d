// A FileSystem that records what is created through it, so that an import or an export that fails
// can remove that and nothing else: other processes may write to the same directory meanwhile.
//
// Thread-safe. Calls go to the underlying file system, with one difference: no file that is there
// is written to or replaced.
#ifndef TROUPE_INTEROP_RECORDING_FILE_SYSTEM_H_
#define TROUPE_INTEROP_RECORDING_FILE_SYSTEM_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

class RecordingFileSystem final : public FileSystem {
 public:
  // `base` must outlive this object and the files it opens.
  explicit RecordingFileSystem(FileSystem& base) : base_(base) {}

  // Removes the files that were created, then the directories that were created and are empty, the
  // last one first. Errors are ignored because the caller already reports another one.
  void RemoveCreated();

  // ALREADY_EXISTS if the name exists, in every mode.
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path, CreateMode mode) override;
  StatusOr<std::unique_ptr<StreamingFile>> CreateStreaming(
      const std::string& path, const StreamingOptions& options) override;
  // ALREADY_EXISTS if there is a file at `to`.
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;
  Status MakeDirectory(const std::string& path) override;

  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path,
                                               SymbolicLinks links) override {
    return base_.Open(path, links);
  }
  StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& path, SymbolicLinks links) override {
    return base_.Map(path, links);
  }
  Status SyncDirectory(const std::string& path) override { return base_.SyncDirectory(path); }
  StatusOr<std::vector<DirectoryEntry>> List(const std::string& path) override {
    return base_.List(path);
  }
  StatusOr<FileInfo> Stat(const std::string& path, SymbolicLinks links) override {
    return base_.Stat(path, links);
  }
  StatusOr<int64_t> FreeBytes(const std::string& path) override { return base_.FreeBytes(path); }

 private:
  void RecordFile(const std::string& path);

  FileSystem& base_;
  std::mutex mutex_;
  std::vector<std::string> files_, directories_;  // in the order of their creation
};

}  // namespace troupe

#endif  // TROUPE_INTEROP_RECORDING_FILE_SYSTEM_H_
