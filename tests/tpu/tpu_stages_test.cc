// Compiles stages of models for TPUs with libtpu (TROUPE_LIBTPU), and compares the memory that the
// compiler needs with the plan's. Without libtpu every test is skipped with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/compile/compile_plan.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "plan/device/device_profile.h"
#include "plan/device/tpu_model.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/layout/slice_placement.h"
#include "plan/make_plan.h"
#include "plan/validate/stage_slices.h"

namespace troupe {
namespace {

// Few tokens keep the compiler's time short. With 2,048, attention is a loop.
std::string Training(int tokens) {
  return fmt::format(
      "training={{global_batch_size: 4, micro_batch_size: 1, sequence_length: {}, compute_dtype: "
      "bfloat16}}",
      tokens);
}

struct Case {
  const char* model;
  const char* profile;  // examples/profiles/tpu-NAME.yaml
  int tokens;
  std::vector<std::string> overrides;
};

void PrintTo(const Case& of, std::ostream* out) {
  *out << of.model << " on " << of.profile << " with " << of.tokens << " tokens";
}

// Two layers; other layers have the same programs.
Case Llama1b(const char* profile, int tokens) {
  return {
      "Llama1b", profile, tokens, {"model={preset: llama-1b, pattern: (AD)x2, vocab_size: 1024}"}};
}
Case Llama8b(const char* profile, int tokens) {
  return {"Llama8b",
          profile,
          tokens,
          {"model={preset: llama-8b, pattern: (AD)x2, vocab_size: 1024}",
           "parallelism={tensor_parallel_degree: 4, sequence_parallel: true}"}};
}
Case Mixture(const char* profile, int tokens) {
  return {"Mixture",
          profile,
          tokens,
          {"model={preset: llama-1b, pattern: (AE)x2, vocab_size: 1024, num_experts: 8, "
           "num_experts_per_tok: 2, moe_intermediate_size: 2048, capacity_factor: 1.25}"}};
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const auto& model : {Llama1b, Llama8b, Mixture}) {
    for (const char* profile : {"v5e", "v6e", "7x"}) cases.push_back(model(profile, 256));
    cases.push_back(model("v6e", 2048));
  }
  return cases;
}

class TpuStages : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const StatusOr<std::string> path = kernels::xla::FindLibtpu();
    if (!path.ok()) GTEST_SKIP() << path.status();
  }
};

v1::DeviceProfile ProfileOf(const std::string& name) {
  const std::string path = "examples/profiles/tpu-" + name + ".yaml";
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const auto profile = ParseDeviceProfile(text.str(), path);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return profile.ok() ? *profile : v1::DeviceProfile();
}

// The plan on the chips of an imagined slice, as `troupe plan --profile` makes it.
StatusOr<v1::Plan> PlanFor(const v1::JobSpec& spec, const v1::DeviceProfile& profile) {
  TROUPE_ASSIGN_OR_RETURN(v1::Plan plan, MakeUnplacedPlan(spec, &profile));
  if (!HasStageSlices(profile.device_model())) return plan;
  TROUPE_ASSIGN_OR_RETURN(const ClusterView cluster,
                          ImaginedSlice(*FindTpuModel(profile.device_model()), plan.ranks_size()));
  return PlacePlan(spec, plan, cluster);
}

TEST_P(TpuStages, NeedTheMemoryOfThePlan) {
  v1::JobSpec spec;
  spec.set_devices("xla");
  ASSERT_EQ(ApplyOverride(Training(GetParam().tokens), &spec), OkStatus());
  for (const std::string& override : GetParam().overrides)
    ASSERT_EQ(ApplyOverride(override, &spec), OkStatus());
  ApplyDefaults(&spec);
  const v1::DeviceProfile profile = ProfileOf(GetParam().profile);
  auto plan = PlanFor(spec, profile);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(CompilePlan(
                spec, [](const std::string&) {}, &*plan),
            OkStatus());
  for (const v1::RankMemory& memory : plan->memory()) {
    const auto compiled = static_cast<double>(memory.compiled_bytes());
    EXPECT_GT(compiled, 0);
    EXPECT_LT(compiled, static_cast<double>(profile.memory_bytes()));
    const auto planned = static_cast<double>(memory.total_bytes());
    EXPECT_LE(std::abs(planned - compiled), 0.1 * compiled)
        << "planned " << planned << "\n"
        << testing::PrintToString(memory.compiled());
    // The ranks of a stage are compiled together.
    EXPECT_EQ(memory.compiled_collectives_size() > 0, plan->ranks_size() > 1);
    RecordProperty("planned_bytes", std::to_string(memory.total_bytes()));
    RecordProperty("compiled_bytes", std::to_string(memory.compiled_bytes()));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TpuStages, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return fmt::format("{}On{}With{}Tokens", info.param.model,
                                              info.param.profile, info.param.tokens);
                         });

Status ErrorOf(const v1::DeviceProfile& profile) {
  v1::JobSpec spec;
  spec.set_devices("xla");
  EXPECT_EQ(ApplyOverride("model={preset: tiny}", &spec), OkStatus());
  EXPECT_EQ(ApplyOverride("training.compute_dtype=bfloat16", &spec), OkStatus());
  ApplyDefaults(&spec);
  auto plan = PlanFor(spec, profile);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return CompilePlan(
      spec, [](const std::string&) {}, &*plan);
}

TEST(CompilePlan, NeedsLibtpu) {
  const char* const set = std::getenv("TROUPE_LIBTPU");
  const std::string before = set == nullptr ? "" : set;
  setenv("TROUPE_LIBTPU", "/nowhere/libtpu.so", 1);
  const Status status = ErrorOf(ProfileOf("v6e"));
  setenv("TROUPE_LIBTPU", before.c_str(), 1);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(status)),
              testing::HasSubstr("TROUPE_LIBTPU is /nowhere/libtpu.so, which is no file; pip "));
}

TEST(CompilePlan, NeedsTheProfileOfATpu) {
  v1::DeviceProfile profile = ProfileOf("v6e");
  profile.clear_device_model();
  EXPECT_EQ(ErrorOf(profile),
            InvalidArgument("device_model is absent from the device profile: --compile needs the "
                            "profile of a TPU"));
}

}  // namespace
}  // namespace troupe
