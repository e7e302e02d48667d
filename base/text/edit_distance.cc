#include "base/text/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace troupe {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  std::vector<size_t> before;
  for (size_t i = 1; i <= a.size(); ++i) {
    const std::vector<size_t> above = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
  }
  return row.back();
}

}  // namespace troupe
