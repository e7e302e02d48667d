#include "base/faulty_file_system.h"

#include <algorithm>

namespace troupe {
namespace {

class FaultyWritableFile final : public WritableFile {
 public:
  FaultyWritableFile(FaultyFileSystem& owner, std::string path, std::unique_ptr<WritableFile> base)
      : owner_(owner), path_(std::move(path)), base_(std::move(base)) {}

  Status Append(std::span<const std::byte> bytes) override {
    const Status fault = owner_.Enter(FileOperation::kWrite, path_);
    if (fault.ok()) return base_->Append(bytes);
    TROUPE_RETURN_IF_ERROR(base_->Append(bytes.first(bytes.size() / 2)));
    return fault;
  }

  Status WriteAt(int64_t offset, std::span<const std::byte> bytes) override {
    const Status fault = owner_.Enter(FileOperation::kWrite, path_);
    if (fault.ok()) return base_->WriteAt(offset, bytes);
    TROUPE_RETURN_IF_ERROR(base_->WriteAt(offset, bytes.first(bytes.size() / 2)));
    return fault;
  }

  Status Sync() override {
    TROUPE_RETURN_IF_ERROR(owner_.Enter(FileOperation::kSync, path_));
    return base_->Sync();
  }

  Status Close() override {
    const Status fault = owner_.Enter(FileOperation::kClose, path_);
    const Status closed = base_->Close();
    return fault.ok() ? closed : fault;
  }

 private:
  FaultyFileSystem& owner_;
  const std::string path_;
  const std::unique_ptr<WritableFile> base_;
};

class FaultyStreamingFile final : public StreamingFile {
 public:
  FaultyStreamingFile(FaultyFileSystem& owner, std::string path,
                      std::unique_ptr<StreamingFile> base)
      : owner_(owner), path_(std::move(path)), base_(std::move(base)) {}

  WriteMethod method() const override { return base_->method(); }

  Status StartWrite(int slot, int64_t offset, std::span<const std::byte> bytes) override {
    const Status fault = owner_.Enter(FileOperation::kWrite, path_);
    if (fault.ok()) return base_->StartWrite(slot, offset, bytes);
    const size_t half = bytes.size() / 2 / kStreamAlignment * kStreamAlignment;
    if (half > 0) TROUPE_RETURN_IF_ERROR(base_->StartWrite(slot, offset, bytes.first(half)));
    return fault;
  }

  Status Wait(int slot) override { return base_->Wait(slot); }

  Status Finish() override {
    TROUPE_RETURN_IF_ERROR(owner_.Enter(FileOperation::kSync, path_));
    return base_->Finish();
  }

  Status Close() override {
    const Status fault = owner_.Enter(FileOperation::kClose, path_);
    const Status closed = base_->Close();
    return fault.ok() ? closed : fault;
  }

 private:
  FaultyFileSystem& owner_;
  const std::string path_;
  const std::unique_ptr<StreamingFile> base_;
};

class FaultyReadableFile final : public ReadableFile {
 public:
  FaultyReadableFile(FaultyFileSystem& owner, std::string path, std::unique_ptr<ReadableFile> base)
      : owner_(owner), path_(std::move(path)), base_(std::move(base)) {}

  int64_t size() const override { return base_->size(); }

  Status ReadAt(int64_t offset, std::span<std::byte> out) const override {
    TROUPE_RETURN_IF_ERROR(owner_.Enter(FileOperation::kRead, path_));
    return base_->ReadAt(offset, out);
  }

 private:
  FaultyFileSystem& owner_;
  const std::string path_;
  const std::unique_ptr<ReadableFile> base_;
};

}  // namespace

void FaultyFileSystem::Add(Fault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back({std::move(fault), 0});
}

int FaultyFileSystem::Calls(FileOperation operation, const std::string& path_contains) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(calls_.begin(), calls_.end(), [&](const auto& call) {
    return call.first == operation && call.second.find(path_contains) != std::string::npos;
  }));
}

Status FaultyFileSystem::Enter(FileOperation operation, const std::string& path) {
  const std::lock_guard lock(mutex_);
  calls_.emplace_back(operation, path);
  Status status;
  for (Armed& armed : faults_) {
    const Fault& fault = armed.fault;
    if (fault.operation != operation || path.find(fault.path_contains) == std::string::npos) {
      continue;
    }
    ++armed.seen;
    if (armed.seen >= fault.first_call && armed.seen < fault.first_call + fault.calls &&
        status.ok()) {
      status = ErrnoStatus(fault.error_number, fmt::format("injected fault on {}", path));
    }
  }
  return status;
}

StatusOr<std::unique_ptr<WritableFile>> FaultyFileSystem::Create(const std::string& path,
                                                                 CreateMode mode) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kCreate, path));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, base_.Create(path, mode));
  return std::make_unique<FaultyWritableFile>(*this, path, std::move(file));
}

StatusOr<std::unique_ptr<StreamingFile>> FaultyFileSystem::CreateStreaming(
    const std::string& path, const StreamingOptions& options) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kCreate, path));
  StreamingOptions limited = options;
  limited.best_method = std::max(options.best_method, best_method_);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<StreamingFile> file,
                          base_.CreateStreaming(path, limited));
  return std::make_unique<FaultyStreamingFile>(*this, path, std::move(file));
}

StatusOr<std::unique_ptr<ReadableFile>> FaultyFileSystem::Open(const std::string& path,
                                                               SymbolicLinks links) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kOpen, path));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, base_.Open(path, links));
  return std::make_unique<FaultyReadableFile>(*this, path, std::move(file));
}

StatusOr<std::unique_ptr<MappedFile>> FaultyFileSystem::Map(const std::string& path,
                                                            SymbolicLinks links) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kMap, path));
  return base_.Map(path, links);
}

Status FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kRename, to));
  return base_.Rename(from, to);
}

Status FaultyFileSystem::Remove(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kRemove, path));
  return base_.Remove(path);
}

Status FaultyFileSystem::RemoveDirectory(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kRemoveDirectory, path));
  return base_.RemoveDirectory(path);
}

Status FaultyFileSystem::MakeDirectory(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kMakeDirectory, path));
  return base_.MakeDirectory(path);
}

Status FaultyFileSystem::SyncDirectory(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kSyncDirectory, path));
  return base_.SyncDirectory(path);
}

StatusOr<std::vector<DirectoryEntry>> FaultyFileSystem::List(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kList, path));
  return base_.List(path);
}

StatusOr<FileInfo> FaultyFileSystem::Stat(const std::string& path, SymbolicLinks links) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kStat, path));
  return base_.Stat(path, links);
}

StatusOr<int64_t> FaultyFileSystem::FreeBytes(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(Enter(FileOperation::kFreeBytes, path));
  return base_.FreeBytes(path);
}

}  // namespace troupe
