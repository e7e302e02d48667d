// Totals, sum of squares, AdamW (Loshchilov and Hutter 2019; eps is added to the bias-corrected
// root, as in PyTorch) and SGD as in PyTorch. Memory-bound; each element is read once.
#include "kernels/cuda/kernels/update.h"

#include "kernels/backend/optimizer_numbers.h"
#include "kernels/backend/update_decision.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int64_t kStride = int64_t{4} * kThreads;  // elements that a block takes in one round

struct TotalsArgs {
  const double* totals;
  double* control;
  int rank;
};

TROUPE_KERNEL void ControlTotalsKernel(TotalsArgs args) {
  AddTotals(args.rank, args.totals, args.control);
}

struct HaltArgs {
  double* control;
  double* halted;
};

TROUPE_KERNEL void ControlHaltKernel(HaltArgs args) { Halt(args.control, args.halted); }

// Returns the sum over a block of kThreads threads to each of them. The order is the same in every
// run.
TROUPE_DEVICE double BlockSum64(double value, double* shared) {
  const unsigned own = ThreadIndex();
  shared[own] = value;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    SyncBlock();
    if (own < half) shared[own] += shared[own + half];
  }
  // All threads wait, because a compiler may load the sum in each of them, also where only thread 0
  // uses it. racecheck reports such a load while thread 0 still writes.
  SyncBlock();
  return shared[0];
}

// Whether elements from `address` on may be accessed four at a time. A shard of a tensor may start
// at any of its rows.
template <typename T>
TROUPE_DEVICE bool AlignedToFour(const T* address) {
  return reinterpret_cast<uintptr_t>(address) % (4 * sizeof(T)) == 0;
}

struct RoutedArgs {
  const RouterTotals* totals;
  int64_t count;
  double* control;
};

TROUPE_KERNEL void ControlRoutedKernel(RoutedArgs args) {
  TROUPE_SHARED double routed_of[kThreads];
  TROUPE_SHARED double dropped_of[kThreads];
  double routed = 0, dropped = 0;
  for (int64_t i = 0; i < args.count; ++i) {
    const RouterTotals totals = args.totals[i];
    for (int64_t e = ThreadIndex(); e < totals.experts; e += kThreads) {
      routed += totals.lanes[model::kRouterLanes + e];
    }
  }
  for (int64_t i = ThreadIndex(); i < args.count; i += kThreads) {
    dropped += args.totals[i].lanes[model::kRouterDropped];
  }
  routed = BlockSum64(routed, routed_of);
  dropped = BlockSum64(dropped, dropped_of);
  if (ThreadIndex() == 0) {
    args.control[model::kLaneRouted] += routed;
    args.control[model::kLaneDropped] += dropped;
  }
}

TROUPE_KERNEL void SumOfSquaresKernel(SumOfSquaresTensors args) {
  TROUPE_SHARED double shared[kThreads];
  const UpdatePart part = args.parts[BlockIndex().x];
  const GradientTensor tensor = args.tensors[part.tensor];
  const int64_t first = part.part * kUpdateElements;
  const int64_t count =
      tensor.count - first < kUpdateElements ? tensor.count - first : kUpdateElements;
  const float* x = tensor.data + first;
  double sum = 0;
  const int64_t packed = AlignedToFour(x) ? count / 4 * 4 : 0;
  for (int64_t i = int64_t{ThreadIndex()} * 4; i < packed; i += kStride) {
    const auto v = Pack<float, 4>::Load(x + i);
    for (int k = 0; k < 4; ++k) sum += static_cast<double>(v[k]) * v[k];
  }
  for (int64_t i = packed + ThreadIndex(); i < count; i += kThreads)
    sum += static_cast<double>(x[i]) * x[i];
  sum = BlockSum64(sum, shared);
  if (ThreadIndex() == 0) args.partial[BlockIndex().x] = sum;
}

TROUPE_KERNEL void SumOfSquaresFinishKernel(SumOfSquaresTensors args) {
  TROUPE_SHARED double shared[kThreads];
  double sum = 0;
  for (int64_t i = ThreadIndex(); i < args.num_parts; i += kThreads) sum += args.partial[i];
  sum = BlockSum64(sum, shared);
  if (ThreadIndex() == 0) AddSumOfSquares(args.rank, sum, args.control);
}

template <int N>
TROUPE_DEVICE void UpdateElements(const UpdateArgs& of, const AdamWArgs& step, int64_t i) {
  const auto gradient = Pack<float, N>::Load(of.gradient + i);
  auto mean = Pack<float, N>::Load(of.states[0] + i);
  auto square = Pack<float, N>::Load(of.states[1] + i);
  auto parameter = Pack<float, N>::Load(of.parameter + i);
  Pack<BFloat16, N> copy;
  const float decay = of.decays ? step.decay : 1.0f;
  for (int k = 0; k < N; ++k) {
    const float g = gradient[k] * step.gradient_scale;
    mean.Set(k, mean[k] * step.beta1 + g * (1.0f - step.beta1));
    square.Set(k, square[k] * step.beta2 + g * g * (1.0f - step.beta2));
    const float root = sqrtf(square[k]) * step.inverse_correction + step.eps;
    parameter.Set(k, parameter[k] * decay - mean[k] * step.step_size / root);
    copy.Set(k, parameter[k]);
  }
  mean.Store(of.states[0] + i);
  square.Store(of.states[1] + i);
  parameter.Store(of.parameter + i);
  if (of.copy != nullptr) copy.Store(static_cast<BFloat16*>(of.copy) + i);
}

template <int N>
TROUPE_DEVICE void UpdateElements(const UpdateArgs& of, const SgdArgs& step, int64_t i) {
  const auto gradient = Pack<float, N>::Load(of.gradient + i);
  auto parameter = Pack<float, N>::Load(of.parameter + i);
  Pack<float, N> buffer{};
  const bool has_buffer = of.states[0] != nullptr;
  if (has_buffer) buffer = Pack<float, N>::Load(of.states[0] + i);
  Pack<BFloat16, N> copy;
  const float decay = of.decays ? step.decay : 0.0f;
  for (int k = 0; k < N; ++k) {
    float g = gradient[k] * step.gradient_scale + parameter[k] * decay;
    if (has_buffer) {
      buffer.Set(k, buffer[k] * step.momentum + g);
      g = step.nesterov ? g + buffer[k] * step.momentum : buffer[k];
    }
    parameter.Set(k, parameter[k] - g * step.rate);
    copy.Set(k, parameter[k]);
  }
  if (has_buffer) buffer.Store(of.states[0] + i);
  parameter.Store(of.parameter + i);
  if (of.copy != nullptr) copy.Store(static_cast<BFloat16*>(of.copy) + i);
}

template <typename Attributes>
struct OptimizerArgs {
  UpdateTensors of;
  Attributes attributes;
};

// `Args`: the numbers that NumbersOf returns for `Attributes`.
template <typename Attributes, typename Args>
TROUPE_KERNEL void OptimizerKernel(OptimizerArgs<Attributes> args) {
  TROUPE_SHARED Args shared;
  TROUPE_SHARED bool applies;
  const UpdatePart part = args.of.parts[BlockIndex().x];
  const UpdateArgs tensor = args.of.tensors[part.tensor];
  if (ThreadIndex() == 0) {
    const UpdateDecision decision = DecideUpdate(args.of.control, args.attributes.max_norm);
    applies = decision.apply;
    shared = NumbersOf(args.attributes, decision.gradient_scale, *args.of.learning_rate,
                       *args.of.applied_steps);
  }
  SyncBlock();
  if (!applies) return;
  const Args step = shared;
  const int64_t first = part.part * kUpdateElements;
  const int64_t end =
      first + kUpdateElements < tensor.count ? first + kUpdateElements : tensor.count;
  const bool fours = AlignedToFour(tensor.parameter) && AlignedToFour(tensor.states[0]) &&
                     AlignedToFour(tensor.states[1]) && AlignedToFour(tensor.gradient) &&
                     AlignedToFour(static_cast<const BFloat16*>(tensor.copy));
  const int64_t packed = fours ? first + (end - first) / 4 * 4 : first;
  for (int64_t i = first + int64_t{ThreadIndex()} * 4; i < packed; i += kStride) {
    UpdateElements<4>(tensor, step, i);
  }
  for (int64_t i = packed + ThreadIndex(); i < end; i += kThreads)
    UpdateElements<1>(tensor, step, i);
}

struct CountArgs {
  const double* control;
  float* applied_steps;
};

TROUPE_KERNEL void CountStepKernel(CountArgs args) {
  if (DecideUpdate(args.control, 0).apply) *args.applied_steps += 1.0f;
}

LaunchShape BlocksOf(int64_t parts) {
  return {.blocks_x = static_cast<unsigned>(parts), .threads = kThreads};
}

}  // namespace

std::vector<UpdatePart> UpdateParts(std::span<const int64_t> counts) {
  std::vector<UpdatePart> parts;
  for (size_t tensor = 0; tensor < counts.size(); ++tensor) {
    for (int64_t part = 0; part * kUpdateElements < counts[tensor]; ++part) {
      parts.push_back({static_cast<int32_t>(tensor), static_cast<int32_t>(part)});
    }
  }
  return parts;
}

KernelLaunch ControlTotals(int rank, const double* totals, double* control) {
  return MakeLaunch("control_totals", &ControlTotalsKernel, {}, TotalsArgs{totals, control, rank});
}

KernelLaunch ControlRouted(const RouterTotals* totals, int64_t count, double* control) {
  return MakeLaunch("control_routed", &ControlRoutedKernel, BlocksOf(1),
                    RoutedArgs{totals, count, control});
}

KernelLaunch SumOfSquares(const SumOfSquaresTensors& args) {
  return MakeLaunch("sum_of_squares", &SumOfSquaresKernel, BlocksOf(args.num_parts), args);
}

KernelLaunch SumOfSquaresFinish(const SumOfSquaresTensors& args) {
  return MakeLaunch("sum_of_squares_finish", &SumOfSquaresFinishKernel, BlocksOf(1), args);
}

KernelLaunch ControlHalt(double* control, double* halted) {
  return MakeLaunch("control_halt", &ControlHaltKernel, {}, HaltArgs{control, halted});
}

KernelLaunch CountStep(const double* control, float* applied_steps) {
  return MakeLaunch("count_step", &CountStepKernel, {}, CountArgs{control, applied_steps});
}

KernelLaunch AdamW(const UpdateTensors& args, const model::AdamWAttributes& attributes) {
  return MakeLaunch("adamw", &OptimizerKernel<model::AdamWAttributes, AdamWArgs>,
                    BlocksOf(args.num_parts),
                    OptimizerArgs<model::AdamWAttributes>{args, attributes});
}

KernelLaunch Sgd(const UpdateTensors& args, const model::SgdAttributes& attributes) {
  return MakeLaunch("sgd", &OptimizerKernel<model::SgdAttributes, SgdArgs>,
                    BlocksOf(args.num_parts),
                    OptimizerArgs<model::SgdAttributes>{args, attributes});
}

}  // namespace troupe::kernels::cuda
