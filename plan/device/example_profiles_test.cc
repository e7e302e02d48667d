// Tests the device profiles of examples/profiles, and plans the jobs of examples/ with those of
// GPUs.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "plan/cost/memory_fit.h"
#include "plan/cost/step_time.h"
#include "plan/device/device_profile.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/search/search.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;

constexpr char kFolder[] = "examples/profiles";

std::vector<std::string> ProfileNames() {
  std::vector<std::string> names;
  std::error_code absent;  // the binary runs elsewhere: EveryDeviceHasOne fails
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, absent))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

v1::DeviceProfile ExampleProfile(const std::string& name) {
  const std::string path = fmt::format("{}/{}.yaml", kFolder, name);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const auto profile = ParseDeviceProfile(text.str(), path);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return profile.ok() ? *profile : v1::DeviceProfile();
}

v1::JobSpec ExampleJob(const std::string& name) {
  const auto job = LoadJobFile(std::filesystem::absolute("examples/" + name + ".yaml"), {});
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? job->spec : v1::JobSpec();
}

class ExampleProfilesTest : public testing::TestWithParam<std::string> {};

TEST_P(ExampleProfilesTest, IsReadAndItsNameStatesWhetherItWasMeasured) {
  const v1::DeviceProfile profile = ExampleProfile(GetParam());
  const bool is_roofline = profile.matmul_efficiency() == 1 && AttentionEfficiency(profile) == 1;
  EXPECT_THAT(profile.name(), EndsWith(is_roofline ? ", roofline" : ", measured"));
}

INSTANTIATE_TEST_SUITE_P(EveryFile, ExampleProfilesTest, testing::ValuesIn(ProfileNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

const std::vector<std::string>& GpuProfiles() {
  static const auto& names = *new std::vector<std::string>{
      "nvidia-a100", "nvidia-h100", "nvidia-h200", "nvidia-h200-measured", "nvidia-b200"};
  return names;
}

TEST(ExampleProfiles, EveryDeviceHasOne) {
  std::vector<std::string> expected = GpuProfiles();
  for (const char* name : {"tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-7x"})
    expected.push_back(name);
  for (const std::string& name : expected) EXPECT_THAT(ProfileNames(), Contains(name));
}

TEST(ExampleProfiles, OfGpusAreRefusedForJobsOnProcessors) {
  v1::JobSpec spec = ExampleJob("llama-124m");
  spec.set_devices("cpu");
  ApplyDefaults(&spec);
  for (const std::string& name : GpuProfiles()) {
    const v1::DeviceProfile profile = ExampleProfile(name);
    const auto plan = MakeUnplacedPlan(spec, &profile);
    ASSERT_FALSE(plan.ok()) << name;
    EXPECT_THAT(std::string(Message(plan.status())),
                testing::StartsWith("devices is cpu, but device profile NVIDIA "));
  }
}

TEST(ExampleProfiles, PlansOfTheExamplesForGpusFitAndHaveTimeAndMfu) {
  for (const char* job : {"llama-124m", "llama-1b", "llama-8b"}) {
    v1::JobSpec spec = ExampleJob(job);
    ApplyDefaults(&spec);
    for (const std::string& name : GpuProfiles()) {
      const v1::DeviceProfile profile = ExampleProfile(name);
      const auto plan = MakeUnplacedPlan(spec, &profile);
      ASSERT_TRUE(plan.ok()) << job << " on " << name << ": " << plan.status();
      EXPECT_TRUE(CheckMemory(DecodeJob(spec).value(), *plan, profile).ok())
          << job << " on " << name;
      const auto time = EstimateStepTime(DecodeJob(spec).value(), *plan, profile);
      ASSERT_TRUE(time.ok()) << job << " on " << name << ": " << time.status();
      EXPECT_GT(time->seconds, 0) << job << " on " << name;
      EXPECT_GT(time->mfu, 0.3) << job << " on " << name;
      EXPECT_LT(time->mfu, 1) << job << " on " << name;
    }
  }
}

TEST(ExampleProfiles, WhatWasMeasuredOnAnH200IsAllThatDiffersFromItsRoofline) {
  v1::DeviceProfile measured = ExampleProfile("nvidia-h200-measured");
  const v1::DeviceProfile roofline = ExampleProfile("nvidia-h200");
  EXPECT_EQ(measured.matmul_efficiency(), 0.74);
  EXPECT_EQ(measured.attention_efficiency(), 0.33);
  EXPECT_EQ(measured.memory_bytes_per_second(), 4.28e12);
  measured.set_matmul_efficiency(roofline.matmul_efficiency());
  measured.clear_attention_efficiency();
  measured.set_memory_bytes_per_second(roofline.memory_bytes_per_second());
  measured.set_name(roofline.name());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(measured, roofline));
}

TEST(ExampleProfiles, ASearchFindsALayoutThatIsNoSlowerThanTheExample) {
  const v1::JobSpec spec = ExampleJob("llama-1b");
  const v1::DeviceProfile profile = ExampleProfile("nvidia-h200");
  const auto found = SearchLayouts(spec, profile, {.devices = 8});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_FALSE(found->best.empty());
  v1::JobSpec stated = spec;
  ApplyDefaults(&stated);
  const auto plan = MakeUnplacedPlan(stated, &profile);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto time = EstimateStepTime(DecodeJob(stated).value(), *plan, profile);
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_LE(found->best[0].time.seconds, time->seconds);
}

}  // namespace
}  // namespace troupe
