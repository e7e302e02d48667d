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

bool ChoosesTensorParts(const DecodedJob& job) {
  return !job.spec.parallelism().has_tensor_parallel_parts() &&
         job.mesh.degree(model::Axis::kTensor) > 1 && !model::HasExperts(job.model.blocks);
}

Status ChooseTensorParts(StageMemo& stages, v1::Plan* plan) {
  const DecodedJob& job = stages.job();
  if (!ChoosesTensorParts(job)) return OkStatus();
  const int64_t rows = job.rows_per_microbatch();
  const int64_t shares = job.splits_rows_over_tensor ? plan->mesh().tensor() : 1;
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
