// How often a job is saved, and so what a fault costs it: the work since its last commit. All pure.
#ifndef TROUPE_PLAN_FAULT_COST_H_
#define TROUPE_PLAN_FAULT_COST_H_

#include <cstdint>
#include <string>

#include "troupe/v1/job.pb.h"

namespace troupe {

// Between checkpoints by time; 0 where they come by steps (checkpoint.interval) or the final one
// alone is made. REQUIRES: defaults are applied.
int64_t SecondsBetweenCheckpoints(const v1::JobSpec& spec);

// checkpoint.final_save_seconds, also of a job whose spec was completed before there was that key.
inline constexpr double kFinalSaveSeconds = 600;
inline double FinalSaveSeconds(const v1::JobSpec& spec) {
  const v1::CheckpointSpec& checkpoint = spec.checkpoint();
  return checkpoint.has_final_save_seconds() ? checkpoint.final_save_seconds() : kFinalSaveSeconds;
}

// One sentence for people: "a checkpoint every 30 min: a fault costs at most 30 min of training and
// what is trained while a checkpoint is written". REQUIRES: defaults are applied; of checkpoint.folder only an
// empty text that is stated counts as none.
std::string FaultCost(const v1::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_FAULT_COST_H_
