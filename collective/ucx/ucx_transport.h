// Messages in host memory over UCX: shared memory (posix, sysv) and TCP within a host, TCP or RDMA
// between hosts, as UCX detects them. One context and one worker per rank and group epoch.
//
// Every message is sent eagerly, without waiting for its receive: over shared memory 2 MB fit into
// a peer's queue (0.5 MB without SizeUcxQueues), so a send up to that size is complete when it
// returns and needs no further work of the sender. The engine's progress thread sends the rest of
// longer messages and the bytes that a socket does not accept at once.
//
// UCX over shared memory does not detect a peer's death: the engine's abort and limits end waits.
//
// The environment variable UCX_RNDV_THRESH overrides the eager protocol.
#ifndef TROUPE_COLLECTIVE_UCX_UCX_TRANSPORT_H_
#define TROUPE_COLLECTIVE_UCX_UCX_TRANSPORT_H_

#include <memory>
#include <string>

#include "collective/transport.h"

namespace troupe {

struct UcxOptions {
  // The value of UCX_TLS, such as "tcp,self"; empty leaves the choice to UCX and its environment
  // variables.
  std::string transports;
};

// Makes the shared-memory queues of this process large enough for ranks that share cores. UCX reads
// their size only from environment variables (UCX_POSIX_FIFO_SIZE, UCX_SYSV_FIFO_SIZE; values
// already set are kept), so call this before the process starts a thread.
void SizeUcxQueues();

// The name and version of the loaded library: "ucx 1.13.1".
std::string UcxTransportName();

// UNAVAILABLE with UCX's reason if no worker can be created.
StatusOr<std::unique_ptr<Transport>> MakeUcxTransport(const UcxOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_UCX_UCX_TRANSPORT_H_
