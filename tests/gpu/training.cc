#include "tests/gpu/training.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/durable_write.h"
#include "base/random.h"
#include "base/temporary_directory.h"
#include "collective/loopback/loopback_cluster.h"
#include "data/dataset.h"
#include "data/job_data.h"
#include "model/cost.h"
#include "model/initialize.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "worker/executor/executor.h"
#include "worker/executor/rank_program.h"
#include "worker/executor/step_order.h"

namespace troupe {
namespace {

constexpr int64_t kHeaderInts = 256;
constexpr int64_t kMostIds = 4096;  // distinct synthetic ids: few enough to occur repeatedly

}  // namespace

StatusOr<v1::JobSpec> BareTrainingJob(const TrainingOptions& options) {
  if (!IsKnownPreset(options.preset)) {
    return InvalidArgument("preset is \"{}\", not one of {}", options.preset, KnownPresets());
  }
  v1::JobSpec spec;
  for (const std::string& key_and_value :
       {std::string("name=bench"), fmt::format("model.preset={}", options.preset),
        fmt::format("devices={}", options.devices), fmt::format("data.train={}", options.data),
        fmt::format("training.global_batch_size={}", options.batch),
        fmt::format("training.micro_batch_size={}", options.micro_batch),
        fmt::format("training.sequence_length={}", options.sequence),
        fmt::format("training.steps={}", options.steps),
        fmt::format("training.seed={}", options.seed),
        fmt::format("training.compute_dtype={}", options.dtype),
        fmt::format("training.float8.recipe={}", options.float8),
        fmt::format("optimizer.lr={}", options.learning_rate)}) {
    TROUPE_RETURN_IF_ERROR(ApplyOverride(key_and_value, &spec));
  }
  if (!options.pattern.empty())
    TROUPE_RETURN_IF_ERROR(ApplyOverride("model.pattern=" + options.pattern, &spec));
  return CompleteJobSpec(spec);
}

namespace {

// Writes what every state holds before the first step. It writes through the backend, because the
// states may be in device memory.
Status FillState(const model::Program& program, uint64_t seed, kernels::Executable& executable) {
  std::vector<float> numbers;
  for (const model::State& state : program.states) {
    numbers.resize(static_cast<size_t>(program.value(state.value).elements()));
    model::FillInitial(seed, program, state, numbers);
    TROUPE_RETURN_IF_ERROR(executable.Write(state.value, 0, std::as_bytes(std::span(numbers))));
  }
  return OkStatus();
}

}  // namespace

Status WriteSyntheticTokens(FileSystem& files, const std::string& path, int64_t tokens,
                            int64_t vocabulary, uint64_t seed) {
  // u16 ids if they suffice, else u32.
  const bool wide = vocabulary > 65536;
  std::vector<std::byte> bytes(static_cast<size_t>(kHeaderInts * 4 + tokens * (wide ? 4 : 2)));
  const std::array<int32_t, 3> header = {wide ? 20240801 : 20240520, wide ? 7 : 1,
                                         static_cast<int32_t>(tokens)};
  std::memcpy(bytes.data(), header.data(), sizeof header);
  const auto ids = static_cast<uint64_t>(std::min(vocabulary, kMostIds));
  const uint64_t key = RandomKey(seed, "synthetic tokens");
  uint64_t id = 0;
  for (int64_t i = 0; i < tokens; ++i) {
    const uint64_t draw = UniformBits(key, static_cast<uint64_t>(i));
    id = draw % 4 == 0 ? (draw >> 2) % ids : (31 * id + 7) % ids;
    const auto narrow = static_cast<uint16_t>(id);
    const auto full = static_cast<uint32_t>(id);
    std::byte* const to = bytes.data() + kHeaderInts * 4 + i * (wide ? 4 : 2);
    std::memcpy(to, wide ? static_cast<const void*>(&full) : &narrow, wide ? 4 : 2);
  }
  return WriteFileDurably(files, path, bytes);
}

Status Train(kernels::Backend& backend, FileSystem& files, const TrainingOptions& options,
             const std::function<void(const TrainingStep&)>& report) {
  const TemporaryDirectory directory;
  TrainingOptions complete = options;
  if (options.data.empty()) complete.data = directory.Child("tokens.bin");
  TROUPE_ASSIGN_OR_RETURN(const v1::JobSpec spec, BareTrainingJob(complete));
  if (options.data.empty()) {
    // The number of tokens makes a few epochs at most: at least 2²², and at least one step's.
    const int64_t tokens = std::max(int64_t{1} << 22, options.batch * options.sequence + 1);
    TROUPE_RETURN_IF_ERROR(WriteSyntheticTokens(files, complete.data, tokens,
                                                spec.model().vocab_size(), options.seed));
  }
  TROUPE_ASSIGN_OR_RETURN(const v1::Plan plan, MakeUnplacedPlan(spec));
  TROUPE_ASSIGN_OR_RETURN(RankProgram built, MakeRankProgram(spec, plan, 0));
  TROUPE_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::Open(files, MakeDatasetOptions(spec)));

  LoopbackCluster alone(1);
  StepProgress progress;
  TROUPE_ASSIGN_OR_RETURN(const auto executor,
                          Executor::Make(std::move(built.options), built.program, built.memory,
                                         backend, alone.network(0), dataset, &progress));
  TROUPE_RETURN_IF_ERROR(alone.network(0).Connect(alone.addresses(), std::chrono::seconds(10)));
  TROUPE_RETURN_IF_ERROR(executor->Start());
  TROUPE_RETURN_IF_ERROR(FillState(built.program, options.seed, executor->executable()));
  TROUPE_RETURN_IF_ERROR(executor->FinishLoading(0));
  const int64_t microbatches = options.batch / options.micro_batch;
  const double flops =
      model::ModelFlops(built.program, 0).total() * static_cast<double>(microbatches);
  StepOrder order(executor->options().control_lag_steps, 0, options.steps);
  // The run is never stopped, so one ticket covers all steps.
  order.Agreed(options.steps);
  while (order.Next() != StepOrder::Move::kEnd) {
    if (order.Next() == StepOrder::Move::kSubmit) {
      TROUPE_RETURN_IF_ERROR(executor->SubmitGradients());
      TROUPE_RETURN_IF_ERROR(executor->SubmitUpdate({}));
      order.Submitted(executor->DrainsAfter(executor->submitted_step()));
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const StepResult result, executor->Complete());
    order.Completed(options.steps);
    report({.step = result.step,
            .loss = result.event.loss(),
            .grad_norm = result.event.grad_norm(),
            .tokens = result.event.tokens(),
            .seconds = result.step_seconds,
            .flops = flops});
  }
  return OkStatus();
}

}  // namespace troupe
