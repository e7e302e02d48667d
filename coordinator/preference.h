// Which free devices a gang shall take first: spares before what is under suspicion, and what is
// set aside only where nothing else suffices. Pure.
#ifndef TROUPE_COORDINATOR_PREFERENCE_H_
#define TROUPE_COORDINATOR_PREFERENCE_H_

#include <vector>

#include "base/clock.h"
#include "coordinator/blame.h"
#include "coordinator/fleet.h"
#include "coordinator/planner.h"
#include "plan/placement.h"

namespace troupe {

// How many devices of `view` are clean.
int CountClean(const ClusterView& view, const BlameBook& book, MonotonicTime now,
               Duration half_life);

// Parts of `view` to be tried in this order: the clean devices, if they are `ranks` at least, else
// those and as many of the others, the least blamed first, as `ranks` need; at last the whole view,
// always.
std::vector<ClusterView> ViewsByPreference(const ClusterView& view, int ranks,
                                           const BlameBook& book, MonotonicTime now,
                                           Duration half_life);

// planner.place on the first of these views that holds the plan; the error of the whole view where
// none does.
StatusOr<v1::Plan> PlaceByPreference(const Planner& planner, const v1::JobSpec& spec,
                                     const v1::Plan& plan, const std::vector<ClusterView>& views);

// `view` without the free devices that are set aside; leased ones stay.
ClusterView WithoutSetAside(const ClusterView& view, const Fleet& fleet);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PREFERENCE_H_
