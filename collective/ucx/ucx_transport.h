// Messages over UCX, host memory: shared memory (posix, sysv) and TCP on one host, TCP or RDMA
// between hosts, as UCX finds them. One context and one worker for a group epoch of a rank.
//
// Every message is sent eagerly, without waiting for its receive: over shared memory 2 MB fit into a
// peer's queue (0.5 MB without SizeUcxQueues), so a send up to that size is over when it returns and
// needs nothing more of a sender who computes. The rest of a longer one, and what a socket does not take at once, is
// sent by the engine's progress thread.
//
// UCX over shared memory does not notice a peer's death: waits are ended by the engine's abort and
// limits.
//
// The environment variable UCX_RNDV_THRESH overrides the eager choice.
#ifndef TROUPE_COLLECTIVE_UCX_UCX_TRANSPORT_H_
#define TROUPE_COLLECTIVE_UCX_UCX_TRANSPORT_H_

#include <memory>
#include <string>

#include "collective/transport.h"

namespace troupe {

struct UcxOptions {
  // As in UCX_TLS, such as "tcp,self"; empty leaves the choice to UCX and to its environment
  // variables.
  std::string transports;
};

// Makes the shared-memory queues of this process large enough for ranks that share cores. They are
// sized by environment variables of UCX alone (UCX_POSIX_FIFO_SIZE, UCX_SYSV_FIFO_SIZE: what is set
// already stays), so this is called before the process starts a thread.
void SizeUcxQueues();

// "ucx 1.13.1": the library that is loaded.
std::string UcxTransportName();

// UNAVAILABLE with UCX's reason if no worker can be made.
StatusOr<std::unique_ptr<Transport>> MakeUcxTransport(const UcxOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_UCX_UCX_TRANSPORT_H_
