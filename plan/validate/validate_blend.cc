#include "plan/validate/validate_blend.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>

namespace troupe {
namespace {

constexpr double kLeastShare = 1.0 / (1 << 20);

}  // namespace

void ValidateBlend(const v1::DataSpec& data, Violations* violations) {
  const bool too_many = violations->Has("data.blend");
  if (!data.train().empty()) {
    violations->Add("data.blend",
                    "has {} entries, but data.train = {} is set too: state one of them",
                    data.blend_size(), data.train());
  }
  if (too_many) return;
  double sum = 0;
  bool good_weights = true;
  std::map<std::string, int> first_at;
  for (int i = 0; i < data.blend_size(); ++i) {
    const auto& entry = data.blend(i);
    const std::string path_field = fmt::format("data.blend[{}].path", i);
    const auto [first, is_new] = first_at.emplace(entry.path(), i);
    if (!entry.path().empty() && !is_new) {
      violations->Add(path_field,
                      "is {}, the same as data.blend[{}].path: state the path once, with the sum "
                      "of both weights",
                      entry.path(), first->second);
    }
    good_weights &= !violations->Has(fmt::format("data.blend[{}].weight", i));
    sum += entry.weight();
  }
  if (!good_weights) return;
  if (!std::isfinite(sum)) {
    violations->Add("data.blend", "has weights whose sum is not finite");
    return;
  }
  for (int i = 0; i < data.blend_size(); ++i) {
    if (data.blend(i).weight() < sum * kLeastShare) {
      violations->AddTooSmall(fmt::format("data.blend[{}].weight", i), data.blend(i).weight(),
                              fmt::format("2^-20 of the sum of all weights {}", sum));
    }
  }
}

}  // namespace troupe
