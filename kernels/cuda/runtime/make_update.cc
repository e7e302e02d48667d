// Makes the commands on the control word and of the optimizer.
#include <vector>

#include "kernels/backend/update_args.h"
#include "kernels/cuda/kernels/update.h"
#include "kernels/cuda/runtime/preparation.h"
#include "model/program/control_word.h"

namespace troupe::kernels::cuda {

using model::Op;
using model::ValueId;

Status Preparation::MakeControlTotals(const Making& making) {
  return making.Launch(ControlTotals(std::get<model::ControlAttributes>(making.op.attributes).rank,
                                     reinterpret_cast<const double*>(making.in(1)),
                                     reinterpret_cast<double*>(making.in(0))));
}

Status Preparation::MakeControlHalt(const Making& making) {
  return making.Launch(ControlHalt(reinterpret_cast<double*>(making.in(0)),
                                   reinterpret_cast<double*>(making.in(1))));
}

Status Preparation::MakeControlRouted(const Making& making) {
  const Op& op = making.op;
  std::vector<RouterTotals> totals;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    totals.push_back({reinterpret_cast<const double*>(Address(op.inputs[i], 0)),
                      program_.value(op.inputs[i]).dims[0].local - model::kRouterLanes});
  }
  making.commands->emplace_back(Stream::kCompute,
                                ControlRouted(Table(totals), static_cast<int64_t>(totals.size()),
                                              reinterpret_cast<double*>(Address(op.inputs[0], 0))));
  return OkStatus();
}

Status Preparation::MakeSumOfSquares(const Making& making) {
  const Op& op = making.op;
  std::vector<GradientTensor> gradients;
  std::vector<int64_t> counts;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    const int64_t count = program_.value(op.inputs[i]).elements();
    gradients.push_back({reinterpret_cast<const float*>(Address(op.inputs[i], 0)), count});
    counts.push_back(count);
  }
  const std::vector<UpdatePart> parts = UpdateParts(counts);
  const auto num_parts = static_cast<int64_t>(parts.size());
  const SumOfSquaresTensors args = {Table(gradients),
                                    Table(parts),
                                    num_parts,
                                    Allocate<double>(num_parts),
                                    reinterpret_cast<double*>(Address(op.inputs[0], 0)),
                                    std::get<model::ControlAttributes>(op.attributes).rank};
  if (num_parts > 0) making.commands->emplace_back(Stream::kCompute, SumOfSquares(args));
  making.commands->emplace_back(Stream::kCompute, SumOfSquaresFinish(args));
  return OkStatus();
}

Status Preparation::MakeCountStep(const Making& making) {
  return making.Launch(CountStep(reinterpret_cast<const double*>(making.in(0)),
                                 reinterpret_cast<float*>(making.in(1))));
}

Status Preparation::MakeAdamW(const Making& making) {
  const auto& attributes = std::get<model::AdamWAttributes>(making.op.attributes);
  return MakeOptimizer(making, [&](const UpdateTensors& args) { return AdamW(args, attributes); });
}

Status Preparation::MakeSgd(const Making& making) {
  const auto& attributes = std::get<model::SgdAttributes>(making.op.attributes);
  return MakeOptimizer(making, [&](const UpdateTensors& args) { return Sgd(args, attributes); });
}

Status Preparation::MakeOptimizer(
    const Making& making, const std::function<KernelLaunch(const UpdateTensors&)>& launch_of) {
  const Op& op = making.op;
  const auto address = [this](ValueId value) { return Address(value, 0); };
  const std::vector<UpdateArgs> tensors = UpdateArgsOf(program_, op, address);
  std::vector<int64_t> counts;
  for (const UpdateArgs& tensor : tensors) counts.push_back(tensor.count);
  const std::vector<UpdatePart> parts = UpdateParts(counts);
  if (parts.empty()) return OkStatus();
  making.commands->emplace_back(
      Stream::kCompute, launch_of({Table(tensors), Table(parts), static_cast<int64_t>(parts.size()),
                                   reinterpret_cast<const double*>(address(op.inputs[0])),
                                   reinterpret_cast<const float*>(address(op.inputs[1])),
                                   reinterpret_cast<const float*>(address(op.inputs[2]))}));
  return OkStatus();
}

}  // namespace troupe::kernels::cuda
