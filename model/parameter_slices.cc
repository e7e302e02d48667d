#include "model/parameter_slices.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::model {

uint8_t ReplicatedAxes(const Program& program, const State& state) {
  // Stages count the applied steps together; their other states are their own.
  uint8_t axes = state.kind == StateKind::kAppliedSteps ? GroupOf(Axis::kPipe).axes : uint8_t{0};
  for (int a = 1; a < kNumAxes; ++a) {
    if (program.value(state.value).placement.axes[a] == Replicated())
      axes |= static_cast<uint8_t>(1u << a);
  }
  return axes;
}

std::vector<ParameterSlice> SlicesOf(const Program& program, const State& state) {
  const uint8_t replicated = ReplicatedAxes(program, state);
  const int64_t row_elements = program.value(state.value).row_elements();
  const bool tied = state.parameter >= 0 && program.parameters[state.parameter].tied;
  std::vector<ParameterSlice> slices;
  for (ParameterPart& part : PartsOf(program, state)) {
    slices.push_back({std::move(part.name), std::move(part.global_shape),
                      std::move(part.global_offset), std::move(part.local_shape), state.kind,
                      state.value, part.row_begin * row_elements, replicated, tied});
  }
  return slices;
}

std::vector<ParameterSlice> ParameterSlices(const Program& program) {
  std::vector<ParameterSlice> slices;
  for (const State& state : program.states) {
    if (!IsFrozen(program, state))
      std::ranges::move(SlicesOf(program, state), std::back_inserter(slices));
  }
  return slices;
}

}  // namespace troupe::model
