// Plans of models for slices of eight TPU devices, from the profiles of examples/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/golden/golden_file.h"
#include "base/text/scaled.h"
#include "plan/cost/memory_fit.h"
#include "plan/cost/step_time.h"
#include "plan/device/device_profile.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/search/layout_estimate.h"
#include "plan/text/plan_json.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::DeviceProfile ProfileOf(const std::string& name) {
  const std::string path = "examples/profiles/tpu-" + name + ".yaml";
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const auto profile = ParseDeviceProfile(text.str(), path);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return profile.ok() ? *profile : v1::DeviceProfile();
}

v1::JobSpec JobOf(const std::vector<std::string>& overrides, const char* devices = "xla") {
  v1::JobSpec spec;
  spec.set_devices(devices);
  for (const std::string& override : overrides) {
    const Status status = ApplyOverride(override, &spec);
    EXPECT_TRUE(status.ok()) << ToString(status);
  }
  ApplyDefaults(&spec);
  return spec;
}

constexpr const char* kTraining =
    "training={global_batch_size: 64, micro_batch_size: 1, sequence_length: 4096, compute_dtype: "
    "bfloat16}";
constexpr const char* kSharded = "parallelism={data_parallel_shard_degree: 8}";

const std::vector<std::pair<const char*, std::vector<std::string>>>& Jobs() {
  static const auto& jobs = *new std::vector<std::pair<const char*, std::vector<std::string>>>{
      {"llama-1b", {"model={preset: llama-1b}", kTraining, kSharded}},
      {"llama-8b",
       {"model={preset: llama-8b}", kTraining, kSharded, "activation_recomputation={mode: full}"}},
      {"mixture of 8 experts",
       {"model={preset: llama-1b, pattern: (AE)x16, num_experts: 8, num_experts_per_tok: 2, "
        "moe_intermediate_size: 2048, capacity_factor: 1.25}",
        kTraining, "parallelism={data_parallel_shard_degree: 2, expert_parallel_degree: 4}"}}};
  return jobs;
}

std::string LineOf(const v1::JobSpec& spec, const v1::DeviceProfile& profile) {
  const auto plan = MakeUnplacedPlan(spec, &profile);
  if (!plan.ok()) return ToString(plan.status());
  const Status fits = CheckMemory(DecodeJob(spec).value(), *plan, profile);
  if (!fits.ok()) return std::string(Message(fits));
  const auto time = EstimateStepTime(DecodeJob(spec).value(), *plan, profile);
  if (!time.ok()) return ToString(time.status());
  const v1::RankMemory& memory = plan->memory(0);
  return fmt::format(
      "{:.4g} s, MFU {:.2f}%, communication {:.4g} s; {} of {} bytes, scratch {}, reserve {}",
      time->seconds, 100 * time->mfu, time->communication_seconds, memory.total_bytes(),
      profile.memory_bytes(), memory.scratch_bytes(), memory.reserve_bytes());
}

TEST(TpuPlan, OfEightDevicesIsGolden) {
  std::string lines;
  for (const char* name : {"v4", "v5e", "v5p", "v6e", "7x"}) {
    const v1::DeviceProfile profile = ProfileOf(name);
    for (const auto& [job, overrides] : Jobs())
      lines += fmt::format("{} on {}: {}\n", job, name, LineOf(JobOf(overrides), profile));
  }
  ExpectGolden("plan/device/golden/tpu_plans.txt", lines);
}

TEST(TpuPlan, HasTheMemoryOfItsDeviceOnly) {
  const v1::JobSpec spec =
      JobOf({"model={preset: tiny}", "checkpoint={folder: /c, async_mode: async}"});
  const v1::DeviceProfile profile = ProfileOf("v5e");
  const auto plan = MakeUnplacedPlan(spec, &profile);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const v1::RankMemory& memory = plan->memory(0);
  // Copies for a save are in the host's memory.
  EXPECT_GT(memory.snapshot_bytes(), 0);
  EXPECT_EQ(memory.host_bytes(), memory.snapshot_bytes());
  EXPECT_GT(memory.reserve_bytes(), 0);
  EXPECT_EQ(memory.total_bytes(), memory.parameter_bytes() + memory.compute_copy_bytes() +
                                      memory.gradient_bytes() + memory.optimizer_bytes() +
                                      memory.saved_bytes() + memory.temporary_bytes() +
                                      memory.scratch_bytes() + memory.reserve_bytes());
  // A search has the same figure.
  const v1::JobSpec job = JobOf({"model={preset: tiny}", kTraining});
  const auto estimate = EstimateLayout(DecodeJob(job).value(), profile);
  const auto searched = MakeUnplacedPlan(job, &profile);
  ASSERT_TRUE(estimate.ok() && searched.ok());
  EXPECT_EQ(estimate->memory_bytes, searched->memory(0).total_bytes());
  // Without a profile the devices are taken for the host's.
  const auto unknown = MakeUnplacedPlan(spec);
  ASSERT_TRUE(unknown.ok());
  EXPECT_EQ(unknown->memory(0).reserve_bytes(), 0);
}

TEST(TpuPlan, OfAWorkersDeviceHasItsMemoryAndWarnsWhereItIsShort) {
  const v1::JobSpec spec = JobOf({"model={preset: tiny}"});
  ClusterView cluster = ImaginedCluster(1, "xla");
  v1::Device& device = cluster.free_devices[0].device;
  device.mutable_kind()->set_model("TPU v5 lite");
  device.set_memory_bytes(1 << 20);
  const auto plan = MakePlan(spec, cluster);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->memory(0).reserve_bytes(), 0);
  EXPECT_THAT(plan->warnings().Get(plan->warnings_size() - 1),
              HasSubstr("of its device, but 1 of the stage's devices has less, the smallest only"));
}

TEST(TpuPlan, ShowsTheFiguresOfTheCompiler) {
  const v1::DeviceProfile profile = ProfileOf("v6e");
  auto plan = MakeUnplacedPlan(JobOf({"model={preset: tiny}"}), &profile);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(PlanToJson(*plan), Not(HasSubstr("compiled")));
  v1::RankMemory& memory = *plan->mutable_memory(0);
  memory.set_total_bytes(2'000'000'000);
  memory.set_compiled_bytes(1'900'000'000);
  memory.add_compiled("6 programs");
  const auto json = nlohmann::json::parse(PlanToJson(*plan))["stages"][0]["memory"];
  EXPECT_EQ(json["compiled_bytes"], 1'900'000'000);
  EXPECT_EQ(json["compiled"][0], "6 programs");
}

// With 256 tokens attention's gradient needs most: 32 heads, 128 queries and 256 keys four times in
// float32. With 2,048 tokens two chunks of the head, of 1,024 rows of logits, add to the float32
// gradient of the table.
TEST(TpuPlan, HasTheScoresOfAChunkOrActivationsInFloat32AndASecondGradient) {
  const auto scratch = [](int64_t tokens) {
    const v1::DeviceProfile profile = ProfileOf("v6e");
    const auto plan =
        MakeUnplacedPlan(JobOf({"model={preset: llama-1b, pattern: (AD)x2, vocab_size: 16384, "
                                "tie_word_embeddings: false}",
                                fmt::format("training={{global_batch_size: 1, micro_batch_size: 1, "
                                            "sequence_length: {}, compute_dtype: bfloat16}}",
                                            tokens)}),
                         &profile);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? plan->memory(0).scratch_bytes() : 0;
  };
  EXPECT_EQ(scratch(256), 4 * 32 * 128 * 256 * 4);
  EXPECT_EQ(scratch(2048), 1024 * 16384 * 2 + 16384 * 2048 * 4);
}

TEST(TpuPlan, OfAJobForOtherDevicesIsRefused) {
  const v1::DeviceProfile profile = ProfileOf("v6e");
  const auto plan = MakeUnplacedPlan(JobOf({"model={preset: tiny}"}, "cuda"), &profile);
  EXPECT_EQ(std::string(Message(plan.status())),
            "devices is cuda, but device profile TPU v6 lite, roofline is of TPU v6 lite, which "
            "jobs with devices: xla use");
}

// A plan for TPU7x gives ranks no chips yet, but they are to be a slice.
TEST(TpuPlan, OfAStageThatIsNoSliceIsRefusedForEveryTpu) {
  const v1::JobSpec spec =
      JobOf({"model={preset: tiny}", kTraining, "parallelism={data_parallel_replicate_degree: 3}",
             "training.global_batch_size=3"});
  for (const char* name : {"v6e", "7x"}) {
    const v1::DeviceProfile profile = ProfileOf(name);
    EXPECT_THAT(std::string(Message(MakeUnplacedPlan(spec, &profile).status())),
                HasSubstr("= 3 ranks in a pipeline stage, but on TPUs they are a slice"))
        << name;
  }
}

TEST(TpuPlan, ThatDoesNotFitIsRefusedWithTheFigures) {
  const v1::JobSpec spec = JobOf({"model={preset: llama-8b}", kTraining});
  const v1::DeviceProfile profile = ProfileOf("v5e");
  const auto plan = MakeUnplacedPlan(spec, &profile);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(
      std::string(Message(CheckMemory(DecodeJob(spec).value(), *plan, profile))),
      fmt::format("parallelism gives a rank of stage 0 {}, but a device of profile TPU v5 "
                  "lite, roofline has 16.9 GB: {} are missing",
                  Scaled(static_cast<double>(plan->memory(0).total_bytes()), "B"),
                  Scaled(static_cast<double>(plan->memory(0).total_bytes() - 16909334528), "B")));
}

}  // namespace
}  // namespace troupe
