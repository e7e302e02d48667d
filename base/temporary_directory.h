// A new directory for a test. The destructor removes it with all its contents.
#ifndef TROUPE_BASE_TEMPORARY_DIRECTORY_H_
#define TROUPE_BASE_TEMPORARY_DIRECTORY_H_

#include <string>
#include <string_view>

namespace troupe {

class TemporaryDirectory {
 public:
  // Creates it in $TMPDIR or /tmp.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Returns path()/name.
  std::string Child(std::string_view name) const;

 private:
  std::string path_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_TEMPORARY_DIRECTORY_H_
