#include "cli/output/cores_text.h"

#include <fmt/format.h>

namespace troupe {

std::string CoresText(const v1::CoreSet& set) {
  std::string text;
  for (int i = 0; i < set.cores_size();) {
    int last = i;
    while (last + 1 < set.cores_size() && set.cores(last + 1) == set.cores(last) + 1) ++last;
    if (!text.empty()) text += ",";
    text += fmt::to_string(set.cores(i));
    if (last > i) text += fmt::format("-{}", set.cores(last));
    i = last + 1;
  }
  if (!text.empty() && set.shared_by() > 1)
    text += fmt::format(" (shared by {} ranks)", set.shared_by());
  return text;
}

}  // namespace troupe
