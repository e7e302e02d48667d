// The sums of what a job's ranks report, from which its receipt is made (coordinator/receipt.h).
// Pure.
//
// A step is steady on a rank after the first kWarmUpSteps of its group epoch, unless the rank says
// that it was disturbed. Figures of steps are of one plan each, told by its digest: under another
// plan they begin anew, the former ones are kept apart with the conditions that held then, and go
// on where the job returns to their plan.
#ifndef TROUPE_COORDINATOR_RECEIPT_TALLY_H_
#define TROUPE_COORDINATOR_RECEIPT_TALLY_H_

#include <cstdint>
#include <string>

#include "coordinator/job.h"
#include "troupe/v1/receipt.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

inline constexpr int64_t kWarmUpSteps = 3;
// Plans whose figures are kept next to the newest one's.
inline constexpr int kMostOtherPlans = 8;

// `rank` of group epoch `epoch` is ready. REQUIRES: 0 <= rank.
void TallyReady(uint64_t epoch, int32_t rank, const v1::RankEnvironment& environment,
                v1::ReceiptTally* tally);

// A report that arrived for the first time. `peak_flops`: what the devices of all ranks together
// can do in a second; 0: unknown. `model_flops`: of the step. REQUIRES: job->plan is the one that
// the step ran under.
void TallyStep(const v1::StepReport& report, double model_flops, double peak_flops, Job* job);

// A shard of a commit was written by `method`.
void TallyWrite(const std::string& method, v1::ReceiptTally* tally);

// The figures of steps are those of `plan` from now on: its former ones where the job returns to
// it, else none yet.
void BeginPlan(const v1::Plan& plan, v1::ReceiptTally* tally);

// Steps of the tally's own plan.
int64_t StepsOf(const v1::ReceiptTally& tally);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_RECEIPT_TALLY_H_
