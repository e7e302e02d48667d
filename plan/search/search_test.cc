#include "plan/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/testing/test_extent.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/layout/mesh.h"
#include "plan/make_plan.h"
#include "plan/search/search_text.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

v1::DeviceProfile Profile() {
  v1::DeviceProfile profile;
  profile.set_name("imagined");
  profile.set_memory_bytes(int64_t{80} << 30);
  profile.set_float32_flops_per_second(60e12);
  profile.set_bfloat16_flops_per_second(989e12);
  profile.set_matmul_efficiency(0.7);
  profile.set_memory_bytes_per_second(3.35e12);
  profile.set_launch_seconds(2e-6);
  profile.set_devices_per_island(8);
  profile.mutable_island()->set_bytes_per_second(450e9);
  profile.mutable_island()->set_latency_seconds(3e-6);
  profile.mutable_fabric()->set_bytes_per_second(50e9);
  profile.mutable_fabric()->set_latency_seconds(6e-6);
  return profile;
}

v1::JobSpec Job(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  for (const std::string& override : overrides) {
    EXPECT_TRUE(ApplyOverride(override, &spec).ok()) << override;
  }
  return spec;
}

const std::vector<std::string> kTiny = {"model.preset=tiny",
                                        "training={global_batch_size: 16, sequence_length: 64}"};

TEST(SearchLayouts, FindsWhatPlanningEveryLayoutFinds) {
  v1::DeviceProfile profile = Profile();
  profile.set_devices_per_island(2);
  v1::JobSpec spec = Job(kTiny);
  spec.mutable_model()->set_pattern("(AD)x8");
  const auto searched = SearchLayouts(spec, profile, {.devices = 4, .best = 1, .plans_max = 1000});
  ASSERT_TRUE(searched.ok()) << searched.status();
  ASSERT_EQ(searched->best.size(), 1u);
  double shortest = 1e30;
  const auto all = SearchLayouts(spec, profile, {.devices = 4, .best = 1000, .plans_max = 1000});
  for (const FoundLayout& found : all->best) {
    const auto plan = MakeUnplacedPlan(found.spec);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->ranks_size(), 4);
    EXPECT_EQ(found.time.seconds,
              EstimateStepTime(DecodeJob(found.spec).value(), *plan, profile)->seconds);
    EXPECT_LE(found.seconds_at_least, found.time.seconds) << ::testing::PrintToString(found.keys);
    EXPECT_LE(found.bytes_at_least, found.memory_bytes) << ::testing::PrintToString(found.keys);
    shortest = std::min(shortest, found.time.seconds);
  }
  EXPECT_GT(all->best.size(), 10u);
  EXPECT_EQ(searched->best[0].time.seconds, shortest);
  EXPECT_LT(searched->rejected.size(), all->best.size() + all->rejected.size());
}

TEST(SearchLayouts, RejectsGlobsThatMatchNoTensor) {
  std::vector<std::string> overrides = kTiny;
  overrides.push_back("optimizer.no_weight_decay=[\"*norm*\"]");
  EXPECT_FALSE(SearchLayouts(Job(overrides), Profile(), {.devices = 2})->best.empty());
  overrides.push_back("optimizer.no_weight_decay=[\"nothing*\"]");
  const auto found = SearchLayouts(Job(overrides), Profile(), {.devices = 2});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->best.empty());
  ASSERT_FALSE(found->rejected.empty());
  EXPECT_THAT(found->rejected[0].reason, HasSubstr("optimizer.no_weight_decay[0]"));
}

TEST(SearchLayouts, WhatItFindsIsSetByItsKeys) {
  for (const char* parallelism :
       {"parallelism={}",
        "parallelism={pipeline_parallel_degree: 2, tensor_parallel_degree: 2, zero_stage: 1, "
        "data_parallel_shard_degree: 2, data_parallel_replicate_degree: 2}",
        "parallelism={context_parallel_degree: 4, tensor_parallel_degree: 2, "
        "sequence_parallel: true}"}) {
    std::vector<std::string> job = kTiny;
    job.push_back(parallelism);
    const auto found = SearchLayouts(Job(job), Profile(), {.devices = 4, .best = 1000});
    ASSERT_TRUE(found.ok());
    EXPECT_GT(found->best.size(), 10u) << parallelism;
    for (const FoundLayout& best : found->best) {
      std::vector<std::string> overrides = job;
      overrides.insert(overrides.end(), best.keys.begin(), best.keys.end());
      v1::JobSpec stated = Job(overrides);
      ApplyDefaults(&stated);
      EXPECT_EQ(stated.SerializeAsString(), best.spec.SerializeAsString());
      EXPECT_EQ(RankCount(stated.parallelism()), 4) << ::testing::PrintToString(best.keys);
    }
  }
}

TEST(SearchToText, ShowsTheKeysOfALayoutBelowItsFiguresInLinesOfEightyColumns) {
  SearchResult result;
  FoundLayout& found = result.best.emplace_back();
  found.keys = {"parallelism.data_parallel_shard_degree=8", "parallelism.zero_stage=1",
                "training.micro_batch_size=16"};
  found.time.seconds = 1.25;
  found.time.mfu = 0.5;
  found.memory_bytes = 95'010'000'000;
  result.rejected.resize(2);
  for (RejectedLayout& rejected : result.rejected) rejected.keys = {"parallelism.zero_stage=1"};
  result.rejected[0].reason = "needs 3 GB of memory; a device has 2 GB";
  result.rejected[1].reason = "needs 4 GB of memory; a device has 2 GB";
  EXPECT_EQ(SearchToText(result),
            "1.25 s per step, MFU 50.0%, 95 GB per rank:\n"
            "  parallelism.data_parallel_shard_degree=8 parallelism.zero_stage=1\n"
            "    training.micro_batch_size=16\n"
            "2 rejected:\n"
            "  2 layouts such as parallelism.zero_stage=1: needs 3 GB of memory; a device has\n"
            "    2 GB\n");
}

TEST(SearchLayouts, RejectsByNameAndNumbers) {
  v1::DeviceProfile profile = Profile();
  profile.set_memory_bytes(20 << 20);
  const auto found = SearchLayouts(Job(kTiny), profile, {.devices = 6, .plans_max = 1000});
  ASSERT_TRUE(found.ok());
  const auto reasons = [&] {
    std::vector<std::string> texts;
    for (const RejectedLayout& rejected : found->rejected) texts.push_back(rejected.reason);
    return texts;
  }();
  EXPECT_THAT(reasons,
              Contains(HasSubstr("global_batch_size is 16, not a multiple of the 6 data ranks")));
  EXPECT_THAT(reasons, Contains(HasSubstr("; a device has 0.02 GB")));
  EXPECT_THAT(SearchToText(*found), HasSubstr("rejected:"));
  EXPECT_EQ(SearchLayouts(Job({"model.preset=tiny", "training.compute_dtype=bfloat16"}),
                          [] {
                            v1::DeviceProfile float32 = Profile();
                            float32.clear_bfloat16_flops_per_second();
                            return float32;
                          }(),
                          {})
                .status()
                .code(),
            StatusCode::kInvalidArgument);
}

TEST(SearchLayouts, LeavesNothingUnseenOfAThousandDevices) {
  const SearchOptions options = {.devices = kInstrumented ? 64 : 1024};
  const auto found = SearchLayouts(Job({"model.preset=llama-1b", "model.pattern=(AD)x4",
                                        "training={global_batch_size: 2048, sequence_length: 8192, "
                                        "compute_dtype: bfloat16}"}),
                                   Profile(), options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->best.size(), static_cast<size_t>(options.best));
  EXPECT_GT(found->rejected.size(), kInstrumented ? 0u : 20000u);
  for (const RejectedLayout& rejected : found->rejected) {
    ASSERT_THAT(rejected.reason, Not(HasSubstr("not evaluated")));
  }
}

TEST(SearchLayouts, KeepsTensorGroupsInsideIslands) {
  // A model that one device cannot hold, and islands of eight.
  const auto found = SearchLayouts(Job({"model.preset=llama-8b",
                                        "training={global_batch_size: 64, sequence_length: 4096, "
                                        "compute_dtype: bfloat16}"}),
                                   Profile(), {.devices = 16, .best = 3, .plans_max = 48});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_FALSE(found->best.empty()) << SearchToText(*found);
  for (const FoundLayout& layout : found->best) {
    EXPECT_LE(layout.spec.parallelism().tensor_parallel_degree(), 8);
    EXPECT_LE(layout.memory_bytes, Profile().memory_bytes());
  }
}

}  // namespace
}  // namespace troupe
