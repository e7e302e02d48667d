// The memory of a TPU that a rank needs in addition to its values. Pure.
#ifndef TROUPE_PLAN_DEVICE_TPU_MEMORY_H_
#define TROUPE_PLAN_DEVICE_TPU_MEMORY_H_

#include <cstdint>

#include "model/program/program.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

int64_t TpuWorkingBytes(const model::Program& program);

int64_t TpuReserveBytes(const v1::Plan& plan, const model::Program& program);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_TPU_MEMORY_H_
