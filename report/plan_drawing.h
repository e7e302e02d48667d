// The parts of a page that show a plan. Pure.
#ifndef TROUPE_REPORT_PLAN_DRAWING_H_
#define TROUPE_REPORT_PLAN_DRAWING_H_

#include "report/markup.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The ranks by pipeline stage, with the host of each if the plan is placed.
void DrawLayout(const v1::Plan& plan, Markup* page);
// The blocks of each chunk, with its parameters, FLOPs and memory.
void DrawStages(const v1::Plan& plan, Markup* page);
void DrawMemory(const v1::Plan& plan, Markup* page);
// The planned schedule, at the equal costs of all chunks by which its bubble is counted.
void DrawSchedule(const v1::Plan& plan, Markup* page);
void DrawTraffic(const v1::Plan& plan, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_PLAN_DRAWING_H_
