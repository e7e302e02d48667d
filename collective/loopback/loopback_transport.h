// Messages between threads of one process, for tests and simulations of layouts: no sockets, no
// UCX. Small messages are copied at the send; larger ones wait for their receive, as on the real
// transport, so that an order of operations that would block there blocks here too.
#ifndef TROUPE_COLLECTIVE_LOOPBACK_LOOPBACK_TRANSPORT_H_
#define TROUPE_COLLECTIVE_LOOPBACK_LOOPBACK_TRANSPORT_H_

#include <memory>
#include <vector>

#include "base/clock.h"
#include "collective/transport.h"

namespace troupe {

namespace collective_internal {
struct Mailbox;
}  // namespace collective_internal

// What the ranks of one group epoch share. Thread-safe. Transports may outlive it.
class LoopbackFabric {
 public:
  // Each message is received `delay` after it was sent, at the earliest: as over a link of that
  // latency, which holds up no other message.
  explicit LoopbackFabric(int ranks, Duration delay = Duration::zero());
  ~LoopbackFabric();

  // REQUIRES: 0 <= rank < ranks, and once a rank.
  std::unique_ptr<Transport> MakeTransport(int rank);

 private:
  const Duration delay_;
  std::vector<std::shared_ptr<collective_internal::Mailbox>> mailboxes_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_LOOPBACK_LOOPBACK_TRANSPORT_H_
