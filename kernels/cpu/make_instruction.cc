// Makes the instruction of each operation kind: one kernel, as op_kinds.def lists it, or what
// MakeKind composes. Matmuls, collectives and the update have files of their own (make_….cc).
#include <cstring>
#include <utility>

#include "kernels/cpu/preparation.h"
#include "kernels/cpu/quantize.h"

namespace troupe::kernels::cpu {
namespace {

using model::Op;
using model::OpKind;
using model::ValueId;

template <typename Args>
std::unique_ptr<Instruction> OnKernel(const Args& args, Kernel<Args> kernel, int threads,
                                      Overwrites overwrites = Overwrites::kNever,
                                      Kernel<Args> finish = nullptr) {
  return std::make_unique<KernelInstruction<Args>>(args, kernel, threads, overwrites, finish);
}

template <typename Args>
std::unique_ptr<Instruction> OnScratch(Args args, char* scratch, Kernel<Args> kernel, int threads) {
  args.scratch = scratch;
  return OnKernel(args, kernel, threads);
}

class CopyInstruction : public Instruction {
 public:
  CopyInstruction(const void* from, void* to, int64_t bytes)
      : from_(from), to_(to), bytes_(bytes) {}
  Status Run(const RunOptions&) override {
    if (from_ != to_) std::memcpy(to_, from_, bytes_);
    return OkStatus();
  }

 private:
  const void* const from_;
  void* const to_;
  const int64_t bytes_;
};

}  // namespace

MadeInstruction Preparation::MakeOne(const Op& op, int buffer) {
  const OpArguments arguments(program_, op,
                              [this, buffer](ValueId value) { return Address(value, buffer); });
  const Making making = {op, buffer, arguments, ThreadsFor(arguments.elements()),
                         OverwritesOf(program_, op)};
  switch (op.kind) {
#define TROUPE_CPU_TYPED(Kind, name)                                                  \
  case OpKind::k##Kind:                                                               \
    return OnKernel(arguments.Kind(), kernels_.name[making.column()], ThreadsFor(op), \
                    making.overwrites);
#define TROUPE_CPU_PLAIN(Kind, name) \
  case OpKind::k##Kind:              \
    return OnKernel(arguments.Kind(), kernels_.name, ThreadsFor(op), making.overwrites);
#define TROUPE_CPU_SERIAL(Kind, name) \
  case OpKind::k##Kind:               \
    return OnKernel(arguments.Kind(), &cpu::Kind, 1, making.overwrites);
#define TROUPE_CPU_MADE(Kind, name) \
  case OpKind::k##Kind:             \
    return Make##Kind(making);
#include "model/program/op_kinds.def"
  }
  return Internal("operation kind {} is unknown", static_cast<int>(op.kind));
}

MadeInstruction Preparation::MakeAddRmsNorm(const Making& making) {
  return OnKernel(making.arguments.RmsNorm(), kernels_.rms_norm[making.column()], making.threads);
}

MadeInstruction Preparation::MakeRmsNormGrad(const Making& making) {
  RmsNormGradArgs args = making.arguments.RmsNormGrad();
  args.partial = reinterpret_cast<float*>(scratch());
  return OnKernel(args, kernels_.rms_norm_grad[making.column()], making.threads, making.overwrites,
                  kernels_.rms_norm_grad_finish);
}

MadeInstruction Preparation::MakeQuantize(const Making& making) {
  return cpu::MakeQuantize(making.arguments.Quantize(), kernels_, scratch(), making.threads,
                           making.overwrites);
}

MadeInstruction Preparation::MakeAmaxHistory(const Making& making) {
  return cpu::MakeAmaxHistory(reinterpret_cast<const double*>(making.in(0)),
                              making.arguments.AmaxHistories());
}

MadeInstruction Preparation::MakeRope(const Making& making) {
  RopeArgs args = making.arguments.Rope();
  rope_tables_.Place(std::get<model::RopeAttributes>(making.op.attributes), tables(), &args);
  return OnKernel(args, kernels_.rope[making.column()], making.threads);
}

MadeInstruction Preparation::MakeJoinHeads(const Making& making) {
  return OnKernel(making.arguments.SplitHeads(), kernels_.split_heads, making.threads);
}

MadeInstruction Preparation::MakeAttention(const Making& making) {
  return OnScratch(making.arguments.Attention(), scratch(), kernels_.attention[making.column()],
                   making.threads);
}

MadeInstruction Preparation::MakeAttentionGrad(const Making& making) {
  return OnScratch(making.arguments.AttentionGrad(), scratch(),
                   kernels_.attention_grad[making.column()], making.threads);
}

MadeInstruction Preparation::MakeAttentionPart(const Making& making) {
  return OnScratch(making.arguments.AttentionPart(), scratch(), kernels_.attention[making.column()],
                   making.threads);
}

MadeInstruction Preparation::MakeAttentionPartGrad(const Making& making) {
  return OnScratch(making.arguments.AttentionPartGrad(), scratch(),
                   kernels_.attention_grad[making.column()], making.threads);
}

MadeInstruction Preparation::MakeSoftmaxRescaleGrad(const Making& making) {
  return OnKernel(making.arguments.SoftmaxRescale(), kernels_.softmax_rescale, making.threads);
}

MadeInstruction Preparation::MakePermuteGrad(const Making& making) {
  return OnKernel(making.arguments.Combine(), kernels_.combine[making.column()], making.threads);
}

MadeInstruction Preparation::MakeCopy(const Making& making) {
  return std::make_unique<CopyInstruction>(making.in(0), making.out(0),
                                           program_.value(making.op.inputs[0]).bytes());
}

MadeInstruction Preparation::MakeCast(const Making& making) {
  if (program_.value(making.op.outputs[0]).dtype != model::DType::kFloat32) {
    return OnKernel(making.arguments.Cast(), kernels_.cast, making.threads);
  }
  const WidenArgs args = {making.in(0), reinterpret_cast<float*>(making.out(0)),
                          making.arguments.elements()};
  return OnKernel(args, kernels_.widen, making.threads);
}

}  // namespace troupe::kernels::cpu
