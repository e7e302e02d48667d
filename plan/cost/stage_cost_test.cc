#include "plan/cost/stage_cost.h"

#include <gtest/gtest.h>

#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/job/violation.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

// Validation refuses such a job by its key; this is what refuses an operation that no key names.
TEST(StageCost, OfAProgramThatTheDevicesDoNotRunIsRefusedWithTheOperation) {
  v1::JobSpec spec;
  for (const char* override :
       {"model.preset=tiny", "training={compute_dtype: bfloat16, float8: {recipe: delayed}}"})
    ASSERT_EQ(ApplyOverride(override, &spec), OkStatus());
  ApplyDefaults(&spec);
  const auto plan = MakeUnplacedPlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(BuildStage(DecodeJob(spec).value(), *plan, 0).status(), OkStatus());
  spec.set_devices("xla");
  EXPECT_EQ(std::string(Message(BuildStage(DecodeJob(spec).value(), *plan, 0).status())),
            "devices is xla, which do not run the operation quantize: FP8 tensors are not lowered "
            "to XLA");
}

}  // namespace
}  // namespace troupe
