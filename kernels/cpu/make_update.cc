// Makes the instructions on the control word and of the optimizer.
#include <utility>

#include "kernels/cpu/preparation.h"
#include "model/program/control_word.h"

namespace troupe::kernels::cpu {
namespace {

using model::Op;

// This rank's number in the mesh.
int RankOf(const Op& op) { return std::get<model::ControlAttributes>(op.attributes).rank; }

}  // namespace

MadeInstruction Preparation::MakeControlTotals(const Making& making) {
  const Op& op = making.op;
  return cpu::MakeControlTotals(RankOf(op), Doubles(op.inputs[1]), Doubles(op.inputs[0]));
}

MadeInstruction Preparation::MakeControlRouted(const Making& making) {
  const Op& op = making.op;
  std::vector<RouterTotals> totals;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    totals.push_back({Doubles(op.inputs[i]), Extent(op.inputs[i], 0) - model::kRouterLanes});
  }
  return cpu::MakeControlRouted(std::move(totals), Doubles(op.inputs[0]));
}

MadeInstruction Preparation::MakeSumOfSquares(const Making& making) {
  const Op& op = making.op;
  std::vector<FloatRange> gradients;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    gradients.push_back({Floats(op.inputs[i]), program_.value(op.inputs[i]).elements()});
  }
  return cpu::MakeSumOfSquares(RankOf(op), std::move(gradients),
                               reinterpret_cast<double*>(scratch()), Doubles(op.inputs[0]),
                               kernels_, threads_);
}

MadeInstruction Preparation::MakeControlReduce(const Making& making) {
  return cpu::MakeControlReduce(CommunicatorOf(making.op, find_communicator_),
                                Doubles(making.op.inputs[0]));
}

MadeInstruction Preparation::MakeControlHalt(const Making& making) {
  return cpu::MakeControlHalt(Doubles(making.op.inputs[0]), Doubles(making.op.inputs[1]));
}

MadeInstruction Preparation::MakeAdamW(const Making& making) {
  const Op& op = making.op;
  return cpu::MakeAdamW(std::get<model::AdamWAttributes>(op.attributes), Doubles(op.inputs[0]),
                        Floats(op.inputs[1]), Floats(op.inputs[2]), AdamWEntries(op), kernels_,
                        threads_);
}

std::vector<AdamWEntry> Preparation::AdamWEntries(const Op& op) const {
  std::vector<AdamWEntry> entries;
  for (size_t p = 0; p < program_.parameters.size(); ++p) {
    const model::ParameterEntry& parameter = program_.parameters[p];
    const int64_t row = program_.value(parameter.value).row_elements();
    for (const auto& [rows, decays] : model::DecayRuns(parameter)) {
      const int64_t begin = rows.begin * row;
      AdamWEntry entry{};
      entry.args.parameter = Floats(parameter.value) + begin;
      entry.args.exp_avg = Floats(parameter.exp_avg) + begin;
      entry.args.exp_avg_sq = Floats(parameter.exp_avg_sq) + begin;
      entry.args.gradient = Floats(op.inputs[3 + p]) + begin;
      entry.args.copy =
          parameter.compute_copy == parameter.value
              ? nullptr
              : Address(parameter.compute_copy, 0) + begin * SizeOf(model::DType::kBFloat16);
      entry.args.count = rows.size() * row;
      entry.weight_decay = decays;
      entries.push_back(entry);
    }
  }
  return entries;
}

}  // namespace troupe::kernels::cpu
