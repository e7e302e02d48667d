#include "cli/cluster/absolute_path.h"

#include "base/flag_parser.h"

namespace troupe {

std::string NormalPath(const std::filesystem::path& path) {
  std::string text = path.lexically_normal().string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

StatusOr<std::string> AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return ErrnoStatus(error.value(), path);
  std::string text = NormalPath(absolute);
  // The working directory is a part of it.
  TROUPE_RETURN_IF_ERROR(CheckText("path", text));
  return text;
}

}  // namespace troupe
