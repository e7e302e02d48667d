// The schedules by name: the names in a job file, the default number of chunks per stage, the
// shapes that each schedule supports, what bounds its time and memory, and the schedule itself.
// Pure.
#ifndef TROUPE_PLAN_SCHEDULES_SCHEDULES_H_
#define TROUPE_PLAN_SCHEDULES_SCHEDULES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/schedules/schedule.h"

namespace troupe {

// One enumerator per row of schedule_kinds.def.
#define TROUPE_SCHEDULE(kind, record) kind,
enum class ScheduleKind {
#include "plan/schedules/schedule_kinds.def"
};
#undef TROUPE_SCHEDULE
#define TROUPE_SCHEDULE(kind, record) ScheduleKind::kind,
inline constexpr ScheduleKind kScheduleKinds[] = {
#include "plan/schedules/schedule_kinds.def"
};
#undef TROUPE_SCHEDULE

// "auto" is not a schedule; it asks the planner for the best one (plan/cost/choose_schedule.h).
inline constexpr std::string_view kAutoSchedule = "auto";

struct NamedSchedule {
  ScheduleKind kind = ScheduleKind::k1F1B;
  int default_chunks_per_stage = 1;
};

// Finds a schedule by its name in the job file, ours or torchtitan's. None for any other name,
// including "auto".
std::optional<NamedSchedule> FindSchedule(std::string_view name);

// All names that FindSchedule knows, as a list for a sentence.
std::string KnownSchedules();

// Our name of the schedule, such as "ZBV".
const char* Name(ScheduleKind kind);

// Whether the schedule supports this shape: INVALID_ARGUMENT with the relation that fails and its
// numbers. REQUIRES: every number of `shape` is at least 1.
Status CheckShape(ScheduleKind kind, const PipelineShape& shape);

// Whether any schedule supports this shape; INVALID_ARGUMENT with every schedule's reason.
Status CheckAnyShape(const PipelineShape& shape);

// The chunks of each rank under the schedule, ascending. REQUIRES: CheckShape(kind, shape) is OK.
std::vector<std::vector<int>> ChunksByRank(ScheduleKind kind, const PipelineShape& shape);

// Whether the schedule runs weight gradients as actions of their own.
bool SplitsBackward(ScheduleKind kind);

// A lower bound on the most microbatches of one chunk of `rank` that are live at once. REQUIRES:
// CheckShape(kind, shape) is OK.
int LeastLiveMicrobatches(ScheduleKind kind, const PipelineShape& shape, int rank);

// REQUIRES: CheckShape(kind, shape) is OK.
Schedule MakeSchedule(ScheduleKind kind, const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_SCHEDULES_H_
