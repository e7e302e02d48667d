#include "coordinator/service/rank_fold.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace troupe {

void RankFold::Set(int rank, int64_t step, double value) {
  const auto known = values_.find(rank);
  if (known != values_.end() && step < known->second.step) {
    values_.clear();
    newest_step_ = 0;
  }
  values_[rank] = {step, value};
  newest_step_ = std::max(newest_step_, step);
}

RankFold::Result RankFold::Fold() {
  std::erase_if(values_,
                [this](const auto& entry) { return entry.second.step < newest_step_ - 1; });
  std::vector<std::pair<double, int>> sorted;
  sorted.reserve(values_.size());
  for (const auto& [rank, value] : values_) sorted.emplace_back(value.value, rank);
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  Result result{.median = middle->first, .worst = {}, .dropped = {}};
  const auto named =
      sorted.begin() + static_cast<ptrdiff_t>(std::min(sorted.size(), size_t{kMostNamed}));
  std::partial_sort(sorted.begin(), named, sorted.end(), std::greater<>());
  for (auto one = sorted.begin(); one != named; ++one) result.worst[one->second] = one->first;
  for (const auto& [rank, value] : reported_) {
    if (!result.worst.contains(rank)) result.dropped.push_back(rank);
  }
  reported_ = result.worst;
  return result;
}

std::vector<double> RankFold::Values() const {
  std::vector<double> values;
  values.reserve(values_.size());
  for (const auto& [rank, value] : values_) values.push_back(value.value);
  return values;
}

}  // namespace troupe
