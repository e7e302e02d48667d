// Tests a plan's figures of balance, islands and replication by axis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text/scaled.h"
#include "model/program/placement.h"
#include "plan/cost/estimate.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/text/plan_json.h"
#include "plan/validate/decoded_job.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

v1::JobSpec JobOf(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  for (const std::string& override : overrides)
    EXPECT_TRUE(ApplyOverride(override, &spec).ok()) << override;
  ApplyDefaults(&spec);
  return spec;
}

v1::DeviceProfile IslandProfile(int devices_per_island) {
  v1::DeviceProfile profile;
  profile.set_name("drawn");
  profile.set_memory_bytes(int64_t{1} << 40);
  profile.set_float32_flops_per_second(1e12);
  profile.set_bfloat16_flops_per_second(1e12);
  profile.set_matmul_efficiency(1);
  profile.set_attention_efficiency(1);
  profile.set_memory_bytes_per_second(1e11);
  profile.set_devices_per_island(devices_per_island);
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()})
    link->set_bytes_per_second(1e9);
  return profile;
}

v1::Plan Planned(const std::vector<std::string>& overrides, int devices_per_island = 0) {
  const v1::DeviceProfile profile = IslandProfile(devices_per_island);
  const auto plan = MakeUnplacedPlan(JobOf(overrides), devices_per_island > 0 ? &profile : nullptr);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : v1::Plan();
}

const std::vector<std::string> kMixture = {"model.pattern=(AE)x2", "model.num_experts=4"};

std::vector<std::string> With(std::vector<std::string> keys,
                              std::initializer_list<const char*> more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// Blocks have 6 FLOPs per element of hidden, the head has 16, and the embedding moves 20/3 bytes
// per element.
TEST(StageBalance, CountsWhatTheEmbeddingMoves) {
  const v1::Plan plan =
      Planned({"model.pattern=(D)x4", "model.hidden_size=64", "model.intermediate_size=1",
               "model.vocab_size=8", "parallelism.pipeline_parallel_degree=2"});
  ASSERT_EQ(plan.chunks_size(), 2);
  EXPECT_EQ(plan.chunks(0).block_count(), 1);
  EXPECT_EQ(plan.chunks(1).block_count(), 3);
  // FLOPs do not include the embedding's bytes.
  const double block = 6.0 * 256 * 64;
  EXPECT_DOUBLE_EQ(plan.chunks(0).forward_flops(), block);
  EXPECT_DOUBLE_EQ(plan.chunks(1).forward_flops(), 3 * block + 16.0 * 256 * 64);
}

nlohmann::json TrafficOf(const v1::Plan& plan, const std::string& axis) {
  const nlohmann::json json = nlohmann::json::parse(PlanToJson(plan));
  for (const auto& entry : json["traffic"]) {
    if (entry["axis"] == axis) return entry;
  }
  ADD_FAILURE() << "no traffic over " << axis;
  return {};
}

TEST(PlanTraffic, IsSplitByIslandsWhereTheyAreKnown) {
  const std::vector<std::string> keys = {
      "parallelism={data_parallel_replicate_degree: 2, tensor_parallel_degree: 2}"};
  const v1::Plan plan = Planned(keys, 2);
  const nlohmann::json tensor = TrafficOf(plan, "tensor"), data = TrafficOf(plan, "data_replicate");
  EXPECT_GT(tensor["bytes_per_step"], 0);
  EXPECT_EQ(tensor["across_islands_bytes_per_step"], 0);
  EXPECT_EQ(tensor["within_islands_bytes_per_step"], tensor["bytes_per_step"]);
  EXPECT_GT(data["bytes_per_step"], 0);
  EXPECT_EQ(data["across_islands_bytes_per_step"], data["bytes_per_step"]);
  EXPECT_EQ(data["within_islands_bytes_per_step"], 0);
  EXPECT_TRUE(TrafficOf(Planned(keys), "tensor")["across_islands_bytes_per_step"].is_null());
  EXPECT_EQ(TrafficOf(Planned(keys, 4), "data_replicate")["across_islands_bytes_per_step"], 0);
}

TEST(PlanTraffic, OfAPipelineCrossesWhereStagesAreOnOtherIslands) {
  const std::vector<std::string> keys = {
      "parallelism={pipeline_parallel_degree: 2, tensor_parallel_degree: 2}"};
  EXPECT_GT(TrafficOf(Planned(keys, 2), "pipe")["across_islands_bytes_per_step"], 0);
  EXPECT_EQ(TrafficOf(Planned(keys, 4), "pipe")["across_islands_bytes_per_step"], 0);
}

TEST(PlanWarnings, NameContextAndExpertGroupsThatCrossIslands) {
  const std::vector<std::string> context = {"parallelism.context_parallel_degree=4"};
  const auto warns_of = [](const v1::Plan& plan, const char* words) {
    const std::vector<std::string> lines(plan.warnings().begin(), plan.warnings().end());
    return std::ranges::any_of(
        lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
  };
  const char* context_words =
      "1 of 1 context groups crosses islands, the first of ranks 0, 1, 2, 3";
  EXPECT_TRUE(warns_of(Planned(context, 2), context_words));
  EXPECT_FALSE(warns_of(Planned(context, 4), "islands"));
  EXPECT_FALSE(warns_of(Planned(context), "islands"));
  const std::vector<std::string> expert = With(kMixture, {"parallelism.expert_parallel_degree=4"});
  EXPECT_TRUE(warns_of(Planned(expert, 2), "1 of 1 expert groups crosses islands"));
  EXPECT_FALSE(warns_of(Planned(expert, 4), "islands"));
}

ClusterView TwoIslands(int on_the_first) {
  ClusterView cluster = ImaginedCluster(4, "cpu");
  for (int i = 0; i < 4; ++i) {
    ClusterDevice& device = cluster.free_devices[static_cast<size_t>(i)];
    device.worker = device.host = fmt::format("w{}", i);
    device.island = i < on_the_first ? "first" : "second";
    device.device.set_cores(1);
  }
  return cluster;
}

TEST(PlanWarnings, OfAPlacedPlanAreThoseOfItsPlacement) {
  const v1::JobSpec spec = JobOf({"parallelism.context_parallel_degree=4"});
  const v1::DeviceProfile profile = IslandProfile(2);
  const auto imagined = MakeUnplacedPlan(spec, &profile);
  ASSERT_TRUE(imagined.ok());
  const auto whole = PlacePlan(spec, *imagined, TwoIslands(4));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(std::vector<std::string>(whole->warnings().begin(), whole->warnings().end()),
              Not(Contains(HasSubstr("islands"))));
  EXPECT_EQ(TrafficOf(*whole, "context")["across_islands_bytes_per_step"], 0);
  // The plan is placed again on other islands, as after a failure.
  const auto split = PlacePlan(spec, *whole, TwoIslands(2));
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT(std::vector<std::string>(split->warnings().begin(), split->warnings().end()),
              Contains(HasSubstr("1 of 1 context groups crosses islands")));
  EXPECT_GT(TrafficOf(*split, "context")["across_islands_bytes_per_step"], 0);
}

TEST(PlanWarnings, OfAnEarlierPlacementAreGone) {
  const v1::JobSpec spec = JobOf({"parallelism.tensor_parallel_degree=4"});
  const auto split = MakePlan(spec, TwoIslands(2));
  ASSERT_TRUE(split.ok()) << split.status();
  const auto lines = [](const v1::Plan& plan) {
    return std::vector<std::string>(plan.warnings().begin(), plan.warnings().end());
  };
  EXPECT_THAT(lines(*split), Contains(HasSubstr("the tensor group of ranks 0-3 crosses islands")));
  const auto whole = PlacePlan(spec, *split, TwoIslands(4));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(lines(*whole), Not(Contains(HasSubstr("islands"))));
  EXPECT_EQ(lines(*whole).size() + 1, lines(*split).size());
}

v1::AxisReplication Left(const v1::Plan& plan, model::Axis axis) {
  return plan.replication(static_cast<int>(axis));
}

TEST(Replication, IsWhatAnAxisDoesNotCut) {
  using model::Axis;
  const v1::Plan replicas = Planned({"parallelism.data_parallel_replicate_degree=2"});
  const v1::RankMemory& memory = replicas.memory(0);
  const v1::AxisReplication whole = Left(replicas, Axis::kDataReplicate);
  EXPECT_EQ(whole.axis(), "data_replicate");
  EXPECT_EQ(whole.degree(), 2);
  EXPECT_EQ(whole.state_bytes(), memory.parameter_bytes() + memory.compute_copy_bytes() +
                                     memory.gradient_bytes() + memory.optimizer_bytes());
  EXPECT_EQ(whole.all_state_bytes(), whole.state_bytes());
  EXPECT_EQ(whole.saved_bytes(), 0);
  EXPECT_EQ(whole.all_saved_bytes(), memory.saved_bytes());

  for (const char* stage : {"1", "2", "3"}) {
    const v1::Plan shards = Planned({"parallelism.data_parallel_shard_degree=2",
                                     std::string("parallelism.zero_stage=") + stage});
    const v1::RankMemory& of = shards.memory(0);
    // Stage 1 replicates gradients and gathered copies (which contain the masters), stage 2 copies,
    // stage 3 nothing.
    const int64_t copies = of.compute_copy_bytes() + of.parameter_bytes();
    const int64_t left = Left(shards, Axis::kDataShard).state_bytes();
    EXPECT_EQ(left, *stage == '1'   ? copies + of.gradient_bytes()
                    : *stage == '2' ? copies
                                    : 0)
        << stage;
  }

  // The norms of four layers and of the head, with gradient and moments.
  const v1::Plan tensor = Planned({"parallelism.tensor_parallel_degree=2"});
  EXPECT_EQ(Left(tensor, Axis::kTensor).state_bytes(), 9 * 256 * 4 * 4);
  const int64_t saved = Left(tensor, Axis::kTensor).saved_bytes();
  EXPECT_GT(saved, 0);
  EXPECT_LT(saved, tensor.memory(0).saved_bytes());
  // Rows between matmuls are then cut; rows gathered for a matmul are not.
  const v1::Plan rows =
      Planned({"parallelism={tensor_parallel_degree: 2, sequence_parallel: true}"});
  EXPECT_LT(Left(rows, Axis::kTensor).saved_bytes(), saved * 2 / 3);

  // Expert weights are sharded, everything else is not.
  const v1::Plan expert = Planned(With(kMixture, {"parallelism.expert_parallel_degree=2"}));
  EXPECT_GT(Left(expert, Axis::kExpert).state_bytes(), 0);
  EXPECT_LT(Left(expert, Axis::kExpert).state_bytes(),
            Left(expert, Axis::kExpert).all_state_bytes());
}

std::string LineOf(const v1::Plan& plan, const std::string& axis) {
  for (const std::string& line : plan.cannot_fix()) {
    if (line.starts_with(axis + " ")) return line;
  }
  return "";
}

TEST(CannotFix, ReportsHowMuchIsLeftAndWhatWouldCutIt) {
  const v1::Plan replicas = Planned({"parallelism.data_parallel_replicate_degree=4"});
  const int64_t state = Left(replicas, model::Axis::kDataReplicate).state_bytes();
  const auto bytes = [](int64_t count) { return Scaled(static_cast<double>(count), "B"); };
  EXPECT_THAT(
      LineOf(replicas, "data_replicate"),
      AllOf(HasSubstr("leaves " + bytes(state)),
            HasSubstr("data_shard 4 in its place, with zero_stage 3, leaves " + bytes(state / 4))));
  EXPECT_EQ(replicas.cannot_fix_size(), 6);

  const v1::Plan tensor = Planned({"parallelism.tensor_parallel_degree=2"});
  EXPECT_THAT(LineOf(tensor, "tensor"),
              HasSubstr("sequence_parallel shards those between matmuls"));
  const v1::Plan rows =
      Planned({"parallelism={tensor_parallel_degree: 2, sequence_parallel: true}"});
  EXPECT_THAT(LineOf(rows, "tensor"), Not(HasSubstr("sequence_parallel")));

  EXPECT_THAT(
      LineOf(Planned({"parallelism={data_parallel_shard_degree: 2, zero_stage: 1}"}), "data_shard"),
      HasSubstr("zero_stage 2 over data_shard shards it further"));
  const v1::Plan expert =
      Planned(With(kMixture, {"parallelism={expert_parallel_degree: 2, zero_stage: 1}"}));
  EXPECT_THAT(LineOf(expert, "expert"), HasSubstr("zero_stage 2 over data_shard × expert"));
}

// A job whose numbers are computed by hand. A has 64 + 64·(4 + 2·2)·16 + 64·64 = 12352 parameters,
// D has 64 + 3·64·96 = 18496, the table 32·64 = 2048; a parameter has 16 bytes of state.
v1::Plan SmallTiedPlan(const char* degree) {
  return Planned(
      {"model={pattern: (AD)x2, hidden_size: 64, num_attention_heads: 4, "
       "num_key_value_heads: 2, intermediate_size: 96, vocab_size: 32, "
       "tie_word_embeddings: true}",
       "training={global_batch_size: 8, micro_batch_size: 2, sequence_length: 32}",
       std::string("parallelism.") + degree});
}

TEST(CannotFix, ReportsThatPipeKeepsTheLargestBlockAndBothCopiesOfATiedTable) {
  EXPECT_EQ(LineOf(SmallTiedPlan("pipeline_parallel_degree=2"), "pipe"),
            "pipe 2 splits the depth only: the largest block (D, of 18496 parameters) stays whole; "
            "tensor and data_shard shard it; the tied vocabulary table, 32.8 kB of state, is on "
            "two stages; tensor shards it");
  EXPECT_EQ(LineOf(SmallTiedPlan("context_parallel_degree=2"), "pipe"),
            "pipe 1 splits the depth only: the largest block (D, of 18496 parameters) stays whole; "
            "tensor and data_shard shard it");
}

TEST(CannotFix, ReportsThatContextShardsActivationsAndNoState) {
  const v1::Plan plan = SmallTiedPlan("context_parallel_degree=2");
  // The state of 2·(12352 + 18496) + 2048 + 64 = 63808 parameters.
  EXPECT_EQ(Left(plan, model::Axis::kContext).state_bytes(), 16 * 63808);
  EXPECT_EQ(Left(plan, model::Axis::kContext).saved_bytes(), 0);
  EXPECT_EQ(LineOf(plan, "context"),
            "context 2 leaves 1.02 MB of a rank's 1.02 MB of state and 0 B of its 211 kB of saved "
            "activations unsharded: of the state, zero_stage 3 over data_shard shards all of it");
}

TEST(CannotFix, NamesHeadsThatTensorRanksShare) {
  const v1::Plan shared =
      Planned({"model.num_key_value_heads=2", "parallelism.tensor_parallel_degree=4"});
  ASSERT_EQ(shared.cannot_fix_size(), 7);
  EXPECT_THAT(shared.cannot_fix(6),
              AllOf(HasSubstr("tensor 4 exceeds the 2 heads of keys and values, so 2 ranks hold"),
                    HasSubstr("are sharded by 2, not by 4")));
  // Both have the same size per rank, where k_proj and v_proj are cut by 2.
  const v1::Plan cut =
      Planned({"model.num_key_value_heads=4", "parallelism.tensor_parallel_degree=4"});
  EXPECT_EQ(cut.cannot_fix_size(), 6);
  EXPECT_EQ(shared.memory(0).optimizer_bytes(), cut.memory(0).optimizer_bytes());
}

TEST(ShardedOverExpertAlone, KeepsAHalfOfTheDenseOptimizersState) {
  const v1::Plan whole = Planned(With(kMixture, {"parallelism.expert_parallel_degree=2"}));
  const v1::Plan sharded =
      Planned(With(kMixture, {"parallelism={expert_parallel_degree: 2, zero_stage: 3}"}));
  const auto model = MakeModelConfig(JobOf(kMixture).model()).value();
  const int64_t experts = 2 * 4 * 3 * 256 * JobOf(kMixture).model().moe_intermediate_size();
  const int64_t dense = ModelParameters(model) - experts;
  EXPECT_EQ(whole.memory(0).optimizer_bytes(), 8 * (dense + experts / 2));
  EXPECT_LE(sharded.memory(0).optimizer_bytes(), 8 * (dense / 2 + experts / 2) + 8 * 256 * 20);
  EXPECT_LT(sharded.memory(0).gradient_bytes(), whole.memory(0).gradient_bytes());
  EXPECT_THAT(std::vector<std::string>(sharded.ownership().begin(), sharded.ownership().end()),
              Contains(HasSubstr(
                  "each of the 2 expert ranks keeps, of every parameter except those of experts")));
  EXPECT_FALSE(MakeUnplacedPlan(JobOf(With(kMixture, {"parallelism.zero_stage=3"}))).ok());
}

}  // namespace
}  // namespace troupe
