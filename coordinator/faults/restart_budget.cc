#include "coordinator/faults/restart_budget.h"

#include <algorithm>
#include <cstdlib>

namespace troupe {
namespace {

// Rank 0's newest report and another rank's death arrive on different streams: either may be one
// step ahead.
constexpr int64_t kSameStep = 1;

}  // namespace

int64_t ChargeFault(Charged charged, int64_t step, v1::JobRecord* record) {
  if (charged == Charged::kNever || charged == Charged::kDelayed) return 0;
  const bool again =
      record->repeated_faults() > 0 && std::abs(step - record->fault_step()) <= kSameStep;
  record->set_repeated_faults(again ? record->repeated_faults() + 1 : 1);
  record->set_fault_step(step);
  if (charged == Charged::kIfRepeated) return record->repeated_faults();
  record->set_barren_restarts(record->barren_restarts() + 1);
  return std::max(record->barren_restarts(), record->repeated_faults());
}

void RenewBudget(v1::JobRecord* record) {
  record->set_barren_restarts(0);
  record->set_repeated_faults(0);
}

}  // namespace troupe
