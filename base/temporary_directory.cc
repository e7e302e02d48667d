#include "base/temporary_directory.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/file_system.h"

namespace troupe {

TemporaryDirectory::TemporaryDirectory() {
  const char* root = std::getenv("TMPDIR");
  path_ = JoinPath(root == nullptr || *root == '\0' ? "/tmp" : root, "troupe-XXXXXX");
  TROUPE_CHECK(mkdtemp(path_.data()) != nullptr, "mkdtemp {}", path_);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;  // a directory left in /tmp is no reason to fail
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::Child(std::string_view name) const { return JoinPath(path_, name); }

}  // namespace troupe
