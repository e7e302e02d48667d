// The NCCL communicators of one rank in a group epoch. They live and fail together with the rank's
// CollectiveNetwork: an abort of the host's network aborts them, and their error or hang aborts the
// host's network, through which the other ranks abort theirs. A watcher thread detects errors and
// hangs.
//
// Thread-safety: Make belongs to one thread; the other functions may be called from any thread.
#ifndef TROUPE_COLLECTIVE_NCCL_NCCL_NETWORK_H_
#define TROUPE_COLLECTIVE_NCCL_NCCL_NETWORK_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/communicator.h"
#include "collective/device_communicator.h"
#include "collective/device_statistics.h"
#include "collective/nccl/nccl_communicator.h"
#include "collective/nccl/nccl_device.h"
#include "collective/nccl/nccl_environment.h"
#include "collective/nccl/nccl_library.h"
#include "collective/network.h"

namespace troupe {

class NcclNetwork {
 public:
  // All arguments must outlive this object.
  NcclNetwork(const NcclLibrary& library, NcclDevice& device, CollectiveNetwork& host,
              const NcclOptions& options);
  NcclNetwork(const NcclNetwork&) = delete;
  NcclNetwork& operator=(const NcclNetwork&) = delete;
  // REQUIRES: its communicators are destroyed.
  ~NcclNetwork();

  // Creates the device communicator of a group of the host's network; it is not connected yet.
  // Connect groups in the order of their names on all ranks. This object must outlive the
  // communicator.
  std::unique_ptr<DeviceCommunicator> Make(Communicator& group);

  // Aborts all communicators and the host's network. From now on operations fail with the first
  // status given. REQUIRES: `status` is not OK.
  void Abort(const Status& status);
  // The status of the abort; OK until then.
  Status status() const;

  // Whether NCCL did not end a communicator within the limit. It then still holds device memory,
  // and the process must be replaced.
  bool leaves_behind() const { return environment_.leaves_behind.load(); }

  // One entry for each (operation, axis, purpose) that the device has begun, over all communicators
  // ever created.
  std::vector<DeviceCollectiveStatistics> Statistics() const;
  // The device's progress in each group. After an abort: the progress at that time, because an
  // abort ends hanging operations.
  std::vector<CollectiveFlight> Flights() const;
  // The enqueued operations of each group and the device's progress (after an abort: at that time)
  // as JSON text: {"status", "groups": [{"group", "axis", "issued", "operations": [{"operation",
  // "purpose", "bytes", "begun", "over"}]}]}.
  std::string FlightRecorderJson() const;

 private:
  void Remove(NcclCommunicator* communicator);
  void Watch();
  // The current values for the public functions. REQUIRES: mutex_ is held.
  std::vector<CollectiveFlight> FlightsNow() const;
  std::string GroupsNow() const;
  // Returns the first NCCL error or hang of any communicator.
  Status Check() const;

  CollectiveNetwork& host_;
  NcclEnvironment environment_;

  // Held while this object uses a communicator, so that the communicator is not destroyed
  // meanwhile.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<NcclCommunicator*> communicators_;
  std::vector<DeviceCollectiveStatistics> statistics_of_removed_;
  struct AtAbort {
    std::vector<CollectiveFlight> flights;
    std::string groups;  // JSON text
  };
  std::optional<AtAbort> at_abort_;
  bool ends_ = false;

  mutable std::mutex status_mutex_;
  Status status_;

  std::thread watcher_;  // last member: it uses the others
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_NETWORK_H_
