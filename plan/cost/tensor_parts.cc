#include "plan/cost/tensor_parts.h"

#include <cstdint>
#include <string>
#include <vector>

#include "model/blocks/pattern.h"
#include "plan/cost/step_time.h"

namespace troupe {
namespace {

constexpr double kWorthIt = 0.99;  // times the step with fewer parts

}  // namespace

bool ChoosesTensorParts(const v1::JobSpec& spec) {
  return !spec.parallelism().has_tensor_parallel_parts() &&
         spec.parallelism().tensor_parallel_degree() > 1 &&
         !model::HasExperts(spec.model().pattern());
}

Status ChooseTensorParts(const v1::JobSpec& spec, StageMemo& stages, v1::Plan* plan) {
  if (!ChoosesTensorParts(spec)) return OkStatus();
  const v1::ParallelismSpec& parallelism = spec.parallelism();
  const int64_t tensor = plan->mesh().tensor();
  const int64_t rows = spec.training().micro_batch_size() * spec.training().sequence_length() /
                       plan->mesh().context();
  const int64_t shares = parallelism.sequence_parallel() ? tensor : 1;
  std::vector<std::string> reasons;
  int best_parts = 1;
  double best = 0;
  for (const int parts : {1, 2, 4, 8}) {
    if (rows % (parts * shares) != 0) break;
    plan->set_tensor_parallel_parts(parts);
    TROUPE_ASSIGN_OR_RETURN(const StepTime time, EstimateStepTime(stages, *plan));
    reasons.push_back(
        fmt::format("{} {}: {:.4g} s per step, of which {:.4g} s are exposed communication", parts,
                    parts == 1 ? "part" : "parts", time.seconds, time.communication_seconds));
    if (parts == 1 || time.seconds < kWorthIt * best) {
      best = time.seconds;
      best_parts = parts;
    }
  }
  plan->set_tensor_parallel_parts(best_parts);
  for (std::string& reason : reasons) plan->add_tensor_parts_choice(std::move(reason));
  return OkStatus();
}

}  // namespace troupe
