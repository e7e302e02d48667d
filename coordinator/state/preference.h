// The order in which a gang tries free devices: unsuspected devices before suspected ones, and
// devices that are set aside only if nothing else suffices. Pure.
#ifndef TROUPE_COORDINATOR_STATE_PREFERENCE_H_
#define TROUPE_COORDINATOR_STATE_PREFERENCE_H_

#include <vector>

#include "base/clock.h"
#include "coordinator/state/blame.h"
#include "coordinator/state/fleet.h"
#include "coordinator/state/planner.h"
#include "plan/layout/placement.h"

namespace troupe {

// The number of clean devices in `view`.
int CountClean(const ClusterView& view, const BlameBook& book, MonotonicTime now,
               Duration half_life);

// Returns the parts of `view` to try, in order: first the clean devices if there are at least
// `ranks`, otherwise the clean ones plus the least blamed others up to `ranks`, then also all that
// are as bad as the last of them; last, always, the whole view.
std::vector<ClusterView> ViewsByPreference(const ClusterView& view, int ranks,
                                           const BlameBook& book, MonotonicTime now,
                                           Duration half_life);

// Calls planner.place on these views in order and returns the first success, or the error of the
// whole view if none holds the plan.
StatusOr<v1::Plan> PlaceByPreference(const Planner& planner, const v1::JobSpec& spec,
                                     const v1::Plan& plan, const std::vector<ClusterView>& views);

// Returns `view` without the free devices that are set aside; leased devices stay.
ClusterView WithoutSetAside(const ClusterView& view, const Fleet& fleet);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_PREFERENCE_H_
