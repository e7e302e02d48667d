// Tests that the job files of examples/ are possible as they are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/job/key_warnings.h"
#include "plan/make_plan.h"
#include "plan/validate/validate.h"

namespace troupe {
namespace {

constexpr int64_t kGpuBytes = 80'000'000'000;

class ExampleTest : public testing::TestWithParam<std::string> {};

TEST_P(ExampleTest, IsValidWithoutAWarningAndFitsItsDevices) {
  const auto path = std::filesystem::absolute("examples/" + GetParam() + ".yaml");
  const StatusOr<LoadedJob> job = LoadJobFile(path, {});
  ASSERT_TRUE(job.ok()) << job.status();
  v1::JobSpec spec = job->spec;
  ApplyDefaults(&spec);
  const Status valid = ValidateJobSpec(spec, JobPurpose::kTrain);
  EXPECT_TRUE(valid.ok()) << valid;
  EXPECT_THAT(KeyWarnings(spec), testing::IsEmpty());
  const StatusOr<v1::Plan> plan = MakeUnplacedPlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->warnings(), testing::IsEmpty());
  for (const auto& memory : plan->memory()) EXPECT_LT(memory.total_bytes(), kGpuBytes);
}

std::vector<std::string> Examples() {
  std::vector<std::string> names;
  std::error_code absent;  // the binary runs elsewhere: EveryPresetHasOne fails
  for (const auto& entry : std::filesystem::directory_iterator("examples", absent)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(EveryJobFile, ExampleTest, testing::ValuesIn(Examples()));

TEST(ExamplesTest, EveryPresetHasOne) {
  for (const char* preset : {"tiny", "llama-124m", "llama-1b", "llama-8b"}) {
    EXPECT_THAT(Examples(), testing::Contains(preset));
  }
}

}  // namespace
}  // namespace troupe
