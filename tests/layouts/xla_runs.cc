#include "tests/layouts/xla_runs.h"

#include <map>
#include <memory>
#include <string>

#include "kernels/xla/runtime/xla_backend.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/xla_programs.h"

namespace troupe {

std::vector<std::string> CompiledPrograms() { return (*XlaPrograms())->compilation().programs; }

TrainOptions OnXla(const kernels::xla::StepUse& use) {
  TrainOptions options;
  options.steps = kXlaSteps;
  options.make_backend = [use](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    TROUPE_ASSIGN_OR_RETURN(kernels::xla::ProgramCache* const programs, XlaPrograms());
    return kernels::xla::XlaBackend::Make(*programs, {.use = use});
  };
  return options;
}

void ExpectLossesOfOneRank(const TrainOptions& options, v1::JobSpec job, v1::JobSpec alone) {
  static std::map<std::string, std::vector<StepResult>> expected;  // by the job
  if (job.parallelism().pipeline_parallel_degree() == 1) {
    const std::string one_of_each = job.model().num_experts() > 0 ? "AE" : "AD";
    for (v1::JobSpec* const spec : {&job, &alone}) spec->mutable_model()->set_pattern(one_of_each);
  }
  std::vector<StepResult>& steps = expected[alone.SerializeAsString()];
  if (steps.empty()) steps = RunOrDie(alone, {.steps = kXlaSteps});
  ExpectClose(Prepared(RunOrDie, job, options), steps);
}

}  // namespace troupe
