#include "interop/recording_file_system.h"

#include <algorithm>

namespace troupe {

void RecordingFileSystem::RemoveCreated() {
  const std::lock_guard lock(mutex_);
  for (const std::string& path : files_) (void)base_.Remove(path);
  for (auto path = directories_.rbegin(); path != directories_.rend(); ++path) {
    (void)base_.RemoveDirectory(*path);
  }
  files_.clear();
  directories_.clear();
}

StatusOr<std::unique_ptr<WritableFile>> RecordingFileSystem::Create(const std::string& path,
                                                                    CreateMode /*mode*/) {
  auto file = base_.Create(path, CreateMode::kExclusive);
  if (file.ok()) RecordFile(path);
  return file;
}

StatusOr<std::unique_ptr<StreamingFile>> RecordingFileSystem::CreateStreaming(
    const std::string& path, const StreamingOptions& options) {
  auto file = base_.CreateStreaming(path, options);
  if (file.ok()) RecordFile(path);
  return file;
}

Status RecordingFileSystem::Rename(const std::string& from, const std::string& to) {
  const auto there = base_.Stat(to, SymbolicLinks::kRefuse);
  if (there.ok()) return AlreadyExists("{}: already exists", to);
  if (there.status().code() != StatusCode::kNotFound) return there.status();
  TROUPE_RETURN_IF_ERROR(base_.Rename(from, to));
  const std::lock_guard lock(mutex_);
  std::replace(files_.begin(), files_.end(), from, to);
  return OkStatus();
}

Status RecordingFileSystem::Remove(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(base_.Remove(path));
  const std::lock_guard lock(mutex_);
  std::erase(files_, path);
  return OkStatus();
}

Status RecordingFileSystem::RemoveDirectory(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(base_.RemoveDirectory(path));
  const std::lock_guard lock(mutex_);
  std::erase(directories_, path);
  return OkStatus();
}

Status RecordingFileSystem::MakeDirectory(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(base_.MakeDirectory(path));
  const std::lock_guard lock(mutex_);
  directories_.push_back(path);
  return OkStatus();
}

void RecordingFileSystem::RecordFile(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_.push_back(path);
}

}  // namespace troupe
