// One rank's NCCL communicators of a group epoch, beside its CollectiveNetwork, with which they live and fail: an abort of
// the host's network aborts them, and an error or a hang of theirs aborts the host's network, which is how the other ranks
// come to abort theirs. A thread of its own watches.
//
// Thread-safety: Make belongs to one thread, the rest to any.
#ifndef TROUPE_COLLECTIVE_NCCL_NCCL_NETWORK_H_
#define TROUPE_COLLECTIVE_NCCL_NCCL_NETWORK_H_

#include <atomic>
#include <chrono>
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
#include "collective/nccl/nccl_device.h"
#include "collective/nccl/nccl_library.h"
#include "collective/network.h"

namespace troupe {

class NcclCommunicator;

struct NcclOptions {
  Duration connect_limit = std::chrono::seconds(120);  // of one group
  // An operation that the device has begun and not ended for this long has hung; also the limit of one call.
  Duration hang_limit = std::chrono::seconds(60);
  Duration close_limit = std::chrono::seconds(10);  // of one group; then it is aborted
  Duration watch_period = std::chrono::milliseconds(20);
};

class NcclNetwork {
 public:
  // All outlive this.
  NcclNetwork(const NcclLibrary& library, NcclDevice& device, CollectiveNetwork& host,
              const NcclOptions& options);
  NcclNetwork(const NcclNetwork&) = delete;
  NcclNetwork& operator=(const NcclNetwork&) = delete;
  // REQUIRES: its communicators are destroyed.
  ~NcclNetwork();

  // The twin of a group of the host's network; not connected yet. Groups are connected in the order of their names on all
  // ranks. This outlives it.
  std::unique_ptr<DeviceCommunicator> Make(Communicator& group);

  // Aborts all communicators and the host's network. The first status is what operations fail with from now on. REQUIRES:
  // `status` is not OK.
  void Abort(const Status& status);
  // OK until then.
  Status status() const;

  // Whether NCCL did not end a communicator within the limit, which then still holds memory of the device: the process is
  // to be replaced.
  bool leaves_behind() const { return leaves_behind_.load(); }

  // One entry for each (operation, axis, purpose) that the device has come to, of all communicators ever made.
  std::vector<DeviceCollectiveStatistics> Statistics() const;
  // How far the device is with each group, since an abort how far it was at that time: an abort
  // ends what hangs.
  std::vector<CollectiveFlight> Flights() const;
  // The operations that each group has enqueued and how far the device is (at an abort, as above), as JSON
  // text: {"status", "groups": [{"group", "axis", "issued", "operations": [{"operation", "purpose",
  // "bytes", "begun", "over"}]}]}.
  std::string FlightRecorderJson() const;

 private:
  friend class NcclCommunicator;
  void Remove(NcclCommunicator* communicator);
  void LeaveBehind() { leaves_behind_.store(true); }
  void Watch();
  // As the public ones, at present. REQUIRES: mutex_ is held.
  std::vector<CollectiveFlight> FlightsNow() const;
  std::string GroupsNow() const;
  // Errors of NCCL and hangs, of all communicators.
  Status Check() const;

  const NcclLibrary& library_;
  NcclDevice& device_;
  CollectiveNetwork& host_;
  const NcclOptions options_;

  // Held while a communicator is used from here, so that it is not destroyed meanwhile.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<NcclCommunicator*> communicators_;
  std::vector<DeviceCollectiveStatistics> statistics_of_removed_;
  struct AtAbort {
    std::vector<CollectiveFlight> flights;
    std::string groups;
  };
  std::optional<AtAbort> at_abort_;
  bool ends_ = false;
  std::atomic<bool> leaves_behind_ = false;

  mutable std::mutex status_mutex_;
  Status status_;

  std::thread watcher_;  // last: it uses the rest
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_NETWORK_H_
