// Records the operations that a device communicator has enqueued, by kind, purpose and size, and
// the device's progress, to find hanging operations and for statistics. A captured operation is
// issued once and runs many times, so the device's marks count the runs.
//
// Thread-safe.
#ifndef TROUPE_COLLECTIVE_NCCL_OPERATION_LEDGER_H_
#define TROUPE_COLLECTIVE_NCCL_OPERATION_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/algorithm/operation.h"
#include "collective/communicator.h"
#include "collective/device_statistics.h"
#include "collective/nccl/nccl_device.h"
#include "collective/statistics.h"

namespace troupe {

class OperationLedger {
 public:
  // Both must outlive this object.
  OperationLedger(NcclDevice& device, const Communicator& group) : device_(device), group_(group) {}

  // Returns the mark for operations of this kind, size and purpose. Returns the device's errors;
  // the first call creates the mark.
  StatusOr<int> Issue(CollectiveOperation operation, size_t bytes, Purpose purpose);

  // DEADLINE_EXCEEDED if an operation has begun and its progress has not changed since a call at
  // least `limit` ago; the status names the operation.
  Status CheckHang(MonotonicTime now, Duration limit);

  // "all_gather of axis data_shard, purpose unshard, group data_shard/0", for errors.
  std::string Describe(CollectiveOperation operation, Purpose purpose) const;

  // Adds to the entry of each (operation, axis, scope, purpose).
  void AddTo(std::vector<DeviceCollectiveStatistics>* statistics) const;
  // The device's progress: `entered` counts the operations it has begun, and the group's name ends
  // with " (NCCL)". The waiting time counts from the first CheckHang that saw the operation in
  // flight.
  CollectiveFlight Flight(MonotonicTime now) const;
  // {"group", "axis", "issued", "operations": [{"operation", "purpose", "bytes", "begun", "over"}]}
  nlohmann::ordered_json ToJson() const;

 private:
  using Key = std::tuple<CollectiveOperation, Purpose, size_t>;  // the last element is bytes
  struct Entry {
    int mark = 0;
    uint64_t last_issued = 0;   // number of the last such operation in the group
    NcclDevice::Progress seen;  // progress at the last CheckHang
    MonotonicTime since;        // time at which `seen` was first observed
  };

  NcclDevice& device_;
  const Communicator& group_;
  mutable std::mutex mutex_;
  uint64_t issued_ = 0;
  std::map<Key, Entry> entries_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_OPERATION_LEDGER_H_
