#include "model/parameter_slices.h"

namespace troupe::model {

std::vector<ParameterSlice> ParameterSlices(const Program& program) {
  std::vector<ParameterSlice> slices;
  const auto append = [&](const char* prefix, ValueId ParameterEntry::*member) {
    for (const ParameterEntry& entry : program.parameters) {
      const Value& value = program.value(entry.*member);
      uint8_t replicated = 0;
      for (int a = 1; a < kNumAxes; ++a) {
        if (value.placement.axes[a] == Replicated()) replicated |= static_cast<uint8_t>(1u << a);
      }
      for (const ParameterPart& part : entry.parts) {
        slices.push_back({prefix + part.name, part.global_shape, part.global_offset,
                          part.local_shape, value.id, part.row_begin * value.row_elements(),
                          replicated, entry.tied});
      }
    }
  };
  append("", &ParameterEntry::value);
  append("exp_avg.", &ParameterEntry::exp_avg);
  append("exp_avg_sq.", &ParameterEntry::exp_avg_sq);
  uint8_t everywhere = 0;
  for (int a = 1; a < kNumAxes; ++a) everywhere |= static_cast<uint8_t>(1u << a);
  const auto append_state = [&](const ParameterPart& part, ValueId value, uint8_t replicated) {
    slices.push_back({part.name, part.global_shape, part.global_offset, part.local_shape, value, 0,
                      replicated, false});
  };
  for (const RouterBias& entry : program.router_biases)
    append_state(entry.part, entry.bias, everywhere);
  for (const AmaxHistory& entry : program.amax_histories)
    append_state(entry.part, entry.history, everywhere);
  append_state({kAppliedStepsTensor, {1}, {0}, {1}}, program.applied_steps,
               everywhere | GroupOf(Axis::kPipe).axes);
  return slices;
}

}  // namespace troupe::model
