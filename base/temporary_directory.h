// A fresh directory for a test, removed with all it holds at the end of its life.
#ifndef TROUPE_BASE_TEMPORARY_DIRECTORY_H_
#define TROUPE_BASE_TEMPORARY_DIRECTORY_H_

#include <string>
#include <string_view>

namespace troupe {

class TemporaryDirectory {
 public:
  // Beneath $TMPDIR or /tmp.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  // path()/name.
  std::string Child(std::string_view name) const;

 private:
  std::string path_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_TEMPORARY_DIRECTORY_H_
