// Makes the commands of each operation kind: one kernel, as op_kinds.def lists it, or what MakeKind
// composes. Matmuls, attention, collectives and the update have files of their own (make_….cc).
#include <array>
#include <cstdint>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/quantize.h"
#include "kernels/cuda/kernels/widen.h"
#include "kernels/cuda/runtime/preparation.h"

namespace troupe::kernels::cuda {
namespace {

using model::Op;
using model::OpKind;
using model::ValueId;

// `args` with `accumulate` set, if they have it.
template <typename Args>
Args Accumulating(Args args, bool accumulate) {
  if constexpr (requires { args.accumulate; }) args.accumulate = accumulate;
  return args;
}

}  // namespace

Status Preparation::MakeInto(Commands* commands, const Op& op, int buffer, bool accumulate) {
  const Making making = {
      commands, op, buffer, accumulate,
      OpArguments(program_, op, [this, buffer](ValueId value) { return Address(value, buffer); })};
  switch (op.kind) {
#define TROUPE_CUDA_TYPED(Kind, name) \
  case OpKind::k##Kind:               \
    return making.Launch(             \
        Kind(Accumulating(making.arguments.Kind(), accumulate), making.arguments.bfloat16()));
#define TROUPE_CUDA_PLAIN(Kind, name) \
  case OpKind::k##Kind:               \
    return making.Launch(Kind(Accumulating(making.arguments.Kind(), accumulate)));
#define TROUPE_CUDA_MADE(Kind, name) \
  case OpKind::k##Kind:              \
    return Make##Kind(making);
#include "model/program/op_kinds.def"
  }
  return Internal("operation kind {} is unknown", static_cast<int>(op.kind));
}

Status Preparation::MakeEmbeddingGrad(const Making& making) {
  const EmbeddingGradArgs args = Accumulating(making.arguments.EmbeddingGrad(), making.accumulate);
  void* const scratch = AllocateBytes(EmbeddingGradScratchBytes(args.rows, args.vocabulary));
  TROUPE_RETURN_IF_ERROR(making.Launch(ListEmbeddingRows(args, scratch)));
  return making.Launch(EmbeddingGrad(args, scratch, making.arguments.bfloat16()));
}

Status Preparation::MakeAddRmsNorm(const Making& making) {
  return making.Launch(RmsNorm(making.arguments.RmsNorm(), making.arguments.bfloat16()));
}

Status Preparation::MakeRmsNormGrad(const Making& making) {
  RmsNormGradArgs args = Accumulating(making.arguments.RmsNormGrad(), making.accumulate);
  args.partial = Allocate<float>(RmsNormGradBlocks(args.rows, args.hidden) * args.hidden);
  return making.Launch(
      std::array{RmsNormGrad(args, making.arguments.bfloat16()), RmsNormGradFinish(args)});
}

Status Preparation::MakeQuantize(const Making& making) {
  QuantizeArgs args = Accumulating(making.arguments.Quantize(), making.accumulate);
  args.partial = reinterpret_cast<float*>(AllocateBytes(QuantizeScratchBytes(args)));
  return making.Launch(Quantize(args));
}

Status Preparation::MakeAmaxHistory(const Making& making) {
  const std::vector<AmaxHistoryEntry> entries = making.arguments.AmaxHistories();
  return making.Launch(AmaxHistory(Table(entries), static_cast<int64_t>(entries.size()),
                                   reinterpret_cast<const double*>(making.in(0))));
}

Status Preparation::MakeRope(const Making& making) {
  RopeArgs args = making.arguments.Rope();
  rope_tables_.Place(std::get<model::RopeAttributes>(making.op.attributes), At(layout_.bytes()),
                     &args);
  return making.Launch(Rope(args, making.arguments.bfloat16()));
}

Status Preparation::MakeJoinHeads(const Making& making) {
  return making.Launch(SplitHeads(making.arguments.SplitHeads()));
}

Status Preparation::MakeSoftmaxRescaleGrad(const Making& making) {
  return making.Launch(SoftmaxRescale(making.arguments.SoftmaxRescale()));
}

Status Preparation::MakeCopy(const Making& making) {
  AddCopy(making.commands, making.in(0), making.out(0),
          program_.value(making.op.inputs[0]).bytes());
  return OkStatus();
}

Status Preparation::MakeCast(const Making& making) {
  if (program_.value(making.op.outputs[0]).dtype != model::DType::kFloat32) {
    return making.Launch(Cast(making.arguments.Cast()));
  }
  return making.Launch(
      Widen({making.in(0), reinterpret_cast<float*>(making.out(0)), making.arguments.elements()}));
}

Status Preparation::MakeRouterLogitsGradWeight(const Making& making) {
  const RouterLogitsGradWeightArgs args =
      Accumulating(making.arguments.RouterLogitsGradWeight(), making.accumulate);
  void* const scratch = AllocateBytes(RouterLogitsGradWeightScratchBytes(args));
  return making.Launch(RouterLogitsGradWeight(args, scratch, making.arguments.bfloat16()));
}

Status Preparation::MakeRouterTopK(const Making& making) {
  const RouterTopKArgs args = making.arguments.RouterTopK();
  return making.Launch(RouterTopK(args, AllocateBytes(RouterTopKScratchBytes(args))));
}

Status Preparation::MakeRouterLoad(const Making& making) {
  const RouterLoadArgs args = making.arguments.RouterLoad();
  return making.Launch(RouterLoad(args, AllocateBytes(RouterLoadScratchBytes(args))));
}

Status Preparation::MakeRouterSlots(const Making& making) {
  const RouterSlotsArgs args = making.arguments.RouterSlots();
  return making.Launch(RouterSlots(args, AllocateBytes(RouterSlotsScratchBytes(args))));
}

Status Preparation::MakeRouterLoss(const Making& making) {
  const RouterLossArgs args = Accumulating(making.arguments.RouterLoss(), making.accumulate);
  return making.Launch(RouterLoss(args, AllocateBytes(RouterLossScratchBytes(args.rows))));
}

Status Preparation::MakePermuteGrad(const Making& making) {
  return making.Launch(Combine(making.arguments.Combine(), making.arguments.bfloat16()));
}

}  // namespace troupe::kernels::cuda
