#include "base/text/home_path.h"

#include <fmt/format.h>

#include "base/text/printable.h"

namespace troupe {

std::string HomePathFault(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return "";
  return fmt::format(
      "is {}: write the absolute path; ~ is expanded by a shell only at the start of a word",
      PrintableLine(path));
}

}  // namespace troupe
