// Makes the instructions on the control word and of the optimizer.
#include <utility>

#include "kernels/backend/update_args.h"
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

MadeInstruction Preparation::MakeCountStep(const Making& making) {
  return cpu::MakeCountStep(Doubles(making.op.inputs[0]), Floats(making.op.inputs[1]));
}

MadeInstruction Preparation::MakeAdamW(const Making& making) {
  return cpu::MakeAdamW(std::get<model::AdamWAttributes>(making.op.attributes),
                        UpdateInputsOf(making.op), kernels_, threads_);
}

MadeInstruction Preparation::MakeSgd(const Making& making) {
  return cpu::MakeSgd(std::get<model::SgdAttributes>(making.op.attributes),
                      UpdateInputsOf(making.op), kernels_, threads_);
}

UpdateInputs Preparation::UpdateInputsOf(const Op& op) const {
  const auto address = [this](model::ValueId value) { return Address(value, 0); };
  return {Doubles(op.inputs[0]), Floats(op.inputs[1]), Floats(op.inputs[2]),
          UpdateArgsOf(program_, op, address)};
}

}  // namespace troupe::kernels::cpu
