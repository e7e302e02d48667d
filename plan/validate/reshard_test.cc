#include "plan/validate/reshard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "plan/cost/step_time.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/search/search.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::ParallelismSpec Spec(const std::string& reshard, int64_t shards, int64_t stage = 3) {
  v1::ParallelismSpec spec;
  spec.set_data_parallel_shard_degree(shards);
  spec.set_zero_stage(stage);
  spec.set_reshard_after_forward(reshard);
  return spec;
}

std::vector<std::string> Refusals(const v1::ParallelismSpec& spec) {
  Violations violations;
  ValidateReshard(spec, &violations);
  std::vector<std::string> texts;
  for (const Violation& violation : violations.list()) {
    EXPECT_EQ(violation.field, "parallelism.reshard_after_forward");
    texts.push_back(violation.description);
  }
  return texts;
}

TEST(Reshard, TakesTrueFalseAndEveryProperDivisorOfTheShardDegree) {
  for (const char* text : {"true", "false", "2", "3", "6"}) {
    EXPECT_THAT(Refusals(Spec(text, 12)), IsEmpty()) << text;
  }
  EXPECT_THAT(Refusals(v1::ParallelismSpec()), IsEmpty());
}

TEST(Reshard, RefusesOthersByNameAndNumbers) {
  EXPECT_THAT(
      Refusals(Spec("5", 12)),
      ElementsAre("is 5, which does not divide parallelism.data_parallel_shard_degree = 12"));
  EXPECT_THAT(Refusals(Spec("24", 12)), ElementsAre(HasSubstr("is 24, which does not divide")));
  EXPECT_THAT(
      Refusals(Spec("12", 12)),
      ElementsAre("is 12, equal to parallelism.data_parallel_shard_degree, which would gather "
                  "parameters over all data_shard ranks: state true instead"));
  EXPECT_THAT(Refusals(Spec("1", 12)), ElementsAre(HasSubstr("is 1, ")));
  EXPECT_THAT(Refusals(Spec("2", 4, 2)),
              ElementsAre("is 2, but parallelism.zero_stage is 2: parameters are not sharded"));
  for (const char* text : {"", "0", "-2", "+2", "02", "2.0", " 2", "2x", "maybe", "99999999999"}) {
    EXPECT_THAT(Refusals(Spec(text, 12)),
                ElementsAre(HasSubstr("not one of true, false, a number")))
        << text;
  }
}

TEST(Reshard, OfFewerShardsKeepsRunsWhereTheyStillFit) {
  const v1::ParallelismSpec before = Spec("2", 8);
  for (const auto& [shards, kept] :
       {std::pair(6, "2"), std::pair(4, "2"), std::pair(2, "true"), std::pair(5, "true")}) {
    v1::ParallelismSpec smaller = before;
    smaller.set_data_parallel_shard_degree(shards);
    KeepReshard(before, &smaller);
    EXPECT_EQ(smaller.reshard_after_forward(), kept) << shards;
    EXPECT_THAT(Refusals(smaller), IsEmpty()) << shards;
  }
  v1::ParallelismSpec all = Spec("false", 3);
  KeepReshard(Spec("false", 8), &all);
  EXPECT_EQ(all.reshard_after_forward(), "false");
}

// Eight ranks in islands of two, with slow links between the islands.
v1::DeviceProfile EvenProfile() {
  v1::DeviceProfile profile;
  profile.set_name("imagined");
  profile.set_memory_bytes(int64_t{80} << 30);
  profile.set_float32_flops_per_second(60e12);
  profile.set_matmul_efficiency(0.7);
  profile.set_memory_bytes_per_second(3e12);
  profile.set_launch_seconds(2e-6);
  profile.set_devices_per_island(2);
  profile.mutable_island()->set_bytes_per_second(450e9);
  profile.mutable_island()->set_latency_seconds(3e-6);
  profile.mutable_fabric()->set_bytes_per_second(5e9);
  profile.mutable_fabric()->set_latency_seconds(6e-6);
  return profile;
}

v1::JobSpec JobOnLayout(const std::string& parallelism) {
  v1::JobSpec spec;
  for (const std::string& override :
       {std::string("model.preset=tiny"),
        std::string("training={global_batch_size: 32, micro_batch_size: 1, sequence_length: 64}"),
        "parallelism=" + parallelism}) {
    EXPECT_TRUE(ApplyOverride(override, &spec).ok()) << override;
  }
  return spec;
}

// With 4 ranks in runs of 2, each rank keeps a quarter and holds half of the copies.
TEST(Reshard, RunsOfShardsHoldTheirShareAndSendLittleAcross) {
  const auto plan = [](const char* reshard) {
    v1::JobSpec spec = JobOnLayout(
        "{data_parallel_shard_degree: 4, reshard_after_forward: " + std::string(reshard) + "}");
    spec.mutable_training()->set_global_batch_size(16);
    ApplyDefaults(&spec);
    return MakeUnplacedPlan(spec);
  };
  const auto all = plan("true"), runs = plan("2");
  ASSERT_TRUE(all.ok() && runs.ok()) << all.status() << runs.status();
  const auto &before = all->memory(0), &memory = runs->memory(0);
  const int64_t parameters = memory.parameter_bytes() + memory.compute_copy_bytes();
  EXPECT_NEAR(static_cast<double>(parameters), 2.0 * static_cast<double>(before.parameter_bytes()),
              1e-2 * static_cast<double>(parameters));
  EXPECT_EQ(before.compute_copy_bytes(), 0);
  EXPECT_NEAR(static_cast<double>(memory.gradient_bytes()),
              static_cast<double>(before.gradient_bytes()), 1e4);
  const auto sent = [](const v1::Plan& of) {
    std::map<std::string, double> bytes;
    for (const auto& entry : of.traffic())
      bytes[entry.axis() + " " + entry.purpose()] = entry.bytes_per_step();
    return bytes;
  };
  const auto whole = sent(*all), parts = sent(*runs);
  EXPECT_FALSE(parts.contains("data_shard unshard"));
  EXPECT_FALSE(parts.contains("data_shard gradient"));
  // Four bytes per parameter: without runs 3/4 is sent in each of four microbatches; with runs 1/2
  // is sent within, and 1/2 of a half across.
  const double bytes = whole.at("data_shard gradient") / 4 / 0.75;
  EXPECT_NEAR(parts.at("data_shard_within_2 gradient"), 4 * bytes / 2, 1e-2 * bytes);
  EXPECT_NEAR(parts.at("data_shard_across_2 gradient"), 4 * bytes / 4, 1e-2 * bytes);
  EXPECT_NEAR(parts.at("data_shard_across_2 unshard"), bytes / 4, 1e-2 * bytes);
  EXPECT_NEAR(parts.at("data_shard_within_2 unshard"), whole.at("data_shard unshard") * 0.5 / 0.75,
              1e-2 * bytes);
  EXPECT_NE(runs->digest(), all->digest());
  EXPECT_THAT(runs->ownership(),
              testing::Contains(
                  HasSubstr("once per step each rank gathers 1/2 of the parameters and keeps it")));
  EXPECT_FALSE(plan("3").ok());
}

TEST(Reshard, ASmallerLayoutKeepsRunsOfShardsWhereTheyFit) {
  v1::JobSpec spec = JobOnLayout("{data_parallel_shard_degree: 8, reshard_after_forward: 2}");
  spec.mutable_training()->set_global_batch_size(24);
  ApplyDefaults(&spec);
  for (const auto& [devices, shards, reshard] :
       {std::tuple(7, 6, "2"), std::tuple(5, 4, "2"), std::tuple(3, 3, "true"),
        std::tuple(2, 2, "true"), std::tuple(1, 1, "")}) {
    const auto smaller = SmallerLayout(spec, devices);
    ASSERT_TRUE(smaller.has_value()) << devices;
    EXPECT_EQ(smaller->parallelism().data_parallel_shard_degree(), shards);
    EXPECT_EQ(smaller->parallelism().reshard_after_forward(), reshard) << devices;
  }
}

TEST(Reshard, RunsInsideIslandsTakeLessTimeThanGatheringAcrossThem) {
  const auto seconds = [](const std::string& reshard, bool transfers_need_cores) {
    v1::JobSpec spec =
        JobOnLayout("{data_parallel_shard_degree: 8, reshard_after_forward: " + reshard + "}");
    ApplyDefaults(&spec);
    v1::DeviceProfile profile = EvenProfile();
    profile.set_transfers_need_cores(transfers_need_cores);
    return EstimateStepTime(DecodeJob(spec).value(), *MakeUnplacedPlan(spec), profile)->seconds;
  };
  for (const bool transfers_need_cores : {false, true}) {
    EXPECT_LT(seconds("2", transfers_need_cores), 0.5 * seconds("true", transfers_need_cores));
    // Runs that span islands use the fabric for each gather.
    EXPECT_LT(seconds("2", transfers_need_cores), seconds("4", transfers_need_cores));
  }
}

TEST(Reshard, TheBoundOfASearchIsBelowTheTimeOfRuns) {
  for (const bool transfers_need_cores : {false, true}) {
    for (const bool tied : {false, true}) {
      for (const char* reshard : {"2", "4"}) {
        v1::JobSpec spec =
            JobOnLayout(std::string("{zero_stage: 3, reshard_after_forward: ") + reshard + "}");
        spec.mutable_model()->set_tie_word_embeddings(tied);
        v1::DeviceProfile profile = EvenProfile();
        profile.set_transfers_need_cores(transfers_need_cores);
        const auto found =
            SearchLayouts(spec, profile, {.devices = 8, .best = 1000, .plans_max = 1000});
        ASSERT_TRUE(found.ok()) << found.status();
        for (const FoundLayout& layout : found->best) {
          EXPECT_EQ(layout.spec.parallelism().reshard_after_forward(), reshard);
          EXPECT_LE(layout.seconds_at_least, layout.time.seconds)
              << ::testing::PrintToString(layout.keys);
          EXPECT_LE(layout.bytes_at_least, layout.memory_bytes);
        }
        EXPECT_GE(found->best.size(), 3u);
      }
    }
  }
}

}  // namespace
}  // namespace troupe
