// Makes the commands on the control word and of the optimizer.
#include <vector>

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

Status Preparation::MakeAdamW(const Making& making) {
  const Op& op = making.op;
  const auto floats = [this](ValueId value) { return reinterpret_cast<float*>(Address(value, 0)); };
  std::vector<AdamWTensor> tensors;
  std::vector<int64_t> counts;
  for (size_t p = 0; p < program_.parameters.size(); ++p) {
    const model::ParameterEntry& entry = program_.parameters[p];
    const bool copies = entry.compute_copy != entry.value;
    const int64_t row = program_.value(entry.value).row_elements();
    for (const auto& [rows, decays] : model::DecayRuns(entry)) {
      const int64_t begin = rows.begin * row, count = rows.size() * row;
      tensors.push_back(
          {floats(entry.value) + begin, floats(entry.exp_avg) + begin,
           floats(entry.exp_avg_sq) + begin, floats(op.inputs[3 + p]) + begin,
           copies ? Address(entry.compute_copy, 0) + begin * SizeOf(model::DType::kBFloat16)
                  : nullptr,
           count, decays});
      counts.push_back(count);
    }
  }
  const std::vector<UpdatePart> parts = UpdateParts(counts);
  const auto& adamw = std::get<model::AdamWAttributes>(op.attributes);
  const AdamWTensors args = {Table(tensors),
                             Table(parts),
                             static_cast<int64_t>(parts.size()),
                             reinterpret_cast<const double*>(Address(op.inputs[0], 0)),
                             floats(op.inputs[1]),
                             floats(op.inputs[2]),
                             adamw.beta1,
                             adamw.beta2,
                             adamw.eps,
                             adamw.weight_decay,
                             adamw.max_norm};
  if (!parts.empty()) making.commands->emplace_back(Stream::kCompute, AdamW(args));
  making.commands->emplace_back(Stream::kCompute,
                                CountAppliedStep(args.control, args.applied_steps));
  return OkStatus();
}

}  // namespace troupe::kernels::cuda
