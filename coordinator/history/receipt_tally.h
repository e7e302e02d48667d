// Accumulates the ranks' reports of a job; its receipt is made from these sums
// (coordinator/history/receipt.h). Pure.
//
// A step is steady on a rank after the first kWarmUpSteps of its group epoch, unless the rank
// reports that it was disturbed. Step figures are kept per plan, identified by its digest: a new
// plan starts at zero, the former figures are kept separately with the conditions of that time, and
// they continue if the job returns to their plan.
#ifndef TROUPE_COORDINATOR_HISTORY_RECEIPT_TALLY_H_
#define TROUPE_COORDINATOR_HISTORY_RECEIPT_TALLY_H_

#include <cstdint>
#include <string>

#include "coordinator/state/job_state.h"
#include "troupe/v1/receipt.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

inline constexpr int64_t kWarmUpSteps = 3;
// Number of other plans with stored figures, in addition to the newest plan.
inline constexpr int kMostOtherPlans = 8;

// The names of programs that were compiled late, of which a receipt has the first ones.
inline constexpr int kMostRecompiledNames = 8;

// Records that `rank` of group epoch `epoch` is ready. REQUIRES: 0 <= rank.
void TallyReady(uint64_t epoch, int32_t rank, const v1::RankEnvironment& environment,
                v1::ReceiptTally* tally);

// Adds a report that arrived for the first time. `peak_flops`: peak FLOP/s of all ranks' devices
// together; 0: unknown. `model_flops`: FLOPs of the step. REQUIRES: the step ran under job->plan.
void TallyStep(const v1::StepReport& report, double model_flops, double peak_flops, Job* job);

// Counts a shard of a commit that was written by `method`.
void TallyWrite(const std::string& method, v1::ReceiptTally* tally);

// Makes `plan` the plan of the step figures: restores its former figures if the job returns to it,
// else starts at zero.
void BeginPlan(const v1::Plan& plan, v1::ReceiptTally* tally);

// Number of steps of the tally's own plan.
int64_t StepsOf(const v1::ReceiptTally& tally);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_HISTORY_RECEIPT_TALLY_H_
