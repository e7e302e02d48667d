#include "model/program/weight_decay.h"

#include <fnmatch.h>

#include <algorithm>

namespace troupe::model {

bool MatchesGlob(const std::string& glob, const std::string& name) {
  return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

bool DecaysWeight(const std::string& name, const std::vector<int64_t>& shape,
                  const std::vector<std::string>& exempt) {
  if (exempt.empty()) return shape.size() >= 2;
  return std::ranges::none_of(exempt,
                              [&](const std::string& glob) { return MatchesGlob(glob, name); });
}

}  // namespace troupe::model
