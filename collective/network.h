// One rank's part in one group epoch: the transport to the other ranks, and the communicators made
// over it.
//
// Life: Make, MakeCommunicator for each group of this rank, exchange address() with all ranks (the
// caller's work), Connect, operations, Close. Connect reaches every rank that shares a group with
// this one and proves to each, and has it prove, knowledge of the epoch's key
// (collective/handshake.h).
//
// Thread-safety: Abort, aborted, status, SetSpinning, FlightRecorderJson, SecondsByPurpose and
// RecordedOperations may be called from any thread at any time between Make and destruction,
// Statistics and Flights once the communicators are made. The rest belongs to one thread.
// Communicators: see there.
#ifndef TROUPE_COLLECTIVE_NETWORK_H_
#define TROUPE_COLLECTIVE_NETWORK_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/communicator.h"
#include "collective/link.h"
#include "collective/statistics.h"

namespace troupe {

class Transport;

namespace collective_internal {
class Handshake;
}  // namespace collective_internal

struct NetworkOptions {
  int rank = 0;  // of this process among all ranks of the job
  int ranks = 1;
  uint64_t group_epoch = 0;
  std::array<uint8_t, 32> group_key{};
  // An operation that is not finished this long after its issue has hung.
  Duration hang_limit = std::chrono::seconds(60);
  // Waiting threads spin only if ranks_on_host <= cores_on_host.
  int ranks_on_host = 1;
  int cores_on_host = 1;
  // Operations that the flight recorder remembers.
  int recorded_operations = 1024;
};

class CollectiveNetwork {
 public:
  // INVALID_ARGUMENT naming the option that is out of range.
  static StatusOr<std::unique_ptr<CollectiveNetwork>> Make(const NetworkOptions& options,
                                                           std::unique_ptr<Transport> transport);
  CollectiveNetwork(const CollectiveNetwork&) = delete;
  CollectiveNetwork& operator=(const CollectiveNetwork&) = delete;
  // Aborts and closes what is still open.
  ~CollectiveNetwork();

  // Where other ranks reach this one; opaque bytes for their Connect.
  const std::string& address() const;

  // A group of `global_ranks` in group order, this rank among them. `name` is unique in the network
  // and with axis and ranks equal on all members. The communicator belongs to the network.
  // INVALID_ARGUMENT for ranks that are doubled, out of range or without this one, and for a name
  // in use. Normally made before Connect; later only among ranks already connected, else
  // FAILED_PRECONDITION.
  StatusOr<Communicator*> MakeCommunicator(const std::string& axis, Purpose purpose,
                                           const std::vector<int>& global_ranks,
                                           const std::string& name);

  // Connects and authenticates. addresses: of all ranks, in order of rank; only those of ranks that
  // share a group with this one are used. PERMISSION_DENIED if a peer does not know the key,
  // FAILED_PRECONDITION if it belongs to another group epoch, DEADLINE_EXCEEDED naming the ranks
  // that did not answer within `limit`. Any failure aborts.
  Status Connect(const std::vector<std::string>& addresses, Duration limit);

  // Whether waiting threads spin from now on: only while this rank shares its cores with no other.
  // Initially as the options say. From any thread.
  void SetSpinning(bool spins);

  // By what messages to each rank that Connect reached travel, by rank.
  const std::map<int, Link>& links() const { return links_; }

  // Makes every pending and future operation of this rank return `status` (the first one given),
  // pending ones within 100 ms. REQUIRES: `status` is not OK.
  void Abort(Status status);
  bool aborted() const;
  // The status of the abort; OK until then.
  Status status() const;

  // Frees the transport; pending operations are aborted (CANCELLED). No buffer is touched after OK.
  // DEADLINE_EXCEEDED if it cannot be done within `limit`: the process must then be ended, for its
  // memory may still be read or written.
  Status Close(Duration limit);

  // The last operations, oldest first, as JSON text: {"rank", "group_epoch", "status",
  // "operations": [{"sequence", "operation", "group", "axis", "purpose", "bytes", "issued_seconds",
  // "finished_seconds", "state", "waiting_for_ranks"}]}; times are seconds since Make. `device`:
  // JSON text of what the rank's device knows of its own collectives, which becomes "device";
  // empty: it has none.
  std::string FlightRecorderJson(std::string_view device = "") const;

  // One entry for each (operation, axis, purpose) that was used.
  std::vector<CollectiveStatistics> Statistics() const;

  // How far this rank is in each group of more than one rank. After an abort: how far it was then.
  std::vector<CollectiveFlight> Flights() const;

  // By purpose, of all finished operations; exposed time of pending ones too.
  std::array<PurposeSeconds, kPurposes> SecondsByPurpose() const;

  // The last finished operations in the order of issue. `complete`: none was forgotten.
  std::vector<RecordedOperation> RecordedOperations(bool* complete) const;

 private:
  explicit CollectiveNetwork(const NetworkOptions& options);

  const NetworkOptions options_;
  // In the order of their needs: the engine outlives nothing that it uses.
  std::unique_ptr<collective_internal::Handshake> handshake_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<const collective_internal::Group*> groups_;  // of communicators_
  std::vector<std::pair<uint32_t, std::string>> tag_prefixes_;
  std::vector<bool> connected_;  // by global rank
  std::map<int, Link> links_;    // by global rank
  bool connect_called_ = false;
  std::unique_ptr<collective_internal::Engine> engine_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NETWORK_H_
