#include "plan/validate/reshard.h"

#include <charconv>
#include <string>

namespace troupe {
namespace {

bool IsCutIntoRuns(int64_t shards, int run) { return run < shards && shards % run == 0; }

}  // namespace

int ShardRun(const v1::ParallelismSpec& parallelism) {
  const std::string& text = parallelism.reshard_after_forward();
  int run = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), run);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  // A number has only one valid spelling, because the text is part of the plan's digest.
  return is_number && run > 0 && text[0] != '0' ? run : 0;
}

bool KeepsGathered(const v1::ParallelismSpec& parallelism) {
  return parallelism.reshard_after_forward() == "false";
}

void ValidateReshard(const v1::ParallelismSpec& parallelism, Violations* violations) {
  if (!parallelism.has_reshard_after_forward()) return;
  const char* const field = "parallelism.reshard_after_forward";
  const char* const degree = "parallelism.data_parallel_shard_degree";
  const std::string& text = parallelism.reshard_after_forward();
  const int run = ShardRun(parallelism);
  const int64_t shards = parallelism.data_parallel_shard_degree();
  if (text != "true" && !KeepsGathered(parallelism) && run == 0) {
    violations->AddUnknownWord(field, text, "true, false, a number of data_shard neighbours");
  }
  if (parallelism.zero_stage() != 3) {
    violations->Add(field, "is {}, but parallelism.zero_stage is {}: parameters are not sharded",
                    text.substr(0, 200), parallelism.zero_stage());
  } else if (run == 1) {
    violations->Add(field,
                    "is 1, which would keep whole parameters on every rank: state false instead");
  } else if (run > 0 && run == shards) {
    violations->Add(field,
                    "is {}, equal to {}, which would gather parameters over all data_shard ranks: "
                    "state true instead",
                    run, degree);
  } else if (run > 0 && shards > 0 && !IsCutIntoRuns(shards, run)) {
    violations->AddNotDivisor(field, run, fmt::format("{} = {}", degree, shards));
  }
}

void KeepReshard(const v1::ParallelismSpec& before, v1::ParallelismSpec* parallelism) {
  const int run = ShardRun(before);
  if (run == 0) return;
  const bool fits = IsCutIntoRuns(parallelism->data_parallel_shard_degree(), run);
  parallelism->set_reshard_after_forward(fits ? before.reshard_after_forward() : "true");
}

}  // namespace troupe
