// The keys that a search varies in addition to the degrees of a layout: schedule and chunks, split
// points, tensor_parallel_parts, reshard_after_forward, context_parallel_method and
// expert_dispatch. Pure.
#ifndef TROUPE_PLAN_SEARCH_VARIANTS_H_
#define TROUPE_PLAN_SEARCH_VARIANTS_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "plan/search/layout_bound.h"
#include "plan/search/layout_estimate.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// A job as it is stated, with the keys that a layout sets in addition.
struct Layout {
  v1::JobSpec spec;               // with the keys; defaults filled in
  std::vector<std::string> keys;  // as --set accepts them
};

// The job `stated` with `keys`. INVALID_ARGUMENT where a key does not parse.
StatusOr<Layout> MakeLayout(const v1::JobSpec& stated, std::vector<std::string> keys);

enum class VariedKey { kSchedule, kSplitPoints, kParts, kReshard, kContextMethod, kDispatch };
inline constexpr VariedKey kVariedKeys[] = {VariedKey::kSchedule,      VariedKey::kSplitPoints,
                                            VariedKey::kParts,         VariedKey::kReshard,
                                            VariedKey::kContextMethod, VariedKey::kDispatch};

// Layouts that differ from `layout` in `key` (and in keys that follow from it). Empty where the key
// has no effect on it or `stated` states the key. They need not be valid.
std::vector<Layout> VariantsOf(const v1::JobSpec& stated, const Layout& layout,
                               const v1::DeviceProfile& profile, VariedKey key);

struct VariedLayout {
  Layout layout;
  LayoutEstimate estimate;  // with its time
  LayoutBound bound;
};

// Varies one key after the other while a step gets shorter and the memory suffices. `estimate` is
// that of `layout`, and has a time; `bounds` are of the same model and profile.
VariedLayout Vary(const v1::JobSpec& stated, const v1::DeviceProfile& profile, Layout layout,
                  const LayoutEstimate& estimate, LayoutBounds& bounds);

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_VARIANTS_H_
