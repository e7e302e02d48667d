#include "tests/layouts/xla_runs.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "kernels/xla/runtime/xla_backend.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/xla_programs.h"

namespace troupe {
namespace {

std::vector<std::string> CompiledPrograms() { return (*XlaPrograms())->compilation().programs; }

}  // namespace

TrainOptions OnXla(const kernels::xla::StepUse& use) {
  TrainOptions options;
  options.make_backend = [use](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    TROUPE_ASSIGN_OR_RETURN(kernels::xla::ProgramCache* const programs, XlaPrograms());
    return kernels::xla::XlaBackend::Make(*programs, {.use = use});
  };
  return options;
}

std::vector<StepResult> RunOnXla(const v1::JobSpec& job, const kernels::xla::StepUse& use,
                                 int64_t steps_to_run) {
  TrainOptions options = OnXla(use);
  std::atomic<size_t> prepared = 0;
  options.before_steps = [&](int, Executor&) { prepared = CompiledPrograms().size(); };
  options.steps = steps_to_run;
  std::vector<StepResult> steps = RunOrDie(job, options);
  const std::vector<std::string> programs = CompiledPrograms();
  EXPECT_EQ(programs.size(), prepared) << "compiled in a step: " << programs.back();
  return steps;
}

void ExpectLossesOfOneRank(const RunJob& run, v1::JobSpec job, v1::JobSpec alone) {
  static std::map<std::string, std::vector<StepResult>> expected;  // by the pattern of blocks
  if (job.parallelism().pipeline_parallel_degree() == 1) {
    const std::string one_of_each = job.model().num_experts() > 0 ? "AE" : "AD";
    for (v1::JobSpec* const spec : {&job, &alone}) spec->mutable_model()->set_pattern(one_of_each);
  }
  std::vector<StepResult>& steps = expected[alone.model().pattern()];
  if (steps.empty()) steps = RunOrDie(alone, {.steps = kXlaSteps});
  ExpectClose(run(job), steps);
}

}  // namespace troupe
