// The counts that the routers of a rank's blocks E have made in a step, from their totals after
// Update.
#ifndef TROUPE_WORKER_EXECUTOR_EXPERT_COUNTS_H_
#define TROUPE_WORKER_EXECUTOR_EXPERT_COUNTS_H_

#include <span>
#include <vector>

#include "model/program/program.h"

namespace troupe {

// The totals from which this rank reports the expert load of its stage: router_totals on the first
// rank of a pipe stage, none on the others.
std::vector<model::ValueId> ReportedRouterTotals(const model::Program& program);

// Adds the choices of each expert in one of those totals to `load`, which is resized as needed.
void AddExpertLoad(std::span<const double> totals, std::vector<double>* load);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_EXPERT_COUNTS_H_
