#include "tests/layouts/experts_job.h"

#include <fmt/format.h>

#include "plan/job/job_defaults.h"
#include "tests/layouts/expect_steps.h"

namespace troupe {

std::string NameOf(const Spread& spread) {
  std::string name;
  const auto add = [&name](const char* axis, int degree) {
    if (degree > 1) name += fmt::format("{}{}", axis, degree);
  };
  add("Expert", spread.expert);
  add("Tensor", spread.tensor);
  add("Context", spread.context);
  add("Data", spread.data);
  add("Shard", spread.shard);
  if (spread.shard > 1) name += fmt::format("Zero{}", spread.zero_stage);
  add("Pipe", spread.pipe);
  if (spread.over_tensor) name += "Spread";
  if (spread.by_rows) name += "Rows";
  if (spread.gathers) name += "Gather";
  if (spread.ring) name += "Ring";
  if (spread.key_value_heads != 4) name += fmt::format("KeyValueHeads{}", spread.key_value_heads);
  if (spread.schedule != std::string("1F1B")) name += spread.schedule;
  return name.empty() ? "One" : name;
}

void PrintTo(const Spread& spread, std::ostream* out) { *out << NameOf(spread); }

v1::JobSpec Mixture(const Spread& spread, int64_t steps) {
  v1::JobSpec spec = SmallJob({.data = spread.data,
                               .tensor = spread.tensor,
                               .pipe = spread.pipe,
                               .shard = spread.shard,
                               .zero_stage = spread.zero_stage,
                               .schedule = spread.schedule},
                              SmallDataPrefix(), steps);
  v1::ModelSpec& model = *spec.mutable_model();
  model.set_pattern("(AE)x2");
  model.set_num_key_value_heads(spread.key_value_heads);
  model.set_num_experts(8);
  model.set_num_experts_per_tok(2);
  model.set_moe_intermediate_size(48);
  model.set_num_shared_experts(1);
  model.set_router_aux_loss_coef(0.05);
  model.set_router_z_loss_coef(0.01);
  v1::ParallelismSpec& parallelism = *spec.mutable_parallelism();
  parallelism.set_expert_parallel_degree(spread.expert);
  parallelism.set_context_parallel_degree(spread.context);
  if (spread.context > 1) {
    parallelism.set_context_parallel_method(spread.ring ? "ring" : "all_to_all");
  }
  parallelism.set_sequence_parallel(spread.by_rows || (spread.tensor > 1 && spread.expert > 1));
  if (spread.gathers) parallelism.set_expert_dispatch("all_gather");
  if (spread.over_tensor) parallelism.set_expert_tensor_parallel_degree(1);
  ApplyDefaults(&spec);
  return spec;
}

std::vector<Spread> MixturesOfOneAxis() {
  return {{.expert = 2},
          {.expert = 4},
          {.data = 2},
          {.data = 4},
          {.pipe = 2},
          {.pipe = 4},
          {.tensor = 2},
          {.tensor = 4},
          {.tensor = 2, .by_rows = true},
          {.tensor = 4, .by_rows = true},
          {.tensor = 2, .over_tensor = true, .by_rows = true},
          {.tensor = 4, .over_tensor = true, .by_rows = true},
          {.context = 2},
          {.context = 4},
          {.shard = 2, .zero_stage = 1},
          {.shard = 2, .zero_stage = 2},
          {.shard = 2},
          {.shard = 4, .zero_stage = 1},
          {.shard = 4, .zero_stage = 2},
          {.shard = 4}};
}

std::vector<Spread> MixturesOfTwoAxes() {
  return {{.expert = 2, .data = 2},
          {.expert = 2, .pipe = 2},
          {.expert = 4, .pipe = 2},
          {.expert = 2, .tensor = 2},
          {.expert = 2, .tensor = 2, .over_tensor = true},
          {.expert = 4, .tensor = 2},
          {.expert = 2, .tensor = 4, .over_tensor = true},
          {.expert = 2, .context = 2},
          {.expert = 2, .shard = 2, .zero_stage = 1},
          {.expert = 2, .shard = 2, .zero_stage = 2},
          {.expert = 2, .shard = 2},
          {.expert = 4, .shard = 3},
          {.data = 2, .pipe = 2},
          {.data = 2, .tensor = 2},
          {.data = 2, .context = 2},
          {.data = 2, .shard = 2},
          {.pipe = 2, .tensor = 2},
          {.pipe = 2, .tensor = 2, .by_rows = true},
          {.pipe = 2, .context = 2},
          {.pipe = 2, .shard = 2},
          {.tensor = 2, .context = 2},
          {.tensor = 2, .context = 2, .by_rows = true},
          {.tensor = 2, .shard = 2},
          {.tensor = 2, .shard = 2, .by_rows = true},
          {.context = 2, .shard = 2}};
}

std::vector<Spread> MixturesOfEightRanks() {
  return {{.expert = 2, .pipe = 2, .tensor = 2},
          {.tensor = 2, .context = 2, .shard = 2, .by_rows = true},
          {.expert = 2, .pipe = 2, .shard = 2},
          {.expert = 2, .tensor = 2, .context = 2},
          {.expert = 2, .tensor = 2, .shard = 2, .over_tensor = true},
          {.expert = 2, .data = 2, .tensor = 2},
          {.data = 2, .pipe = 2, .shard = 2, .zero_stage = 2},
          {.pipe = 2, .tensor = 2, .shard = 2, .over_tensor = true, .by_rows = true},
          {.expert = 2, .context = 2, .shard = 2}};
}

std::vector<Spread> MixturesThatGather() {
  return {{.expert = 2, .gathers = true},
          {.expert = 4, .gathers = true},
          {.expert = 2, .tensor = 2, .gathers = true},
          {.expert = 2, .tensor = 2, .over_tensor = true, .gathers = true},
          {.tensor = 4, .over_tensor = true, .by_rows = true, .gathers = true},
          {.expert = 2, .context = 2, .gathers = true},
          {.expert = 2, .shard = 2, .gathers = true},
          {.expert = 2, .pipe = 2, .gathers = true, .schedule = "ZBV"}};
}

std::vector<Spread> MixturesBySchedule() {
  return {{.expert = 2, .pipe = 2, .schedule = "GPipe"},
          {.expert = 2, .pipe = 2, .schedule = "Interleaved1F1B"},
          {.expert = 2, .pipe = 2, .schedule = "ZBH1"},
          {.expert = 2, .pipe = 2, .schedule = "ZBV"},
          {.expert = 2, .pipe = 2, .schedule = "DualPipeV"},
          {.expert = 2, .pipe = 2, .tensor = 2, .schedule = "ZBH1"},
          {.expert = 2, .pipe = 2, .shard = 2, .schedule = "ZBV"}};
}

std::vector<Spread> MixturesOnRings() {
  return {{.context = 2, .ring = true},
          {.context = 4, .ring = true},
          {.expert = 2, .context = 2, .ring = true},
          {.expert = 2, .context = 2, .gathers = true, .ring = true},
          {.data = 2, .context = 2, .ring = true},
          {.tensor = 2, .context = 2, .by_rows = true, .ring = true},
          {.expert = 2, .tensor = 2, .context = 2, .ring = true},
          {.pipe = 2, .context = 2, .ring = true},
          {.context = 2, .shard = 2, .ring = true}};
}

}  // namespace troupe
