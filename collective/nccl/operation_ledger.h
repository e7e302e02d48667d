// What a device's communicator has put onto streams, by kind, purpose and size, and how far the device is with it: for the
// question what hangs, and for statistics. A captured operation is issued once and runs again and again, so runs are
// counted by the device's marks.
//
// Thread-safe.
#ifndef TROUPE_COLLECTIVE_NCCL_OPERATION_LEDGER_H_
#define TROUPE_COLLECTIVE_NCCL_OPERATION_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/communicator.h"
#include "collective/device_statistics.h"
#include "collective/nccl/nccl_device.h"
#include "collective/operation.h"
#include "collective/statistics.h"

namespace troupe {

class OperationLedger {
 public:
  // Both outlive this.
  OperationLedger(NcclDevice& device, const Communicator& group) : device_(device), group_(group) {}

  // The mark of operations like this one. Errors of the device, which makes one the first time.
  StatusOr<int> Issue(CollectiveOperation operation, size_t bytes, Purpose purpose);

  // DEADLINE_EXCEEDED naming the operation that the device has begun, and not ended since a call of this at least `limit`
  // ago.
  Status CheckHang(MonotonicTime now, Duration limit);

  // "all_gather of axis data_shard, purpose unshard, group data_shard/0", for errors.
  std::string Describe(CollectiveOperation operation, Purpose purpose) const;

  // Adds to the entry of each (operation, axis, purpose).
  void AddTo(std::vector<DeviceCollectiveStatistics>* statistics) const;
  // How far the device is: `entered` counts what it has begun, and the name of the group ends with
  // " (NCCL)". An operation is known to be in flight since the first CheckHang that saw it so.
  CollectiveFlight Flight(MonotonicTime now) const;
  // {"group", "axis", "issued", "operations": [{"operation", "purpose", "bytes", "begun", "over"}]}
  std::string ToJson() const;

 private:
  using Key = std::tuple<CollectiveOperation, Purpose, size_t>;  // bytes
  struct Entry {
    int mark = 0;
    uint64_t last_issued = 0;   // number of the last one of the group
    NcclDevice::Progress seen;  // by the last CheckHang
    MonotonicTime since;        // when `seen` was seen first
  };

  NcclDevice& device_;
  const Communicator& group_;
  mutable std::mutex mutex_;
  uint64_t issued_ = 0;
  std::map<Key, Entry> entries_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_OPERATION_LEDGER_H_
