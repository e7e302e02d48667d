// Transfers of pipeline boundary values between the host memories of ranks. Each Communicator is a
// directed pipeline link: rank 0 sends, rank 1 receives.
//
// Thread-safety: one thread at a time. May be destroyed only when no transfer is in flight or the
// links' network is closed.
#ifndef TROUPE_KERNELS_BACKEND_HOST_TRANSFERS_H_
#define TROUPE_KERNELS_BACKEND_HOST_TRANSFERS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/status.h"
#include "collective/communicator.h"
#include "model/program/program.h"

namespace troupe::kernels {

class HostTransfers {
 public:
  // A value in one of its buffers.
  using Place = std::pair<model::ValueId, int>;

  // Starts to send `bytes`, which must not change until WaitSend. REQUIRES: no send of `place` is
  // in flight.
  void Send(Place place, std::span<const std::byte> bytes, Communicator& link);
  // Blocks until the last send of `place` completes and returns its status; returns at once if
  // there was none.
  Status WaitSend(Place place);
  // Starts a receive, which the next Receive of `place` completes.
  void PostReceive(Place place, std::span<std::byte> bytes, Communicator& link);
  // Blocks until the bytes have arrived, from the posted receive or else from a receive that starts
  // now.
  Status Receive(Place place, std::span<std::byte> bytes, Communicator& link);

 private:
  std::map<Place, CollectiveHandle> sends_;
  std::map<Place, std::optional<CollectiveHandle>> receives_;  // posted and not yet consumed
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_HOST_TRANSFERS_H_
