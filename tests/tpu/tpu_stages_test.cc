// Compiles stages of models for TPUs with libtpu (TROUPE_LIBTPU), and compares the memory that the
// compiler needs with the plan's. Without libtpu every test is skipped with the reason.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/compile_plan.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "plan/device/device_profile.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

struct Case {
  const char* name;
  const char* profile;  // examples/profiles/tpu-NAME.yaml
  std::vector<std::string> overrides;
};

void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }

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

TEST_P(TpuStages, CompileIntoTheMemoryOfTheDevice) {
  v1::JobSpec spec;
  spec.set_devices("xla");
  for (const std::string& override : GetParam().overrides)
    ASSERT_EQ(ApplyOverride(override, &spec), OkStatus());
  ApplyDefaults(&spec);
  const v1::DeviceProfile profile = ProfileOf(GetParam().profile);
  auto plan = MakeUnplacedPlan(spec, &profile);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(CompilePlan(
                spec, [](const std::string& name) { std::printf("compile %s\n", name.c_str()); },
                &*plan),
            OkStatus());
  for (const v1::RankMemory& memory : plan->memory()) {
    EXPECT_GT(memory.compiled_bytes(), 0);
    EXPECT_LT(memory.compiled_bytes(), profile.memory_bytes());
    std::printf("plan %ld: parameters %ld copies %ld gradients %ld optimizer %ld saved %ld "
                "temporary %ld scratch %ld\n", memory.total_bytes(), memory.parameter_bytes(),
                memory.compute_copy_bytes(), memory.gradient_bytes(), memory.optimizer_bytes(),
                memory.saved_bytes(), memory.temporary_bytes(), memory.scratch_bytes());
    std::printf("compiled %ld\n", memory.compiled_bytes());
    for (const auto& line : memory.compiled()) std::printf("  %s\n", line.c_str());
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* profile : {"v5e", "v6e", "7x"}) {
    cases.push_back({"Llama1b", profile,
                     {"model={preset: llama-1b, pattern: (AD)x2}",
                      "training={global_batch_size: 2, micro_batch_size: 1, sequence_length: 2048, "
                      "compute_dtype: bfloat16}"}});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, TpuStages, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.name) + "On" + info.param.profile;
                         });

}  // namespace
}  // namespace troupe
