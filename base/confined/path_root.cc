#include "base/confined/path_root.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/failure_cause.h"

namespace troupe {
namespace {

constexpr unsigned kResolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
// The kernel's own limit for the links of one path.
constexpr int kMostLinks = 40;
// While something is renamed or mounted on the host, the kernel may be unable to prove that `..`
// stays beneath the root, and asks for another try.
constexpr int kMostTries = 128;

// Returns a descriptor, or -1 with errno set. `permissions`: those of a created file.
int OpenAt(int directory, const char* path, int flags, mode_t permissions = 0) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.mode = permissions;
  how.resolve = kResolve;
  for (int tries = 0;; ++tries) {
    const long descriptor = syscall(SYS_openat2, directory, path, &how, sizeof(how));
    if (descriptor >= 0 || (errno != EAGAIN && errno != EINTR) || tries == kMostTries)
      return static_cast<int>(descriptor);
  }
}

std::string WithoutSlashesAtEnd(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Returns the part of `path` below `root`, "." for the root itself; nullopt if it does not begin
// with the root's components.
std::optional<std::string> PartBelow(std::string_view root, std::string_view path) {
  if (root.empty() || !path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (root.back() != '/' && !path.empty() && path.front() != '/') return std::nullopt;
  while (path.starts_with('/')) path.remove_prefix(1);
  return path.empty() ? "." : std::string(path);
}

// Returns the target of a link that is open with O_PATH; nullopt if it is no link.
std::optional<std::string> TargetOf(const FileDescriptor& link) {
  char target[PATH_MAX];
  const ssize_t size = readlinkat(link.get(), "", target, sizeof(target));
  if (size <= 0 || size == sizeof(target)) return std::nullopt;
  return std::string(target, static_cast<size_t>(size));
}

}  // namespace

PathRoot::PathRoot(std::string path) : path_(WithoutSlashesAtEnd(std::move(path))) {}

Status PathRoot::Escape(std::string_view operation, const std::string& path) const {
  return WithCause(
      PermissionDenied("{} {}: the path leaves {}, the root beneath which the job may open files",
                       operation, path, path_),
      cause::kPathOutsideRoot);
}

StatusOr<PathRoot::Opened> PathRoot::OpenRoot() {
  const std::lock_guard lock(mutex_);
  if (directory_) return Opened{directory_->get(), real_path_};
  const auto unusable = [this](const Status& why) {
    return WithCause(FailedPrecondition("root {}: {}", path_, Message(why)), cause::kStorage);
  };
  if (!path_.starts_with('/')) return unusable(InvalidArgument("is not an absolute path"));
  FileDescriptor directory(open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return unusable(ErrnoStatus(errno, "open the directory on this host"));
  const FileDescriptor same(OpenAt(directory.get(), ".", O_PATH | O_DIRECTORY));
  if (same.get() < 0) {
    return unusable(ErrnoStatus(
        errno,
        "the kernel of this host cannot open files beneath it; it needs the system call openat2 "
        "of Linux 5.6 or later, and no seccomp filter that forbids it"));
  }
  char real_path[PATH_MAX];
  const std::string link = fmt::format("/proc/self/fd/{}", directory.get());
  const ssize_t size = readlink(link.c_str(), real_path, sizeof(real_path));
  if (size > 0 && size < static_cast<ssize_t>(sizeof(real_path)))
    real_path_.assign(real_path, static_cast<size_t>(size));
  directory_.emplace(std::move(directory));
  return Opened{directory_->get(), real_path_};
}

std::optional<std::string> PathRoot::Below(const Opened& root, std::string_view path) const {
  std::optional<std::string> part = PartBelow(path_, path);
  return part ? part : PartBelow(root.real_path, path);
}

std::optional<std::string> PathRoot::ReplaceLink(const Opened& root, const std::string& relative,
                                                 bool last_too) const {
  for (size_t begin = 0; begin < relative.size();) {
    const size_t end = std::min(relative.find('/', begin), relative.size());
    const std::string_view rest = std::string_view(relative).substr(end);
    const bool is_last = rest.find_first_not_of('/') == std::string_view::npos;
    if (is_last && !last_too) return std::nullopt;
    const FileDescriptor part(
        OpenAt(root.directory, relative.substr(0, end).c_str(), O_PATH | O_NOFOLLOW));
    if (part.get() < 0) return std::nullopt;
    if (std::optional<std::string> target = TargetOf(part)) {
      // A relative target begins in the directory that has the link.
      target =
          target->starts_with('/') ? Below(root, *target) : relative.substr(0, begin) + *target;
      return target ? std::optional(*target + std::string(rest)) : std::nullopt;
    }
    begin = end + 1;
  }
  return std::nullopt;
}

StatusOr<FileDescriptor> PathRoot::OpenBeneath(std::string_view operation, const std::string& path,
                                               std::string relative, int flags,
                                               mode_t permissions) {
  TROUPE_ASSIGN_OR_RETURN(const Opened root, OpenRoot());
  const bool follows = (flags & O_NOFOLLOW) == 0;
  for (int links = 0;; ++links) {
    FileDescriptor file(OpenAt(root.directory, relative.c_str(), flags, permissions));
    if (file.get() >= 0) return file;
    if (errno == ELOOP && !follows)
      return FailedPrecondition("{} {}: is a symbolic link", operation, path);
    // A loop, or a link of /proc, which may lead anywhere.
    if (errno == ELOOP) return Escape(operation, path);
    if (errno != EXDEV) return ErrnoStatus(errno, fmt::format("{} {}", operation, path));
    // The kernel refuses links with an absolute target even if they lead back beneath the root.
    std::optional<std::string> replaced = ReplaceLink(root, relative, follows);
    if (!replaced || links == kMostLinks) return Escape(operation, path);
    relative = *std::move(replaced);
  }
}

StatusOr<FileDescriptor> PathRoot::Open(std::string_view operation, const std::string& path,
                                        int flags, mode_t permissions) {
  TROUPE_ASSIGN_OR_RETURN(const Opened root, OpenRoot());
  std::optional<std::string> relative = Below(root, path);
  if (!relative) return Escape(operation, path);
  return OpenBeneath(operation, path, *std::move(relative), flags, permissions);
}

StatusOr<PlaceInDirectory> PathRoot::Find(std::string_view operation, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const Opened root, OpenRoot());
  const std::optional<std::string> below = Below(root, WithoutSlashesAtEnd(path));
  if (!below) return Escape(operation, path);
  const size_t slash = below->rfind('/');
  std::string name = slash == std::string::npos ? *below : below->substr(slash + 1);
  // The name of the root, and of what `..` leads to, is in a directory that is not beneath the
  // root.
  if (name == "." || name == "..") return Escape(operation, path);
  TROUPE_ASSIGN_OR_RETURN(
      FileDescriptor directory,
      OpenBeneath(operation, path, slash == std::string::npos ? "." : below->substr(0, slash),
                  O_PATH | O_DIRECTORY, 0));
  return PlaceInDirectory{std::move(directory), std::move(name)};
}

bool LeavesRoot(const Status& status) { return AttachedCause(status) == cause::kPathOutsideRoot; }

}  // namespace troupe
