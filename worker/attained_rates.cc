#include "worker/attained_rates.h"

#include <omp.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/sample_schema.h"
#include "kernels/cpu/cpu_backend.h"
#include "model/build.h"
#include "model/cost.h"
#include "model/program/memory_plan.h"
#include "worker/executor/shards.h"

namespace troupe {
namespace {

using model::Piece;

struct Work {
  double flops = 0;
  double seconds = 0;
};

// FLOPs a second of the round in the middle: other work of the host slows single ones down.
double MedianRate(std::vector<Work> rounds) {
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::ranges::nth_element(rounds, middle, {},
                           [](const Work& work) { return work.flops / work.seconds; });
  return middle->flops / middle->seconds;
}

// Adds up what operations take, each from the end of the one before it.
class Stopwatch : public kernels::OperationObserver {
 public:
  explicit Stopwatch(const model::Program& program) : program_(program) {}

  void BeginRound() {
    products.emplace_back();
    attention.emplace_back();
    last_ = std::chrono::steady_clock::now();
  }
  void Ran(const model::Op& op, const char* name, int buffer) override {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - std::exchange(last_, now)).count();
    const double flops = model::ModelFlops(op, program_);
    if (flops == 0) return;
    Work& work = (model::IsAttention(op.kind) ? attention : products).back();
    work.flops += flops;
    work.seconds += seconds;
  }

  std::vector<Work> products, attention;  // by round

 private:
  const model::Program& program_;
  std::chrono::steady_clock::time_point last_;
};

model::BuildOptions TwoLayers(model::DType compute_dtype) {
  constexpr int64_t kVocabulary = 256;  // a head of no weight beside the layers
  model::BuildOptions options;
  options.model = {model::ExpandPattern("(AD)x2").value(), 768, 12, 12, 64, 2048, kVocabulary, true};
  options.chunks = {{0, 0, options.model.num_blocks(), true, true}};
  options.sequence_length = 512;
  options.compute_dtype = compute_dtype;
  return options;
}

// Every token is 0: what is multiplied takes as long.
Status Fill(const model::Program& program, kernels::Executable& executable) {
  InitializeState(program, /*seed=*/1, executable);
  const model::ValueId weights = program.chunks[0].Input(channels::kWeights);
  const std::vector<float> ones(static_cast<size_t>(program.value(weights).elements()), 1.0f);
  TROUPE_RETURN_IF_ERROR(executable.Write(weights, 0, std::as_bytes(std::span(ones))));
  return executable.RunInitialize();
}

// What one device measures; all of them begin each round together.
StatusOr<AttainedRates> RatesOf(model::DType compute_dtype, int threads, std::barrier<>& begin) {
  constexpr int kRounds = 9;
  std::unique_ptr<kernels::CpuBackend> backend;
  model::Program program;
  model::MemoryPlan plan;
  std::unique_ptr<kernels::Executable> executable;
  const auto prepare = [&]() -> Status {
    TROUPE_ASSIGN_OR_RETURN(backend, kernels::CpuBackend::Make({.threads = threads}));
    TROUPE_ASSIGN_OR_RETURN(program, model::BuildProgram(TwoLayers(compute_dtype)));
    plan = model::PlanMemory(program, {1}, /*split_backward=*/false, threads);
    TROUPE_ASSIGN_OR_RETURN(executable, backend->Prepare(program, plan, nullptr));
    return Fill(program, *executable);
  };
  Status status = prepare();
  Stopwatch stopwatch(program);
  for (int round = 0; round <= kRounds; ++round) {  // the first warms up
    // Who has failed comes along, lest the others wait for it.
    begin.arrive_and_wait();
    if (!status.ok()) continue;
    if (round > 0) {
      executable->Observe(&stopwatch);
      stopwatch.BeginRound();
    }
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      status.Update(executable->Run(0, piece, 0, {.first_microbatch = true}));
    }
  }
  TROUPE_RETURN_IF_ERROR(status);
  return AttainedRates{MedianRate(stopwatch.products), MedianRate(stopwatch.attention)};
}

}  // namespace

StatusOr<AttainedRates> MeasureAttainedRates(const HostPeak& peak, int devices) {
  const int threads = std::max(1, omp_get_num_procs() / devices);
  AttainedRates shares;
  for (const auto& [dtype, flops] : {std::pair(model::DType::kFloat32, peak.float32),
                                     std::pair(model::DType::kBFloat16, peak.bfloat16)}) {
    std::barrier begin(devices);
    std::vector<StatusOr<AttainedRates>> rates(static_cast<size_t>(devices), AttainedRates());
    std::vector<std::thread> teams;
    for (StatusOr<AttainedRates>& rate : rates) {
      teams.emplace_back([&rate, &begin, threads, compute_dtype = dtype] {
        rate = RatesOf(compute_dtype, threads, begin);
      });
    }
    for (std::thread& team : teams) team.join();
    AttainedRates sum;
    for (const StatusOr<AttainedRates>& rate : rates) {
      TROUPE_RETURN_IF_ERROR(rate.status());
      sum.products += rate->products;
      sum.attention += rate->attention;
    }
    shares.products += 0.5 * std::min(1.0, sum.products / flops);
    shares.attention += 0.5 * std::min(1.0, sum.attention / flops);
  }
  return shares;
}

}  // namespace troupe
