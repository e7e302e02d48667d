// Whether the ranks of a pipeline stage can be a slice of TPU chips, which runs one program. Pure.
#ifndef TROUPE_PLAN_VALIDATE_STAGE_SLICES_H_
#define TROUPE_PLAN_VALIDATE_STAGE_SLICES_H_

#include <string_view>

#include "base/status.h"
#include "plan/validate/decoded_job.h"

namespace troupe {

// INVALID_ARGUMENT with field, value and relation where a stage has a number of ranks that no slice
// has, or ranks that store unlike shares of the parameters. REQUIRES: ValidateJobSpec accepts the
// job.
Status CheckStageSlices(const DecodedJob& job);

// Whether plans for devices of this model (v1.DeviceKind.model) make slices of their chips: ranks
// are processes with a chip each, so the chips have one device.
bool HasStageSlices(std::string_view device_model);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_STAGE_SLICES_H_
