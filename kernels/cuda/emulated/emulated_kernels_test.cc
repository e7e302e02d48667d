// Our CUDA kernels on the emulator, beside the float64 reference: what their threads compute, not how soon.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/cuda/emulated/launch.h"
#include "kernels/cuda/kernels.h"
#include "kernels/kernel_test.h"
#include "kernels/op_arguments.h"
#include "kernels/op_sequence.h"
#include "kernels/rope_frequencies.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::Op;
using model::OpKind;

using cuda::emulator::Launch;

// Every value has an address of its own, as PlainPlan has it.
class EmulatedExecutable : public Executable {
 public:
  EmulatedExecutable(const model::Program& program, const model::MemoryPlan& plan)
      : program_(program),
        plan_(plan),
        memory_(static_cast<size_t>(plan.persistent_bytes + kAlignment)) {}

  void Observe(OperationObserver*) override {}
  Status Run(int chunk_index, model::Piece piece, int, const RunOptions& options) override {
    for (const Op& op : program_.Ops(chunk_index, piece)) {
      TROUPE_RETURN_IF_ERROR(RunOp(op, options));
    }
    return OkStatus();
  }
  Status RunUpdate() override { return OkStatus(); }
  Status RunInitialize() override { return OkStatus(); }

  void* Address(model::ValueId value, int) override {
    const auto base = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (kAlignment - base % kAlignment) + plan_.locations[value].offset;
  }
  Status Write(model::ValueId value, int, std::span<const std::byte> bytes) override {
    std::ranges::copy(bytes, static_cast<std::byte*>(Address(value, 0)));
    return OkStatus();
  }
  Status Read(model::ValueId value, int, std::span<std::byte> bytes) override {
    std::copy_n(static_cast<const std::byte*>(Address(value, 0)), bytes.size(), bytes.data());
    return OkStatus();
  }
  const char* CurrentOperation() const override { return ""; }

 private:
  static constexpr size_t kAlignment = 64;

  Status RunOp(const Op& op, const RunOptions& options) {
    const OpArguments arguments(program_, op, [this](model::ValueId value) {
      return static_cast<char*>(Address(value, 0));
    });
    const bool bfloat16 = arguments.bfloat16();
    const bool accumulates = Accumulates(OverwritesOf(program_, op), options);
    switch (op.kind) {
      case OpKind::kEmbedding:
        Launch(cuda::Embedding(arguments.Embedding(), bfloat16));
        return OkStatus();
      case OpKind::kEmbeddingGrad: {
        EmbeddingGradArgs args = arguments.EmbeddingGrad();
        std::vector<std::byte> scratch(static_cast<size_t>(
            cuda::EmbeddingGradScratchBytes(args.rows, args.vocabulary)));
        args.accumulate = accumulates;
        Launch(cuda::ListEmbeddingRows(args, scratch.data()));
        Launch(cuda::EmbeddingGrad(args, scratch.data(), bfloat16));
        return OkStatus();
      }
      case OpKind::kRmsNorm:
      case OpKind::kAddRmsNorm:
        Launch(cuda::RmsNorm(arguments.RmsNorm(), bfloat16));
        return OkStatus();
      case OpKind::kRmsNormGrad: {
        RmsNormGradArgs args = arguments.RmsNormGrad();
        std::vector<float> partial(
            static_cast<size_t>(cuda::RmsNormGradBlocks(args.rows) * args.hidden), NAN);
        args.partial = partial.data();
        args.accumulate = accumulates;
        Launch(cuda::RmsNormGrad(args, bfloat16));
        Launch(cuda::RmsNormGradFinish(args));
        return OkStatus();
      }
      case OpKind::kAdd:
        Launch(cuda::Add(arguments.Add(), bfloat16));
        return OkStatus();
      case OpKind::kAccumulate: {
        AccumulateArgs args = arguments.Accumulate();
        args.accumulate = accumulates;
        Launch(cuda::Accumulate(args));
        return OkStatus();
      }
      case OpKind::kCast:
        Launch(cuda::Cast(arguments.Cast()));
        return OkStatus();
      case OpKind::kDropout:
        Launch(cuda::Dropout(arguments.Dropout(), bfloat16));
        return OkStatus();
      case OpKind::kRope:
        return RunRope(op, arguments.Rope(), bfloat16);
      case OpKind::kSplitHeads:
      case OpKind::kJoinHeads:
        Launch(cuda::SplitHeads(arguments.SplitHeads()));
        return OkStatus();
      case OpKind::kSwiGlu:
        Launch(cuda::SwiGlu(arguments.SwiGlu(), bfloat16));
        return OkStatus();
      case OpKind::kSwiGluGrad:
        Launch(cuda::SwiGluGrad(arguments.SwiGluGrad(), bfloat16));
        return OkStatus();
      case OpKind::kSoftmaxStats:
        Launch(cuda::SoftmaxStats(arguments.SoftmaxStats(), bfloat16));
        return OkStatus();
      case OpKind::kSoftmaxStatsGrad:
        Launch(cuda::SoftmaxStatsGrad(arguments.SoftmaxStatsGrad(), bfloat16));
        return OkStatus();
      case OpKind::kSoftmaxRescale:
      case OpKind::kSoftmaxRescaleGrad:
        Launch(cuda::SoftmaxRescale(arguments.SoftmaxRescale()));
        return OkStatus();
      case OpKind::kCrossEntropy: {
        CrossEntropyArgs args = arguments.CrossEntropy();
        args.accumulate = accumulates;
        Launch(cuda::CrossEntropy(args));
        return OkStatus();
      }
      case OpKind::kCrossEntropyGrad:
        Launch(cuda::CrossEntropyGrad(arguments.CrossEntropyGrad()));
        return OkStatus();
      case OpKind::kRouterTopK: {
        const RouterTopKArgs args = arguments.RouterTopK();
        return LaunchAll(cuda::RouterTopK(args, Scratch(cuda::RouterTopKScratchBytes(args))));
      }
      case OpKind::kRouterTopKGrad:
        Launch(cuda::RouterTopKGrad(arguments.RouterTopKGrad()));
        return OkStatus();
      case OpKind::kRouterLoad: {
        const RouterLoadArgs args = arguments.RouterLoad();
        return LaunchAll(cuda::RouterLoad(args, Scratch(cuda::RouterLoadScratchBytes(args))));
      }
      case OpKind::kRouterSlots: {
        const RouterSlotsArgs args = arguments.RouterSlots();
        return LaunchAll(cuda::RouterSlots(args, Scratch(cuda::RouterSlotsScratchBytes(args))));
      }
      case OpKind::kRouterLoss: {
        RouterLossArgs args = arguments.RouterLoss();
        args.accumulate = accumulates;
        return LaunchAll(cuda::RouterLoss(args, Scratch(cuda::RouterLossScratchBytes(args.rows))));
      }
      case OpKind::kRouterLossGrad:
        Launch(cuda::RouterLossGrad(arguments.RouterLossGrad()));
        return OkStatus();
      case OpKind::kRouterBias:
        Launch(cuda::RouterBias(arguments.RouterBias()));
        return OkStatus();
      case OpKind::kPermute:
        Launch(cuda::Permute(arguments.Permute(), bfloat16));
        return OkStatus();
      case OpKind::kPermuteGrad:
      case OpKind::kCombine:
        Launch(cuda::Combine(arguments.Combine(), bfloat16));
        return OkStatus();
      case OpKind::kCombineGrad:
        Launch(cuda::CombineGrad(arguments.CombineGrad(), bfloat16));
        return OkStatus();
      default:
        return Internal("{} is not under test", model::Name(op.kind));
    }
  }

  // Until the next operation; not a number wherever a kernel reads what none wrote.
  void* Scratch(int64_t bytes) {
    scratch_.assign(static_cast<size_t>(bytes + 7) / 8, NAN);
    return scratch_.data();
  }
  static Status LaunchAll(std::span<const cuda::KernelLaunch> launches) {
    for (const cuda::KernelLaunch& launch : launches) Launch(launch);
    return OkStatus();
  }

  // Half of the positions lie beyond the table.
  static Status RunRope(const Op& op, RopeArgs args, bool bfloat16) {
    constexpr int64_t kTableRows = 150;
    const auto& rope = std::get<model::RopeAttributes>(op.attributes);
    const int64_t half = rope.head_dim / 2;
    std::vector<double> frequencies;
    for (int64_t i = 0; i < half; ++i) frequencies.push_back(RopeFrequency(rope, i));
    std::vector<float> table;
    for (int64_t position = 0; position < kTableRows; ++position) {
      for (const bool sine : {false, true}) {
        for (const double frequency : frequencies) {
          const double angle = static_cast<double>(position) * frequency;
          table.push_back(static_cast<float>(sine ? std::sin(angle) : std::cos(angle)));
        }
      }
    }
    args.table = table.data();
    args.frequencies = frequencies.data();
    args.table_rows = kTableRows;
    Launch(cuda::Rope(args, bfloat16));
    return OkStatus();
  }

  const model::Program& program_;
  const model::MemoryPlan& plan_;
  std::vector<std::byte> memory_;
  std::vector<double> scratch_;
};

class EmulatedBackend : public Backend {
 public:
  std::string kernel_level() const override { return "emulated"; }
  StatusOr<std::unique_ptr<Executable>> Prepare(const model::Program& program,
                                                const model::MemoryPlan& plan,
                                                const FindCommunicator&) override {
    return std::unique_ptr<Executable>(std::make_unique<EmulatedExecutable>(program, plan));
  }
};

KernelSetting Setting(DType compute) {
  return {model::Name(compute), compute, [] { return std::make_unique<EmulatedBackend>(); }};
}

INSTANTIATE_TEST_SUITE_P(Emulated, KernelTest,
                         testing::Values(Setting(DType::kFloat32), Setting(DType::kBFloat16)),
                         NameOfSetting);

}  // namespace
}  // namespace troupe::kernels
