// The slices of global tensors that a rank holds, for writing and reading checkpoints.
#ifndef TROUPE_MODEL_PARAMETER_SLICES_H_
#define TROUPE_MODEL_PARAMETER_SLICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/program.h"

namespace troupe::model {

// The slice at `offset` of the global float32 tensor `name`. Elements [element_offset,
// element_offset + Π local_shape) of `value`, row-major, hold it.
struct ParameterSlice {
  // "model.norm.weight", "exp_avg.model.norm.weight", "float8_amax.…"
  std::string name;
  std::vector<int64_t> global_shape;
  std::vector<int64_t> offset;
  std::vector<int64_t> local_shape;
  StateKind kind = StateKind::kWeight;
  ValueId value = kNoValue;
  int64_t element_offset = 0;
  // Ranks that differ only in these coordinates (bit a is set: Axis a) hold the same slice.
  uint8_t replicated_axes = 0;
  // Both the first and the last stage hold the slice.
  bool tied = false;
};

// The axes whose ranks hold the same slices of `state`, as bits; in runs of an axis they are none.
uint8_t ReplicatedAxes(const Program& program, const State& state);
// The slices of one of Program::states.
std::vector<ParameterSlice> SlicesOf(const Program& program, const State& state);
// The slices of each of Program::states, in order.
std::vector<ParameterSlice> ParameterSlices(const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PARAMETER_SLICES_H_
