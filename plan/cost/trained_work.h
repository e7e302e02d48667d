// The size and the work of a job that freezes parameters: backward ends at the first block that is
// trained, and a frozen matrix has no gradient. Pure.
#ifndef TROUPE_PLAN_COST_TRAINED_WORK_H_
#define TROUPE_PLAN_COST_TRAINED_WORK_H_

#include <cstdint>

#include "base/status.h"
#include "model/blocks/config.h"
#include "model/program/trained_parameters.h"

namespace troupe {

struct TrainedWork {
  int64_t parameters = 0;      // trained elements of the whole model; a tied matrix counts once
  bool freezes = false;        // some parameter is not trained
  double flops = 0;            // model FLOPs of one sample (plan/cost/estimate.h)
  double attention_flops = 0;  // the part that is due to query-key pairs
};

// `tokens`: of a sample. Errors of BuildProgram for the model on one rank.
StatusOr<TrainedWork> TrainedWorkOf(const model::ModelConfig& model,
                                    const model::TrainedParameters& trained, int64_t tokens);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_TRAINED_WORK_H_
