#include "bench/gpu/operations.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "kernels/backend/program_part.h"
#include "kernels/cuda/libraries/attention_timing.h"
#include "kernels/cuda/runtime/device_timer.h"
#include "kernels/cuda/runtime/noise.h"
#include "model/build.h"
#include "model/cost.h"
#include "model/program/memory_plan.h"
#include "plan/make_plan.h"
#include "tests/gpu/training.h"
#include "worker/executor/rank_program.h"

namespace troupe {
namespace {

using kernels::StepPart;
using kernels::cuda::CudaDevice;
using kernels::cuda::DeviceMemory;
using kernels::cuda::DeviceTimer;
using kernels::cuda::Stream;
using model::Piece;

constexpr double kSeconds = 0.05;  // duration of one measurement
constexpr int kTimes = 5;          // number of measurements; the median counts

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Returns the seconds of one call of `enqueue`, measured over many in a row.
StatusOr<double> SecondsOf(DeviceTimer& timer, const std::function<Status()>& enqueue) {
  const auto repeat = [&](int count) {
    return timer.Seconds([&] {
      Status status = OkStatus();
      for (int i = 0; i < count && status.ok(); ++i) status = enqueue();
      return status;
    });
  };
  TROUPE_RETURN_IF_ERROR(repeat(1).status());  // warm-up
  TROUPE_ASSIGN_OR_RETURN(const double once, repeat(1));
  const int count =
      static_cast<int>(std::clamp(std::ceil(kSeconds / std::max(once, 1e-6)), 1.0, 1000.0));
  std::vector<double> seconds;
  for (int i = 0; i < kTimes; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const double all, repeat(count));
    seconds.push_back(all / count);
  }
  return Median(seconds);
}

// Two blocks, embedding and head of the preset in one chunk on one rank.
StatusOr<RankProgram> ProgramOf(const OperationsOptions& options) {
  // The operations run on noise: nothing reads the data.
  TROUPE_ASSIGN_OR_RETURN(const v1::JobSpec job, BareTrainingJob({.preset = options.preset,
                                                                  .pattern = "AD",
                                                                  .devices = "cuda",
                                                                  .batch = options.batch,
                                                                  .micro_batch = options.batch,
                                                                  .sequence = options.sequence,
                                                                  .dtype = options.dtype,
                                                                  .float8 = options.float8,
                                                                  .data = "/tokens.bin"}));
  TROUPE_ASSIGN_OR_RETURN(const v1::Plan plan, MakeUnplacedPlan(job));
  return MakeRankProgram(job, plan, 0);
}

std::string KindOf(const model::Op& op) {
  const auto* quantize = std::get_if<model::QuantizeAttributes>(&op.attributes);
  if (quantize == nullptr || quantize->source == model::QuantizeSource::kValue)
    return model::Name(op.kind);
  return fmt::format("{}_of_{}", model::Name(op.kind), model::Name(quantize->source));
}

// Returns the seconds of one run of the only operation of `executable`. Many runs in a row become
// one graph, as in a part of a step that is replayed.
StatusOr<double> SecondsOfOperation(DeviceTimer& timer, kernels::Executable& executable,
                                    bool update) {
  const auto once = [&] {
    return update ? executable.RunUpdate()
                  : executable.Run(0, Piece::kForward, 0, {.first_microbatch = true});
  };
  TROUPE_RETURN_IF_ERROR(timer.Seconds(once).status());  // warm-up
  TROUPE_ASSIGN_OR_RETURN(const double alone, timer.Seconds(once));
  const int count =
      static_cast<int>(std::clamp(std::ceil(kSeconds / std::max(alone, 1e-6)), 1.0, 200.0));
  const StepPart part = update ? StepPart::kUpdate : StepPart::kGradients;
  const auto many = [&]() -> Status {
    TROUPE_RETURN_IF_ERROR(executable.BeginPart(part));
    for (int i = 0; i < count; ++i) TROUPE_RETURN_IF_ERROR(once());
    return executable.EndPart();
  };
  TROUPE_RETURN_IF_ERROR(timer.Seconds(many).status());  // captures the graph
  std::vector<double> seconds;
  for (int i = 0; i < kTimes; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const double all, timer.Seconds(many));
    seconds.push_back(all / count);
  }
  return Median(seconds);
}

}  // namespace

StatusOr<DevicePeak> MeasurePeak(CudaDevice& device, kernels::cuda::MatmulLibrary& matmuls,
                                 bool bfloat16) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  constexpr int64_t kExtent = 8192;
  TROUPE_ASSIGN_OR_RETURN(const auto timer, DeviceTimer::Make(device));
  TROUPE_ASSIGN_OR_RETURN(const DeviceMemory from, device.Allocate(kBytes));
  TROUPE_ASSIGN_OR_RETURN(const DeviceMemory to, device.Allocate(kBytes));
  DevicePeak peak;
  TROUPE_ASSIGN_OR_RETURN(const double copy, SecondsOf(*timer, [&] {
                            return device.Copy(to.get(), from.get(), kBytes, Stream::kCompute);
                          }));
  peak.bytes_per_second = 2.0 * kBytes / copy;

  const kernels::MatmulShape shape = {kernels::MatmulKind::kForward, bfloat16, kExtent, kExtent,
                                      kExtent};
  TROUPE_ASSIGN_OR_RETURN(const auto matmul, matmuls.Prepare(shape));
  if (matmul == nullptr) return Internal("the library has no matmul of {0} by {0} by {0}", kExtent);
  TROUPE_ASSIGN_OR_RETURN(const DeviceMemory workspace, device.Allocate(matmul->workspace_bytes()));
  TROUPE_RETURN_IF_ERROR(kernels::cuda::FillWithNoise(device, from.get(), kBytes, bfloat16));
  const char* const b = from.get() + kExtent * kExtent * (bfloat16 ? 2 : 4);
  TROUPE_ASSIGN_OR_RETURN(const double multiply, SecondsOf(*timer, [&] {
                            return matmul->Enqueue(from.get(), b, to.get(), false, workspace.get(),
                                                   Stream::kCompute, {});
                          }));
  peak.flops = 2.0 * kExtent * kExtent * kExtent / multiply;
  return peak;
}

Status MeasureOperations(CudaDevice& device, kernels::CudaBackend& backend,
                         const OperationsOptions& options,
                         const std::function<void(const OperationTime&)>& report) {
  TROUPE_ASSIGN_OR_RETURN(const RankProgram built, ProgramOf(options));
  const model::Program& program = built.program;
  TROUPE_ASSIGN_OR_RETURN(const auto timer, DeviceTimer::Make(device));
  std::set<std::pair<std::string, std::string>> seen;
  const auto measure = [&](const model::Op& op, bool update) -> Status {
    OperationTime time{.kind = KindOf(op), .inputs = kernels::ShapesOf(op, program)};
    const bool wanted = options.only.empty() || options.only == time.kind;
    if (!wanted || !kernels::IsOfOneRank(op.kind) || !seen.insert({time.kind, time.inputs}).second)
      return OkStatus();
    time.flops = model::ModelFlops(op, program);
    time.bytes = static_cast<double>(kernels::BytesTouched(op, program));
    model::Program single = kernels::OnlyOps(program, [](const model::Op&) { return false; });
    (update ? single.update : single.ops[0][static_cast<size_t>(Piece::kForward)]).push_back(op);
    const auto executable = backend.Prepare(single, built.memory, nullptr);
    if (executable.status().code() == StatusCode::kUnimplemented) {
      time.skipped = std::string(Message(executable.status()));
      report(time);
      return OkStatus();
    }
    TROUPE_RETURN_IF_ERROR(executable.status());
    TROUPE_RETURN_IF_ERROR(kernels::FillRandomly(**executable, single));
    TROUPE_ASSIGN_OR_RETURN(time.seconds, SecondsOfOperation(*timer, **executable, update));
    report(time);
    return OkStatus();
  };
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    for (const model::Op& op : program.Ops(0, piece)) TROUPE_RETURN_IF_ERROR(measure(op, false));
  }
  for (const model::Op& op : program.update) TROUPE_RETURN_IF_ERROR(measure(op, true));
  return OkStatus();
}

Status MeasureAttention(CudaDevice& device, kernels::cuda::AttentionLibrary& library,
                        const OperationsOptions& options,
                        const std::function<void(const AttentionTime&)>& report) {
  TROUPE_ASSIGN_OR_RETURN(const RankProgram built, ProgramOf(options));
  kernels::cuda::DeviceAttentionTiming timing(device);
  const auto measure = [&](const char* pass, const kernels::cuda::LibraryAttentionShape& shape,
                           const auto& prepared) -> Status {
    TROUPE_RETURN_IF_ERROR(prepared.status());
    if (*prepared == nullptr) return OkStatus();
    AttentionTime time{
        .pass = pass, .shape = ShapeText(shape), .implementation = (*prepared)->implementation()};
    TROUPE_ASSIGN_OR_RETURN(time.seconds, timing.Time(shape, **prepared));
    report(time);
    return OkStatus();
  };
  for (const model::Op& op : built.program.Ops(0, Piece::kForward)) {
    if (op.kind != model::OpKind::kAttention) continue;
    const auto& attention = std::get<model::AttentionAttributes>(op.attributes);
    const model::Value& qkv = built.program.value(op.inputs[0]);
    const kernels::cuda::LibraryAttentionShape shape = {qkv.dtype == model::DType::kBFloat16,
                                                        qkv.dims[0].local / attention.tokens,
                                                        attention.tokens,
                                                        attention.query_heads,
                                                        attention.key_value_heads,
                                                        attention.head_dim};
    TROUPE_RETURN_IF_ERROR(measure("forward", shape, library.Prepare(shape)));
    return measure("gradient", shape, library.PrepareGrad(shape));
  }
  return OkStatus();
}

}  // namespace troupe
