// One rank's part in one group epoch: the transport to the other ranks, and the communicators over
// it.
//
// Lifecycle: Make, MakeCommunicator for each group of this rank, exchange address() with all ranks
// (by the caller), Connect, operations, Close. Connect reaches every rank that shares a group with
// this one; both ranks prove to each other that they know the epoch's key (collective/handshake.h).
//
// Thread-safety: Abort, aborted, status, SetSpinning, FlightRecorderJson, SecondsByPurpose and
// RecordedOperations may be called from any thread between Make and destruction; Statistics and
// Flights once the communicators are created. All other functions belong to one thread. For
// communicators, see communicator.h.
#ifndef TROUPE_COLLECTIVE_NETWORK_H_
#define TROUPE_COLLECTIVE_NETWORK_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/communicator.h"
#include "collective/link.h"
#include "collective/network_options.h"
#include "collective/statistics.h"
#include "collective/tag_seals.h"

namespace troupe {

class Transport;

namespace collective_internal {
class Handshake;
}  // namespace collective_internal

class CollectiveNetwork {
 public:
  // INVALID_ARGUMENT names the option that is out of range.
  static StatusOr<std::unique_ptr<CollectiveNetwork>> Make(const NetworkOptions& options,
                                                           std::unique_ptr<Transport> transport);
  CollectiveNetwork(const CollectiveNetwork&) = delete;
  CollectiveNetwork& operator=(const CollectiveNetwork&) = delete;
  // Aborts and closes a network that is still open.
  ~CollectiveNetwork();

  // The address at which other ranks reach this one; opaque bytes for their Connect.
  const std::string& address() const;

  // Creates a group of `global_ranks` in group order; they include this rank. `name` is unique in
  // the network; name, axis and ranks are identical on all members. The network owns the
  // communicator. INVALID_ARGUMENT for ranks that are duplicated, out of range or do not include
  // this rank, and for a name in use. After Connect only ranks that are already connected are
  // allowed, else FAILED_PRECONDITION.
  StatusOr<Communicator*> MakeCommunicator(const std::string& axis, Purpose purpose,
                                           const std::vector<int>& global_ranks,
                                           const std::string& name);

  // Connects and authenticates. addresses: of all ranks, in rank order; only those of ranks that
  // share a group with this one are used. PERMISSION_DENIED if a peer does not know the key,
  // FAILED_PRECONDITION if it belongs to another group epoch, DEADLINE_EXCEEDED naming the ranks
  // that did not answer within `limit`. Any failure aborts.
  Status Connect(const std::vector<std::string>& addresses, Duration limit);

  // Sets whether waiting threads spin from now on; spin only while this rank shares its cores with
  // no other rank. The initial value follows from the options. From any thread.
  void SetSpinning(bool spins);

  // The link to each rank that Connect reached, by rank.
  const std::map<int, Link>& links() const { return links_; }

  // Makes every pending and future operation of this rank return `status` (the first one given),
  // pending ones within 100 ms. REQUIRES: `status` is not OK.
  void Abort(Status status);
  bool aborted() const;
  // The status of the abort; OK until then.
  Status status() const;

  // The ranks to which a link had failed (the transport reported UNAVAILABLE) when this network was
  // aborted. REQUIRES: called by the thread that called Connect.
  std::set<int> UnreachedRanks() const;

  // Frees the transport; pending operations are aborted (CANCELLED). After OK no buffer is
  // accessed. DEADLINE_EXCEEDED if this takes longer than `limit`: the process must then be ended,
  // since its memory may still be read or written.
  Status Close(Duration limit);

  // The last operations, oldest first, as JSON text: {"rank", "group_epoch", "status",
  // "operations": [{"sequence", "operation", "group", "axis", "purpose", "bytes", "issued_seconds",
  // "finished_seconds", "state", "waiting_for_ranks"}]}; times are seconds since Make. `device`:
  // JSON text of the device's own collectives, inserted as "device"; empty if there is none.
  std::string FlightRecorderJson(std::string_view device = "") const;

  // One entry for each (operation, axis, purpose) in use.
  std::vector<CollectiveStatistics> Statistics() const;

  // The progress of this rank in each group of more than one rank. After an abort: the progress at
  // that time.
  std::vector<CollectiveFlight> Flights() const;

  // Seconds by purpose over all finished operations; exposed time includes pending ones.
  std::array<PurposeSeconds, kPurposes> SecondsByPurpose() const;

  // The last finished operations in issue order. `complete`: no operation has been overwritten.
  std::vector<RecordedOperation> RecordedOperations(bool* complete) const;

 private:
  explicit CollectiveNetwork(const NetworkOptions& options);

  const NetworkOptions options_;
  // Declared in order of use: the engine is destroyed before the objects that it uses.
  std::unique_ptr<collective_internal::Handshake> handshake_;
  collective_internal::TagSeals seals_;  // guarded by the engine's mutex
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<const collective_internal::Group*> groups_;  // groups of communicators_
  std::vector<std::pair<uint32_t, std::string>> tag_prefixes_;
  std::vector<bool> connected_;  // by global rank
  std::map<int, Link> links_;    // by global rank
  bool connect_called_ = false;
  std::unique_ptr<collective_internal::Engine> engine_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NETWORK_H_
