#include "plan/validate_blend.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>

namespace troupe {
namespace {

constexpr int kMaxEntries = 256;
constexpr double kLeastShare = 1.0 / (1 << 20);

}  // namespace

void ValidateBlend(const v1::DataSpec& data, Violations* violations) {
  if (!data.train().empty()) {
    violations->Add("data.blend", "has {} entries beside data.train = {}: state one of them",
                    data.blend_size(), data.train());
  }
  if (data.blend_size() > kMaxEntries) {
    violations->Add("data.blend", "has {} entries, above the limit of {}", data.blend_size(),
                    kMaxEntries);
    return;
  }
  double sum = 0;
  bool good_weights = true;
  std::map<std::string, int> first_at;
  for (int i = 0; i < data.blend_size(); ++i) {
    const auto& entry = data.blend(i);
    const std::string path_field = fmt::format("data.blend[{}].path", i);
    const auto [first, is_new] = first_at.emplace(entry.path(), i);
    if (entry.path().empty()) {
      violations->Add(path_field, "is required");
    } else if (!is_new) {
      violations->Add(path_field, "is {}, as data.blend[{}].path is: state it once with both weights",
                      entry.path(), first->second);
    }
    if (!(std::isfinite(entry.weight()) && entry.weight() > 0)) {
      violations->Add(fmt::format("data.blend[{}].weight", i),
                      "is {}, not a finite number above 0", entry.weight());
      good_weights = false;
    }
    sum += entry.weight();
  }
  if (!good_weights) return;
  if (!std::isfinite(sum)) {
    violations->Add("data.blend", "has weights whose sum is not finite");
    return;
  }
  for (int i = 0; i < data.blend_size(); ++i) {
    if (data.blend(i).weight() < sum * kLeastShare) {
      violations->Add(fmt::format("data.blend[{}].weight", i),
                      "is {}, below 2^-20 of the sum of all weights {}", data.blend(i).weight(),
                      sum);
    }
  }
}

}  // namespace troupe
