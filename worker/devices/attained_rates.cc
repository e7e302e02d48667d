#include "worker/devices/attained_rates.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <iterator>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/sample_schema.h"
#include "kernels/cpu/cpu_backend.h"
#include "model/blocks/pattern.h"
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

// FLOPs per second of the median round, because other work of the host may slow single rounds down.
double MedianRate(std::vector<Work> rounds) {
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::ranges::nth_element(rounds, middle, {},
                           [](const Work& work) { return work.flops / work.seconds; });
  return middle->flops / middle->seconds;
}

// Sums the times of operations, each measured from the end of the previous one.
class Stopwatch : public kernels::OperationObserver {
 public:
  explicit Stopwatch(const model::Program& program) : program_(program) {}

  void BeginRound() {
    matmuls.emplace_back();
    attention.emplace_back();
    last_ = std::chrono::steady_clock::now();
  }
  void Ran(const model::Op& op, const char* name, int buffer) override {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - std::exchange(last_, now)).count();
    const double flops = model::ModelFlops(op, program_);
    if (flops == 0) return;
    const bool is_attention = model::FindAttention(op.attributes) != nullptr;
    Work& work = (is_attention ? attention : matmuls).back();
    work.flops += flops;
    work.seconds += seconds;
  }

  std::vector<Work> matmuls, attention;  // by round

 private:
  const model::Program& program_;
  std::chrono::steady_clock::time_point last_;
};

model::BuildOptions TwoLayers(model::DType compute_dtype, int64_t tokens) {
  // Small, so that the head costs little compared with the layers.
  constexpr int64_t kVocabulary = 256;
  model::BuildOptions options;
  options.model = {
      model::ExpandPattern("(AD)x2").value(), 768, 12, 12, 64, 2048, kVocabulary, true};
  options.chunks = {{0, 0, options.model.num_blocks(), true, true}};
  options.sequence_length = tokens;
  options.compute_dtype = compute_dtype;
  return options;
}

// The two layers in one type, on the threads of one device.
class Layers {
 public:
  // Prepares the layers. All tokens are 0, since the values of operands do not change a matmul's
  // time.
  Status Prepare(model::DType compute_dtype, int64_t tokens, int threads) {
    TROUPE_ASSIGN_OR_RETURN(backend_, kernels::CpuBackend::Make({.threads = threads}));
    TROUPE_ASSIGN_OR_RETURN(program_, model::BuildProgram(TwoLayers(compute_dtype, tokens)));
    plan_ = model::PlanMemory(program_, {1}, /*split_backward=*/false, threads);
    TROUPE_ASSIGN_OR_RETURN(executable_, backend_->Prepare(program_, plan_, nullptr));
    TROUPE_RETURN_IF_ERROR(InitializeState(program_, /*seed=*/1, *executable_));
    const model::ValueId weights = program_.chunks[0].Input(channels::kWeights);
    const std::vector<float> ones(static_cast<size_t>(program_.value(weights).elements()), 1.0f);
    TROUPE_RETURN_IF_ERROR(executable_->Write(weights, 0, std::as_bytes(std::span(ones))));
    return executable_->RunInitialize();
  }

  Status Round() {
    stopwatch_.BeginRound();
    executable_->Observe(&stopwatch_);
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      TROUPE_RETURN_IF_ERROR(executable_->Run(0, piece, 0, {.first_microbatch = true}));
    }
    return OkStatus();
  }

  AttainedRates Rates() const {
    return {MedianRate(stopwatch_.matmuls), MedianRate(stopwatch_.attention)};
  }

 private:
  std::unique_ptr<kernels::CpuBackend> backend_;
  model::Program program_;
  model::MemoryPlan plan_;
  std::unique_ptr<kernels::Executable> executable_;
  Stopwatch stopwatch_{program_};
};

constexpr model::DType kTypes[] = {model::DType::kFloat32, model::DType::kBFloat16};
using RatesByType = std::array<AttainedRates, std::size(kTypes)>;

// Measures one device. All devices begin each round together and alternate between the types, so
// that temporary load of the host affects less than half of the rounds of each type.
StatusOr<RatesByType> RatesOf(const AttainedRatesOptions& options, int threads,
                              std::barrier<>& begin) {
  Layers layers[std::size(kTypes)];
  Status status;
  for (size_t type = 0; type < std::size(kTypes); ++type) {
    status.Update(layers[type].Prepare(kTypes[type], options.tokens, threads));
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Layers& of_type : layers) {
      // A device that has failed still arrives, or the others would wait for it.
      begin.arrive_and_wait();
      if (status.ok()) status.Update(of_type.Round());
    }
  }
  TROUPE_RETURN_IF_ERROR(status);
  RatesByType rates;
  std::ranges::transform(layers, rates.begin(), &Layers::Rates);
  return rates;
}

}  // namespace

StatusOr<AttainedRates> MeasureAttainedRates(const HostPeak& peak, int devices,
                                             const AttainedRatesOptions& options) {
  const int threads = std::max(1, omp_get_num_procs() / devices);
  std::barrier begin(devices);
  std::vector<StatusOr<RatesByType>> measured(static_cast<size_t>(devices), RatesByType());
  std::vector<std::thread> teams;
  for (StatusOr<RatesByType>& rates : measured) {
    teams.emplace_back([&, threads] { rates = RatesOf(options, threads, begin); });
  }
  for (std::thread& team : teams) team.join();
  AttainedRates shares;
  const double peaks[] = {peak.float32, peak.bfloat16};
  for (size_t type = 0; type < std::size(kTypes); ++type) {
    AttainedRates sum;
    for (const StatusOr<RatesByType>& rates : measured) {
      TROUPE_RETURN_IF_ERROR(rates.status());
      sum.matmuls += (*rates)[type].matmuls;
      sum.attention += (*rates)[type].attention;
    }
    shares.matmuls += std::min(1.0, sum.matmuls / peaks[type]) / std::size(kTypes);
    shares.attention += std::min(1.0, sum.attention / peaks[type]) / std::size(kTypes);
  }
  return shares;
}

}  // namespace troupe
