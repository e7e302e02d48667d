// The interval at which a job saves checkpoints, and therefore the cost of a fault: the work since
// its last commit. Pure.
#ifndef TROUPE_PLAN_COST_FAULT_COST_H_
#define TROUPE_PLAN_COST_FAULT_COST_H_

#include <cstdint>
#include <string>

#include "plan/job/key_schema.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Seconds between checkpoints that are due by time; 0 where they are due by steps
// (checkpoint.interval), where only the final one is made, or where there are none.
// REQUIRES: defaults are applied.
int64_t SecondsBetweenCheckpoints(const v1::JobSpec& spec);

// checkpoint.final_save_seconds; the default also holds for a job whose spec was completed before
// this key existed.
inline double FinalSaveSeconds(const v1::JobSpec& spec) {
  const v1::CheckpointSpec& checkpoint = spec.checkpoint();
  return checkpoint.has_final_save_seconds() ? checkpoint.final_save_seconds()
                                             : DefaultNumber("checkpoint.final_save_seconds");
}

// One sentence for people: "a checkpoint every 30 min: a fault costs at most 30 min of training and
// what is trained while a checkpoint is written". Only a checkpoint.folder that is stated as ""
// counts as no folder. REQUIRES: defaults are applied.
std::string FaultCost(const v1::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_FAULT_COST_H_
