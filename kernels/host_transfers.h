// Boundary values of a pipeline on their way between the host memories of ranks, by Communicators that are directed edges:
// rank 0 sends, rank 1 receives.
//
// Thread-safety: one thread at a time. When it is destroyed nothing is under way, or the edges' network is closed.
#ifndef TROUPE_KERNELS_HOST_TRANSFERS_H_
#define TROUPE_KERNELS_HOST_TRANSFERS_H_

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

  // Begins to send `bytes`, which stay as they are until WaitSend. REQUIRES: no send of `place` is under way.
  void Send(Place place, std::span<const std::byte> bytes, Communicator& edge);
  // Returns when the last send of `place` is over, with its status; at once where there was none.
  Status WaitSend(Place place);
  // Begins to receive, for the next Receive of `place`.
  void PostReceive(Place place, std::span<std::byte> bytes, Communicator& edge);
  // Returns when the bytes are there: those of the receive that was posted, or of one from start to end.
  Status Receive(Place place, std::span<std::byte> bytes, Communicator& edge);

 private:
  std::map<Place, CollectiveHandle> sends_;
  std::map<Place, std::optional<CollectiveHandle>> receives_;  // that were posted and are not taken
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_HOST_TRANSFERS_H_
