#include "kernels/backend/update_args.h"

#include "base/check.h"
#include "model/program/op_rules.h"

namespace troupe::kernels {

std::vector<UpdateArgs> UpdateArgsOf(const model::Program& program, const model::Op& op,
                                     const std::function<char*(model::ValueId)>& address) {
  const auto floats = [&](model::ValueId value) {
    return reinterpret_cast<float*>(address(value));
  };
  std::vector<UpdateArgs> all;
  for (const model::UpdatedParameter& updated : model::UpdatedParameters(op)) {
    TROUPE_CHECK(updated.states.size() <= kKeptStates, "{} keeps {} values of a parameter",
                 Name(op.kind), updated.states.size());
    const int64_t row = program.value(updated.master).row_elements();
    const model::ParameterEntry& entry = model::EntryOfMaster(program, updated.master);
    for (const auto& [rows, decays] : model::DecayRuns(entry)) {
      const int64_t begin = rows.begin * row;
      UpdateArgs args{};
      args.parameter = floats(updated.master) + begin;
      for (size_t s = 0; s < updated.states.size(); ++s)
        args.states[s] = floats(updated.states[s]) + begin;
      args.gradient = floats(updated.gradient) + begin;
      if (updated.has_copy())
        args.copy = address(updated.compute_copy) + begin * SizeOf(model::DType::kBFloat16);
      args.count = rows.size() * row;
      args.decays = decays;
      all.push_back(args);
    }
  }
  return all;
}

}  // namespace troupe::kernels
