#include "base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>

#include "base/check.h"

namespace troupe {
namespace {

Status PathError(std::string_view operation, const std::string& path) {
  return ErrnoStatus(errno, fmt::format("{} {}", operation, path));
}

// Permissions of new files.
constexpr mode_t kReadableByAll = 0644;
constexpr mode_t kOfOwner = 0600;

// The most bytes passed to one system call, below Linux's limit for one write.
constexpr size_t kCallBytesMax = size_t{1} << 30;

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(std::string path, FileDescriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  Status Append(std::span<const std::byte> bytes) override {
    TROUPE_RETURN_IF_ERROR(WriteAt(end_, bytes));
    end_ += static_cast<int64_t>(bytes.size());
    return OkStatus();
  }

  Status WriteAt(int64_t offset, std::span<const std::byte> bytes) override {
    TROUPE_CHECK(offset >= 0);
    while (!bytes.empty()) {
      const ssize_t written =
          pwrite(fd_.get(), bytes.data(), std::min(bytes.size(), kCallBytesMax), offset);
      if (written < 0) {
        if (errno == EINTR) continue;
        return PathError("write", path_);
      }
      bytes = bytes.subspan(static_cast<size_t>(written));
      offset += written;
    }
    return OkStatus();
  }

  Status Sync() override {
    // Not retried, even on EINTR: see the contract of Sync.
    return fsync(fd_.get()) == 0 ? OkStatus() : PathError("fsync", path_);
  }

  Status Close() override {
    // Linux closes the descriptor even if close() reports an error.
    return close(fd_.Release()) == 0 || errno == EINTR ? OkStatus() : PathError("close", path_);
  }

 private:
  const std::string path_;
  FileDescriptor fd_;
  int64_t end_ = 0;
};

// Aligned reads of at least this many bytes bypass the page cache: such data are read once, and a
// copy through the cache costs as much as the disk.
constexpr size_t kDirectBytesMin = size_t{1} << 20;

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(std::string path, FileDescriptor fd, int64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  int64_t size() const override { return size_; }

  Status ReadAt(int64_t offset, std::span<std::byte> out) const override {
    TROUPE_CHECK(offset >= 0);
    if (out.size() >= kDirectBytesMin && offset % kStreamAlignment == 0 &&
        reinterpret_cast<uintptr_t>(out.data()) % kStreamAlignment == 0) {
      ReadDirectly(offset, out);
    }
    while (!out.empty()) {
      const ssize_t got = pread(fd_.get(), out.data(), std::min(out.size(), kCallBytesMax), offset);
      if (got < 0) {
        if (errno == EINTR) continue;
        return PathError("read", path_);
      }
      if (got == 0) {
        return OutOfRange("read {}: the file ends at byte {}, {} bytes before the end of the read",
                          path_, offset, out.size());
      }
      out = out.subspan(static_cast<size_t>(got));
      offset += got;
    }
    return OkStatus();
  }

 private:
  // Reads whole units with O_DIRECT as far as possible and advances `offset` and `out`. The
  // buffered read that follows reads the rest and reports any error.
  void ReadDirectly(int64_t& offset, std::span<std::byte>& out) const {
    std::call_once(direct_once_, [this] {
      const std::string same_file = fmt::format("/proc/self/fd/{}", fd_.get());
      direct_.emplace(open(same_file.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    });
    constexpr auto kUnit = static_cast<size_t>(kStreamAlignment);
    while (direct_->get() >= 0 && out.size() >= kUnit) {
      const size_t bytes = std::min(out.size(), kCallBytesMax) / kUnit * kUnit;
      const ssize_t got = pread(direct_->get(), out.data(), bytes, offset);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || got % kStreamAlignment != 0) return;
      out = out.subspan(static_cast<size_t>(got));
      offset += got;
    }
  }

  const std::string path_;
  FileDescriptor fd_;
  const int64_t size_;
  mutable std::once_flag direct_once_;
  mutable std::optional<FileDescriptor> direct_;
};

class PosixMappedFile final : public MappedFile {
 public:
  PosixMappedFile(void* address, size_t size) : address_(address), size_(size) {}
  PosixMappedFile(const PosixMappedFile&) = delete;
  PosixMappedFile& operator=(const PosixMappedFile&) = delete;
  ~PosixMappedFile() override {
    if (size_ > 0) munmap(address_, size_);
  }
  std::span<const std::byte> bytes() const override {
    return {static_cast<const std::byte*>(address_), size_};
  }

 private:
  void* const address_;
  const size_t size_;
};

FileKind KindOf(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kRegular;
  if (S_ISDIR(mode)) return FileKind::kDirectory;
  if (S_ISLNK(mode)) return FileKind::kSymbolicLink;
  return FileKind::kOther;
}

FileInfo FromStat(const struct stat& info) {
  return {KindOf(info.st_mode), info.st_size, info.st_dev, info.st_ino};
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) close(number_);
}

StatusOr<FileDescriptor> PosixFileSystem::OpenPath(std::string_view operation,
                                                   const std::string& path, int flags,
                                                   mode_t permissions) {
  FileDescriptor file(open(path.c_str(), flags | O_CLOEXEC, permissions));
  if (file.get() >= 0) return file;
  if (errno == ELOOP) return FailedPrecondition("{} {}: is a symbolic link", operation, path);
  return PathError(operation, path);
}

StatusOr<PlaceInDirectory> PosixFileSystem::FindPlace(std::string_view /*operation*/,
                                                      const std::string& path) {
  return PlaceInDirectory{FileDescriptor(AT_FDCWD), path};
}

StatusOr<FileInfo> PosixFileSystem::InfoOf(const FileDescriptor& file, const std::string& path) {
  struct stat info;
  if (fstat(file.get(), &info) != 0) return PathError("stat", path);
  return FromStat(info);
}

StatusOr<PosixFileSystem::RegularFile> PosixFileSystem::OpenForReading(const std::string& path,
                                                                       SymbolicLinks links) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer; it has no effect on regular files.
  const int nofollow = links == SymbolicLinks::kRefuse ? O_NOFOLLOW : 0;
  TROUPE_ASSIGN_OR_RETURN(FileDescriptor file,
                          OpenPath("open", path, O_RDONLY | O_NONBLOCK | nofollow, 0));
  TROUPE_ASSIGN_OR_RETURN(const FileInfo info, InfoOf(file, path));
  if (info.kind != FileKind::kRegular)
    return FailedPrecondition("open {}: is not a regular file", path);
  return RegularFile{std::move(file), info.size_bytes};
}

StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::Create(const std::string& path,
                                                                CreateMode mode) {
  const int how = mode == CreateMode::kTruncate ? O_TRUNC : O_EXCL;
  const mode_t permissions = mode == CreateMode::kExclusiveOfOwner ? kOfOwner : kReadableByAll;
  TROUPE_ASSIGN_OR_RETURN(
      FileDescriptor file,
      OpenPath("create", path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | how, permissions));
  TROUPE_ASSIGN_OR_RETURN(const FileInfo info, InfoOf(file, path));
  if (info.kind != FileKind::kRegular)
    return FailedPrecondition("create {}: is not a regular file", path);
  return std::make_unique<PosixWritableFile>(path, std::move(file));
}

StatusOr<std::unique_ptr<StreamingFile>> PosixFileSystem::CreateStreaming(
    const std::string& path, const StreamingOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(
      FileDescriptor file,
      OpenPath("create", path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kReadableByAll));
  auto made = MakeStreamingFile(path, file.Release(), options);
  if (!made.ok()) (void)Remove(path);
  return made;
}

StatusOr<std::unique_ptr<ReadableFile>> PosixFileSystem::Open(const std::string& path,
                                                              SymbolicLinks links) {
  TROUPE_ASSIGN_OR_RETURN(RegularFile file, OpenForReading(path, links));
  return std::make_unique<PosixReadableFile>(path, std::move(file.descriptor), file.size_bytes);
}

StatusOr<std::unique_ptr<MappedFile>> PosixFileSystem::Map(const std::string& path,
                                                           SymbolicLinks links) {
  TROUPE_ASSIGN_OR_RETURN(const RegularFile file, OpenForReading(path, links));
  const size_t size = static_cast<size_t>(file.size_bytes);
  if (size == 0) return std::make_unique<PosixMappedFile>(nullptr, 0);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
  if (address == MAP_FAILED) return PathError("mmap", path);
  return std::make_unique<PosixMappedFile>(address, size);
}

Status PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  TROUPE_ASSIGN_OR_RETURN(const PlaceInDirectory old_place, FindPlace("rename", from));
  TROUPE_ASSIGN_OR_RETURN(const PlaceInDirectory place, FindPlace("rename", to));
  if (renameat(old_place.directory.get(), old_place.name.c_str(), place.directory.get(),
               place.name.c_str()) == 0)
    return OkStatus();
  return PathError(fmt::format("rename {} to", from), to);
}

Status PosixFileSystem::Remove(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const PlaceInDirectory place, FindPlace("unlink", path));
  if (unlinkat(place.directory.get(), place.name.c_str(), 0) == 0) return OkStatus();
  return PathError("unlink", path);
}

Status PosixFileSystem::RemoveDirectory(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const PlaceInDirectory place, FindPlace("rmdir", path));
  if (unlinkat(place.directory.get(), place.name.c_str(), AT_REMOVEDIR) == 0) return OkStatus();
  return PathError("rmdir", path);
}

Status PosixFileSystem::MakeDirectory(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const PlaceInDirectory place, FindPlace("mkdir", path));
  if (mkdirat(place.directory.get(), place.name.c_str(), 0755) == 0) return OkStatus();
  return PathError("mkdir", path);
}

Status PosixFileSystem::SyncDirectory(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const FileDescriptor directory,
                          OpenPath("open directory", path, O_RDONLY | O_DIRECTORY, 0));
  return fsync(directory.get()) == 0 ? OkStatus() : PathError("fsync directory", path);
}

StatusOr<std::vector<DirectoryEntry>> PosixFileSystem::List(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(FileDescriptor opened, OpenPath("list", path, O_RDONLY | O_DIRECTORY, 0));
  DIR* directory = fdopendir(opened.get());
  if (directory == nullptr) return PathError("list", path);
  (void)opened.Release();  // closedir closes it
  std::vector<DirectoryEntry> entries;
  Status status;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(directory);
    if (entry == nullptr) {
      if (errno != 0) status = PathError("list", path);
      break;
    }
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info;
    if (fstatat(dirfd(directory), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;  // removed since the listing
      status = PathError("stat", JoinPath(path, name));
      break;
    }
    entries.push_back({name, KindOf(info.st_mode)});
  }
  closedir(directory);
  TROUPE_RETURN_IF_ERROR(status);
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

StatusOr<FileInfo> PosixFileSystem::Stat(const std::string& path, SymbolicLinks links) {
  struct stat info;
  const int flags = links == SymbolicLinks::kRefuse ? AT_SYMLINK_NOFOLLOW : 0;
  if (fstatat(AT_FDCWD, path.c_str(), &info, flags) != 0) return PathError("stat", path);
  return FromStat(info);
}

StatusOr<int64_t> PosixFileSystem::FreeBytes(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const FileDescriptor place, OpenPath("statvfs", path, O_PATH, 0));
  struct statvfs info;
  if (fstatvfs(place.get(), &info) != 0) return PathError("statvfs", path);
  const unsigned __int128 bytes = static_cast<unsigned __int128>(info.f_bavail) * info.f_frsize;
  const unsigned __int128 most = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(bytes, most));
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

std::string ParentDirectory(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

Status MakeDirectories(FileSystem& files, const std::string& path) {
  const StatusOr<FileInfo> info = files.Stat(path, SymbolicLinks::kFollow);
  if (info.ok()) {
    if (info->kind == FileKind::kDirectory) return OkStatus();
    return FailedPrecondition("mkdir {}: exists and is not a directory", path);
  }
  if (info.status().code() != StatusCode::kNotFound) return info.status();
  const std::string parent = ParentDirectory(path);
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, parent));
  const Status made = files.MakeDirectory(path);
  // It is no error if another process creates the same directory at the same time.
  if (!made.ok() && made.code() != StatusCode::kAlreadyExists) return made;
  return files.SyncDirectory(parent);
}

StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path, int64_t limit_bytes,
                               SymbolicLinks links) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.Open(path, links));
  if (file->size() > limit_bytes) {
    return ResourceExhausted("read {}: size {} is above the limit of {} bytes", path, file->size(),
                             limit_bytes);
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  TROUPE_RETURN_IF_ERROR(
      file->ReadAt(0, std::as_writable_bytes(std::span<char>(text.data(), text.size()))));
  return text;
}

}  // namespace troupe
