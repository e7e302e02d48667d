// The record of a schedule: its names, the shapes that it supports, and its actions.
//
// A schedule is one file of this folder, which defines its record, one row in schedule_kinds.def,
// and its golden text. Other code asks plan/schedules/schedules.h. Records are constants;
// thread-safe.
#ifndef TROUPE_PLAN_SCHEDULES_SCHEDULE_RECORD_H_
#define TROUPE_PLAN_SCHEDULES_SCHEDULE_RECORD_H_

#include "base/status.h"
#include "plan/schedules/schedule.h"

namespace troupe {

struct ScheduleRecord {
  const char* name = nullptr;        // in job files and golden texts
  int default_chunks_per_stage = 1;  // where the job states no number
  // torchtitan's name, which a job file may state too, with its own default. Null: the same name.
  const char* alias = nullptr;
  int alias_chunks_per_stage = 1;
  // Whether the schedule refuses any other number of chunks than the default.
  bool has_only_default_chunks = false;
  // Returns INVALID_ARGUMENT for a shape that the schedule does not support: a predicate that
  // follows the name in a sentence, with the relation that fails and its numbers. Null: the number
  // of chunks is the only condition. REQUIRES: every number of `shape` is at least 1.
  Status (*check)(const PipelineShape& shape) = nullptr;
  // REQUIRES: the schedule supports `shape`.
  Schedule (*make)(const PipelineShape& shape) = nullptr;
};

// One declaration per row of schedule_kinds.def.
#define TROUPE_SCHEDULE(kind, record) extern const ScheduleRecord record;
#include "plan/schedules/schedule_kinds.def"
#undef TROUPE_SCHEDULE

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_SCHEDULE_RECORD_H_
