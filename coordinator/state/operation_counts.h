// Counts by operation, in the form that receipts use.
#ifndef TROUPE_COORDINATOR_STATE_OPERATION_COUNTS_H_
#define TROUPE_COORDINATOR_STATE_OPERATION_COUNTS_H_

#include <cstdint>
#include <string>

#include "troupe/v1/worker.pb.h"

namespace troupe {

// Adds `count` to the count of `operation`.
inline void CountOperation(const std::string& operation, int64_t count,
                           google::protobuf::RepeatedPtrField<v1::OperationCount>* counts) {
  for (v1::OperationCount& known : *counts) {
    if (known.operation() != operation) continue;
    known.set_count(known.count() + count);
    return;
  }
  v1::OperationCount* const added = counts->Add();
  added->set_operation(operation);
  added->set_count(count);
}

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_OPERATION_COUNTS_H_
