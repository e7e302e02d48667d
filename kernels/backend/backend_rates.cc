#include "kernels/backend/backend_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/backend/plain_program.h"
#include "kernels/backend/program_part.h"
#include "model/cost.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;
using model::Program;

constexpr int kTimes = 5;
constexpr int kRepeatsMax = 1000;

// Seconds of one run of `program`, measured over many consecutive runs. They form one part of a
// step, so that a device may launch them as one graph.
StatusOr<double> SecondsOf(Backend& backend, const Program& program, double at_once) {
  const model::MemoryPlan plan = PlainPlan(program);
  TROUPE_ASSIGN_OR_RETURN(const auto executable, backend.Prepare(program, plan, nullptr));
  TROUPE_RETURN_IF_ERROR(executable->Connect());
  TROUPE_RETURN_IF_ERROR(FillRandomly(*executable, program));
  const auto once = [&] {
    return executable->Run(0, model::Piece::kForward, 0, {.first_microbatch = true});
  };
  const auto timed = [&](auto&& body) -> StatusOr<double> {
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_RETURN_IF_ERROR(body());
    TROUPE_RETURN_IF_ERROR(executable->Finish());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  TROUPE_RETURN_IF_ERROR(timed(once).status());  // warm-up
  TROUPE_ASSIGN_OR_RETURN(const double alone, timed(once));
  const int count = static_cast<int>(
      std::clamp(std::ceil(at_once / std::max(alone, 1e-6)), 1.0, 1.0 * kRepeatsMax));
  const auto many = [&]() -> Status {
    TROUPE_RETURN_IF_ERROR(executable->BeginPart(StepPart::kGradients));
    for (int i = 0; i < count; ++i) TROUPE_RETURN_IF_ERROR(once());
    return executable->EndPart();
  };
  // The first run is recorded, the second is captured as a graph.
  for (int i = 0; i < 2; ++i) TROUPE_RETURN_IF_ERROR(timed(many).status());
  std::vector<double> seconds;
  for (int i = 0; i < kTimes; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const double all, timed(many));
    seconds.push_back(all / count);
  }
  std::ranges::sort(seconds);
  return seconds[kTimes / 2];
}

Program MatmulProgram(DType dtype, int64_t extent) {
  Program program = PlainProgram();
  const model::ValueId x = AddPlainValue(program, dtype, {extent, extent}, "x");
  const model::ValueId w = AddPlainValue(program, dtype, {extent, extent}, "w");
  const model::ValueId y = AddPlainValue(program, dtype, {extent, extent}, "y");
  AddPlainOp(program, {.kind = OpKind::kMatmul, .inputs = {x, w}, .outputs = {y}});
  return program;
}

Program Attention(const BackendRatesOptions& options) {
  Program program = PlainProgram();
  const int64_t rows = options.samples * options.tokens, width = options.heads * options.head_dim;
  const auto add = [&](DType dtype, int64_t columns, const char* name) {
    return AddPlainValue(program, dtype, {rows, columns}, name);
  };
  const model::ValueId qkv = add(DType::kBFloat16, 3 * width, "qkv"),
                       o = add(DType::kBFloat16, width, "o");
  const model::ValueId lse = add(DType::kFloat32, options.heads, "lse");
  const model::ValueId gradient = add(DType::kBFloat16, width, "do"),
                       dqkv = add(DType::kBFloat16, 3 * width, "dqkv");
  const model::AttentionAttributes heads = {options.heads, options.heads, options.head_dim,
                                            options.tokens};
  AddPlainOp(program, {OpKind::kAttention, heads, {qkv}, {o, lse}});
  AddPlainOp(program, {OpKind::kAttentionGrad, heads, {gradient, qkv, o, lse}, {dqkv}});
  return program;
}

Program Copy(int64_t elements) {
  Program program = PlainProgram();
  const model::ValueId from = AddPlainValue(program, DType::kFloat32, {elements}, "from");
  const model::ValueId to = AddPlainValue(program, DType::kFloat32, {elements}, "to");
  AddPlainOp(
      program,
      {.kind = OpKind::kAccumulate, .inputs = {from}, .outputs = {to}, .first_writer = true});
  return program;
}

double Flops(const Program& program) {
  double flops = 0;
  for (const model::Op& op : program.Ops(0, model::Piece::kForward))
    flops += model::ModelFlops(op, program);
  return flops;
}

}  // namespace

StatusOr<BackendRates> MeasureBackendRates(Backend& backend, const BackendRatesOptions& options) {
  const auto flops_a_second = [&](const Program& program) -> StatusOr<double> {
    TROUPE_ASSIGN_OR_RETURN(const double seconds, SecondsOf(backend, program, options.seconds));
    return Flops(program) / seconds;
  };
  BackendRates rates;
  TROUPE_ASSIGN_OR_RETURN(rates.float32_matmuls,
                          flops_a_second(MatmulProgram(DType::kFloat32, options.extent)));
  TROUPE_ASSIGN_OR_RETURN(rates.bfloat16_matmuls,
                          flops_a_second(MatmulProgram(DType::kBFloat16, options.extent)));
  TROUPE_ASSIGN_OR_RETURN(rates.attention, flops_a_second(Attention(options)));
  const int64_t elements =
      std::max<int64_t>(1, options.copy_bytes / static_cast<int64_t>(sizeof(float)));
  TROUPE_ASSIGN_OR_RETURN(const double copy, SecondsOf(backend, Copy(elements), options.seconds));
  rates.bytes = 2.0 * sizeof(float) * static_cast<double>(elements) / copy;
  TROUPE_ASSIGN_OR_RETURN(rates.launch_seconds, SecondsOf(backend, Copy(1), options.seconds));
  return rates;
}

}  // namespace troupe::kernels
