#include "plan/text/cannot_fix.h"

#include <fmt/format.h>

#include "base/text/scaled.h"
#include "model/blocks/pattern.h"
#include "model/program/placement.h"
#include "plan/cost/estimate.h"
#include "plan/job/reshard_mode.h"

namespace troupe {
namespace {

using model::Axis;

bool Is(const std::string& axis, Axis which) { return axis == model::Name(which); }

std::string Bytes(int64_t bytes) { return Scaled(static_cast<double>(bytes), "B"); }

bool Shards(const DecodedJob& job) { return job.zero_stage > 0; }

// The axes over which ZeRO shards dense parameters: "data_shard", or with experts "data_shard ×
// expert".
std::string ShardAxes(const v1::Plan& plan) {
  return plan.mesh().expert() > 1 ? "data_shard × expert" : "data_shard";
}

// The setting that would shard the state which an axis replicates.
std::string StateRemedy(const DecodedJob& job, const v1::Plan& plan, const std::string& axis) {
  if (!Shards(job)) {
    return fmt::format("zero_stage 3 over {} shards all of it", ShardAxes(plan));
  }
  const std::string reshard = fmt::format("reshard_after_forward: {}", kReshardTrue.ToText());
  if (job.zero_stage < 3 || job.keeps_gathered) {
    return fmt::format(
        "{} over {} shards it further",
        job.zero_stage < 3 ? fmt::format("zero_stage {}", job.zero_stage + 1) : reshard,
        ShardAxes(plan));
  }
  return Is(axis, Axis::kDataShard)
             ? reshard + " keeps less of it"
             : fmt::format("more ranks of {} shard it further", ShardAxes(plan));
}

// The setting that would shard the saved activations which an axis replicates.
std::string SavedRemedy(const DecodedJob& job, const std::string& axis) {
  if (Is(axis, Axis::kTensor) && !job.spec.parallelism().sequence_parallel()) {
    return "sequence_parallel shards those between matmuls over tensor";
  }
  return "context shards them";
}

std::string PipeLine(const v1::AxisReplication& entry, const model::ModelConfig& model) {
  char largest = 0;
  int64_t most = 0;
  for (const char block : model.blocks) {
    const int64_t parameters = BlockParameters(model, block);
    if (parameters <= most) continue;
    largest = block;
    most = parameters;
  }
  std::string line = fmt::format("pipe {} splits the depth only", entry.degree());
  if (most > 0) {
    line += fmt::format(
        ": the largest block ({}, of {} parameters) stays whole; tensor and data_shard shard it",
        largest, most);
  }
  if (entry.state_bytes() > 0) {
    line +=
        fmt::format("; the tied vocabulary table, {} of state, is on two stages; tensor shards it",
                    Bytes(entry.state_bytes()));
  }
  return line;
}

// The line about a tensor degree above the number of key-value heads; empty if it is not above.
std::string SharedHeadsLine(const DecodedJob& job) {
  const model::ModelConfig& model = job.model;
  const int64_t tensor = job.mesh.degree(Axis::kTensor);
  const int64_t heads = model.num_key_value_heads;
  const bool attends = model::HasBlock(model.blocks, &model::BlockKind::attends);
  if (heads < 1 || tensor <= heads || !attends) return "";
  return fmt::format(
      "tensor {} exceeds the {} of keys and values, so {} ranks hold and compute each head; k_proj "
      "and v_proj (of {} parameters on every rank in a block A), their optimizer state and their "
      "outputs are sharded by {}, not by {}; tensor {} repeats none",
      tensor, heads == 1 ? "1 head" : fmt::format("{} heads", heads), tensor / heads,
      2 * model.head_dim * model.hidden_size, heads, tensor, heads);
}

}  // namespace

std::vector<std::string> CannotFixLines(const DecodedJob& job, const v1::Plan& plan) {
  std::vector<std::string> lines;
  for (const v1::AxisReplication& entry : plan.replication()) {
    const std::string& axis = entry.axis();
    if (Is(axis, Axis::kPipe)) {
      lines.push_back(PipeLine(entry, job.model));
      continue;
    }
    const bool used = entry.degree() > 1;
    // An axis of degree 1 has no shards to inspect; under zero_stage 3 it would replicate no state.
    const bool would_shard = Is(axis, Axis::kDataShard) && !used && !Shards(job);
    const int64_t state = would_shard ? 0 : entry.state_bytes();
    std::string line = fmt::format(
        "{} {} {} {} of a rank's {} of state and {} of its {} of saved activations unsharded", axis,
        entry.degree(), used ? "leaves" : "would, with more ranks, leave", Bytes(state),
        Bytes(entry.all_state_bytes()), Bytes(entry.saved_bytes()), Bytes(entry.all_saved_bytes()));
    if (state > 0 && Is(axis, Axis::kDataReplicate) && used && !Shards(job)) {
      line += fmt::format(": data_shard {} in its place, with zero_stage 3, leaves {}",
                          entry.degree(), Bytes(state / entry.degree()));
    } else if (state > 0) {
      line += fmt::format(": of the state, {}", StateRemedy(job, plan, axis));
    }
    if (entry.saved_bytes() > 0) {
      line += fmt::format("; of the activations, {}", SavedRemedy(job, axis));
    } else if (!Is(axis, Axis::kTensor) && !Is(axis, Axis::kContext) &&
               entry.all_saved_bytes() > 0) {
      line += fmt::format(
          "; those of one microbatch's samples it cannot shard: tensor with sequence_parallel, "
          "context and activation_recomputation do");
    }
    lines.push_back(std::move(line));
  }
  if (std::string line = SharedHeadsLine(job); !line.empty()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace troupe
