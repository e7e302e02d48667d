#include "plan/validate/reshard.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "plan/job/reshard_mode.h"

namespace troupe {
namespace {

bool IsCutIntoRuns(int64_t shards, int run) { return run < shards && shards % run == 0; }

}  // namespace

void ValidateReshard(const v1::ParallelismSpec& parallelism, Violations* violations) {
  if (!parallelism.has_reshard_after_forward()) return;
  const char* const field = "parallelism.reshard_after_forward";
  const char* const degree = "parallelism.data_parallel_shard_degree";
  const std::string& text = parallelism.reshard_after_forward();
  const std::optional<ReshardMode> mode = ParseReshardMode(text);
  const int run = mode ? mode->run : 0;
  const int64_t shards = parallelism.data_parallel_shard_degree();
  if (!mode) {
    violations->AddUnknownWord(field, text,
                               fmt::format("{}, {}, a number of data_shard neighbours",
                                           kReshardTrue.ToText(), kReshardFalse.ToText()));
  }
  if (parallelism.zero_stage() != 3) {
    violations->Add(field, "is {}, but parallelism.zero_stage is {}: parameters are not sharded",
                    text.substr(0, 200), parallelism.zero_stage());
  } else if (run == 1) {
    violations->Add(field,
                    "is 1, which would keep whole parameters on every rank: state {} instead",
                    kReshardFalse.ToText());
  } else if (run > 0 && run == shards) {
    violations->Add(field,
                    "is {}, equal to {}, which would gather parameters over all data_shard ranks: "
                    "state {} instead",
                    run, degree, kReshardTrue.ToText());
  } else if (run > 0 && shards > 0 && !IsCutIntoRuns(shards, run)) {
    violations->AddNotDivisor(field, run, fmt::format("{} = {}", degree, shards));
  }
}

void KeepReshard(const v1::ParallelismSpec& before, v1::ParallelismSpec* parallelism) {
  const std::optional<ReshardMode> mode = ParseReshardMode(before.reshard_after_forward());
  if (!mode || mode->run == 0) return;
  const bool fits = IsCutIntoRuns(parallelism->data_parallel_shard_degree(), mode->run);
  parallelism->set_reshard_after_forward((fits ? *mode : kReshardTrue).ToText());
}

}  // namespace troupe
