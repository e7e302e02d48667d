#include "model/program/counted_in_norm.h"

#include "model/program/shared_heads.h"

namespace troupe::model {

bool CountedInNorm(const Program& program, const ParameterEntry& entry) {
  if (!entry.trained()) return false;
  const Value& master = program.value(entry.value);
  for (int a = 1; a < kNumAxes; ++a) {
    const AxisPlacement& placement = master.placement.axes[a];
    const int coordinate = program.mesh.coordinates.of[a];
    if (placement == Replicated() && coordinate != 0) return false;
    if (IsSharedHeads(placement) && coordinate % placement.run != 0) return false;
  }
  return !entry.tied || program.mesh.coordinates[Axis::kPipe] == 0;
}

}  // namespace troupe::model
