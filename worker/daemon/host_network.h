// The network devices on which this worker's ranks listen for their peers.
#ifndef TROUPE_WORKER_DAEMON_HOST_NETWORK_H_
#define TROUPE_WORKER_DAEMON_HOST_NETWORK_H_

#include <signal.h>

#include <string>

#include "base/status.h"

namespace troupe {

// Returns the interface ("lo", "eth0") with the address `host`, which is numeric or a name that
// resolves to an address of this machine. INVALID_ARGUMENT, which names the address and those of
// the interfaces, if none has it.
StatusOr<std::string> InterfaceOf(const std::string& host);

// Returns the numeric address with which this machine reaches `host_port`, HOST:PORT. UNAVAILABLE,
// which names it, if the host is not known or cannot be reached by any interface.
StatusOr<std::string> OwnAddressTowards(const std::string& host_port);

// Returns the RDMA ports behind `interface` in the form of UCX_NET_DEVICES ("mlx5_0:1"), separated
// by commas; empty if there are none. `root` is /sys/class/infiniband.
std::string RdmaPortsOf(const std::string& root, const std::string& interface);

// Makes the rank processes that this process starts later listen only on the interface of `host`,
// through the environment variables UCX_NET_DEVICES and NCCL_SOCKET_IFNAME. On the loopback, where
// every peer is a process of this machine, UCX uses no TCP (UCX_TLS) and so has no port: whoever
// reaches such a port can end the rank. A variable that is already set stays. REQUIRES: this
// process has one thread.
Status BindRanksTo(const std::string& host);

// Makes the ranks listen on `host`, the value of --host, or else (empty) on the interface that
// leads to `coordinator`, HOST:PORT: never on all of them, because their transports have no
// protection of their own. Returns the address. Without `host`, waits until the coordinator's name
// has an address, as in a cluster whose parts start in any order; CANCELLED if one of `signals`,
// which are blocked, comes first. Else the errors of BindRanksTo. REQUIRES: this process has one
// thread.
StatusOr<std::string> BindRanks(std::string host, const std::string& coordinator,
                                const sigset_t& signals);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_HOST_NETWORK_H_
