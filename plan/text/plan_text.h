// Formats a plan as text for people and as the JSON of `troupe plan -o json`. Pure.
#ifndef TROUPE_PLAN_TEXT_PLAN_TEXT_H_
#define TROUPE_PLAN_TEXT_PLAN_TEXT_H_

#include <string>

#include "plan/cost/step_time.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// One JSON object: mesh, ranks, stages, parameters, model_flops_per_step, memory, traffic,
// schedule, cannot_fix, ownership, warnings; if `time` is given, estimate.
std::string PlanToJson(const v1::Plan& plan, const StepTime* time = nullptr);

// One page of text. Ranks after the first 8 are counted, not listed; warnings come last. If
// `fault_cost` is given, the page states it.
std::string PlanToText(const v1::Plan& plan, const StepTime* time = nullptr,
                       const std::string& fault_cost = "");

}  // namespace troupe

#endif  // TROUPE_PLAN_TEXT_PLAN_TEXT_H_
