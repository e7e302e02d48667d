// The network devices on which this worker's ranks listen for their peers.
#ifndef TROUPE_WORKER_HOST_NETWORK_H_
#define TROUPE_WORKER_HOST_NETWORK_H_

#include <string>

#include "base/status.h"

namespace troupe {

// The interface that has `host`, a numeric address or a name that resolves to one of this
// machine's: "lo", "eth0". INVALID_ARGUMENT naming the address and the interfaces' where none has
// it.
StatusOr<std::string> InterfaceOf(const std::string& host);

// The RDMA ports behind `interface` in the form of UCX_NET_DEVICES ("mlx5_0:1"), separated by
// commas; empty where there are none. `root` is /sys/class/infiniband.
std::string RdmaPortsOf(const std::string& root, const std::string& interface);

// Has the rank processes that this process will start listen on the interface of `host` alone, by
// the environment variables UCX_NET_DEVICES and NCCL_SOCKET_IFNAME; one that is set already stays.
// REQUIRES: this process has one thread.
Status BindRanksTo(const std::string& host);

}  // namespace troupe

#endif  // TROUPE_WORKER_HOST_NETWORK_H_
