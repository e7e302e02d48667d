// The record of a schedule: its names, the shapes that it supports, its actions, and properties of
// them that bound a step's time and memory before any action is known.
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
  // Each of the following REQUIRES that the schedule supports `shape`.
  //
  // The chunks of each rank, as in Schedule::chunks.
  std::vector<std::vector<int>> (*chunks)(const PipelineShape& shape) = LoopedChunks;
  // Whether any weight gradient runs as an action of its own.
  bool splits_backward = false;
  // A lower bound on the most microbatches of one chunk of `rank` that are live at once. Null: 1.
  int (*least_live_microbatches)(const PipelineShape& shape, int rank) = nullptr;
  // The actions of each rank, as in Schedule::actions.
  std::vector<std::vector<Action>> (*actions)(const PipelineShape& shape) = nullptr;
};

// One declaration per row of schedule_kinds.def.
#define TROUPE_SCHEDULE(kind, record) extern const ScheduleRecord record;
#include "plan/schedules/schedule_kinds.def"
#undef TROUPE_SCHEDULE

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_SCHEDULE_RECORD_H_
