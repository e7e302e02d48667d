// A job's receipt: what its ranks measured, folded as their reports arrive, and under which conditions
// it was measured (docs/receipts.md). Pure.
//
// A step is steady on a rank after the first kWarmUpSteps of its group epoch, unless the rank says
// that it was disturbed. Figures of steps are of one plan: under another they begin anew, and the
// former ones are counted as steps of other plans.
#ifndef TROUPE_COORDINATOR_RECEIPT_H_
#define TROUPE_COORDINATOR_RECEIPT_H_

#include <cstdint>

#include "coordinator/job.h"
#include "troupe/v1/receipt.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

inline constexpr int64_t kWarmUpSteps = 3;

// `rank` of group epoch `epoch` is ready. REQUIRES: 0 <= rank.
void TallyReady(uint64_t epoch, int32_t rank, const v1::RankEnvironment& environment,
                v1::ReceiptTally* tally);

// A report that arrived for the first time. `peak_flops`: what the devices of all ranks together can
// do in a second; 0: unknown. `model_flops`: of the step.
void TallyStep(const v1::StepReport& report, const std::string& plan_digest, double model_flops,
               double peak_flops, v1::ReceiptTally* tally);

// A shard of a commit was written by `method`.
void TallyWrite(const std::string& method, v1::ReceiptTally* tally);

v1::Receipt MakeReceipt(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_RECEIPT_H_
