// The schedules by name: what a job file may say, how many chunks a stage has unless it says so, which shapes each
// runs, and the schedule itself. Pure.
#ifndef TROUPE_PLAN_SCHEDULES_SCHEDULES_H_
#define TROUPE_PLAN_SCHEDULES_SCHEDULES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/schedules/schedule.h"

namespace troupe {

enum class ScheduleKind { kGPipe, k1F1B, kInterleaved1F1B, kZeroBubbleH1, kZeroBubbleV, kDualPipeV };
inline constexpr ScheduleKind kScheduleKinds[] = {
    ScheduleKind::kGPipe,        ScheduleKind::k1F1B,        ScheduleKind::kInterleaved1F1B,
    ScheduleKind::kZeroBubbleH1, ScheduleKind::kZeroBubbleV, ScheduleKind::kDualPipeV};

// "auto": not a schedule but the wish for the best one (plan/choose_schedule.h).
inline constexpr std::string_view kAutoSchedule = "auto";

struct NamedSchedule {
  ScheduleKind kind = ScheduleKind::k1F1B;
  int default_chunks_per_stage = 1;
};

// Of a name of the job file: ours or torchtitan's. None for any other, "auto" included.
std::optional<NamedSchedule> FindSchedule(std::string_view name);

// All of FindSchedule's names, as a sentence lists them.
const char* KnownSchedules();

// "ZBV": ours.
const char* Name(ScheduleKind kind);

// Whether the schedule runs this shape: INVALID_ARGUMENT with the relation that fails and its numbers. REQUIRES: every
// number of `shape` is at least 1.
Status CheckShape(ScheduleKind kind, const PipelineShape& shape);

// Whether any schedule does; INVALID_ARGUMENT with every schedule's reason.
Status CheckAnyShape(const PipelineShape& shape);

// REQUIRES: CheckShape(kind, shape) is OK.
Schedule MakeSchedule(ScheduleKind kind, const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_SCHEDULES_H_
