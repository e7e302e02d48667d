#include "base/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace troupe {

StatusOr<std::string> ReadTextFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return NotFound("{} cannot be opened: {}", path, std::strerror(errno));
  std::string text;
  std::array<char, 4096> block;
  ssize_t read_bytes = 0;
  do {
    read_bytes = read(file, block.data(), block.size());
    if (read_bytes > 0) text.append(block.data(), static_cast<size_t>(read_bytes));
  } while (read_bytes > 0 || (read_bytes < 0 && errno == EINTR));
  const int error = errno;
  close(file);
  if (read_bytes < 0) return Unavailable("{} cannot be read: {}", path, std::strerror(error));
  return text;
}

Status WriteText(int descriptor, std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, fmt::format("write {}", name));
    text.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

Status GitLfsPointerFault() {
  return InvalidArgument(
      "is a Git LFS pointer and not the file that it stands for, which git lfs pull fetches");
}

}  // namespace troupe
