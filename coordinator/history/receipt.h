// A job's receipt: its ranks' measurements, accumulated as their reports arrive
// (coordinator/history/receipt_tally.h), and the conditions under which they were measured
// (docs/receipts.md). Pure.
#ifndef TROUPE_COORDINATOR_HISTORY_RECEIPT_H_
#define TROUPE_COORDINATOR_HISTORY_RECEIPT_H_

#include "coordinator/state/job_state.h"
#include "troupe/v1/receipt.pb.h"

namespace troupe {

v1::Receipt MakeReceipt(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_HISTORY_RECEIPT_H_
