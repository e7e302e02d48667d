#include "plan/search/work.h"

#include <algorithm>
#include <optional>

#include "model/cost.h"

namespace troupe {

using model::CollectiveGroup;

Work& Work::operator+=(const Work& other) {
  compute += other.compute;
  waits += other.waits;
  within += other.within;
  across += other.across;
  return *this;
}

Work Work::operator-(const Work& other) const {
  return {compute - other.compute, waits - other.waits, within - other.within,
          across - other.across};
}

Work Work::operator*(double factor) const {
  return {compute * factor, waits * factor, within * factor, across * factor};
}

double Work::seconds() const { return std::max({compute + waits, within, across}); }

LeastSeconds::LeastSeconds(const v1::DeviceProfile& profile, double peak, bool is_aligned)
    : profile_(profile), compute_(profile, peak), is_aligned_(is_aligned) {}

void LeastSeconds::Add(const model::Program& program, const Mesh& mesh,
                       const std::vector<model::Op>& ops, Work* work) const {
  struct Extent {
    CollectiveGroup group;
    int ranks;
    int64_t span;
  };
  std::vector<Extent> extents;  // each group once
  const auto extent_of = [&](const CollectiveGroup& group) -> const Extent& {
    const auto known = std::ranges::find(extents, group, &Extent::group);
    if (known != extents.end()) return *known;
    const std::vector<int> ranks = mesh.GroupOf(0, group);
    extents.push_back({group, static_cast<int>(ranks.size()), ranks.back() - ranks[0]});
    return extents.back();
  };
  for (const model::Op& op : ops) {
    if (op.last_microbatch || op.kind == model::OpKind::kCopy || op.kind == model::OpKind::kWait)
      continue;
    const std::optional<model::CollectiveCost> collective = model::CollectiveCostOf(program, op);
    if (!collective) {
      work->compute += compute_.Of(op, program);
      continue;
    }
    const Extent& extent = extent_of(collective->group);
    Add(LinkUseOf(*collective, extent.ranks), extent.span, op.asynchronous, work);
  }
}

void LeastSeconds::Add(const LinkUse& use, int64_t span, bool asynchronous, Work* work) const {
  const double seconds = Of(use, span);
  if (!asynchronous || profile_.transfers_need_cores()) work->waits += seconds;
  if (span >= profile_.devices_per_island()) {
    work->across += seconds;
  } else if (is_aligned_) {
    work->within += seconds;
  }
}

double LeastSeconds::Of(const LinkUse& use, int64_t span) const {
  const double across = use.SecondsOn(profile_.fabric());
  if (span >= profile_.devices_per_island()) return across;
  const double within = use.SecondsOn(profile_.island());
  return is_aligned_ ? within : std::min(within, across);
}

}  // namespace troupe
