// Messages between threads of one process, for tests and simulations of layouts: no sockets, no
// UCX. Small messages are copied at the send; larger ones wait for their receive, as on the real
// transport, so an order of operations that would block there blocks here too.
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

// The state shared by the ranks of one group epoch. Thread-safe. Transports may outlive it.
class LoopbackFabric {
 public:
  // A message is received `delay` after its send at the earliest, as over a link of that latency;
  // it does not delay other messages.
  explicit LoopbackFabric(int ranks, Duration delay = Duration::zero());
  ~LoopbackFabric();

  // REQUIRES: 0 <= rank < ranks; called once per rank.
  std::unique_ptr<Transport> MakeTransport(int rank);

 private:
  const Duration delay_;
  std::vector<std::shared_ptr<collective_internal::Mailbox>> mailboxes_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_LOOPBACK_LOOPBACK_TRANSPORT_H_
