// A plan as the JSON of `troupe plan -o json`. Pure.
#ifndef TROUPE_PLAN_TEXT_PLAN_JSON_H_
#define TROUPE_PLAN_TEXT_PLAN_JSON_H_

#include <string>

#include "plan/cost/step_time.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// One JSON object: mesh, ranks, stages, parameters, model_flops_per_step, memory, traffic,
// schedule, cannot_fix, ownership, warnings; if `time` is given, estimate.
std::string PlanToJson(const v1::Plan& plan, const StepTime* time = nullptr);

}  // namespace troupe

#endif  // TROUPE_PLAN_TEXT_PLAN_JSON_H_
