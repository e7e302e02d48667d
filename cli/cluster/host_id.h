// Identifies the host of a local cluster, for folders that several hosts share, such as a home
// directory.
#ifndef TROUPE_CLI_CLUSTER_HOST_ID_H_
#define TROUPE_CLI_CLUSTER_HOST_ID_H_

#include <string>
#include <string_view>

namespace troupe {

struct HostId {
  std::string name;     // as PlainHostName returns it; empty: unknown
  std::string boot_id;  // that of the run of its kernel, one for all containers; empty: unknown
};

// Returns the host of this process. Thread-safe.
HostId ThisHost();

// Returns `name` with each character other than ASCII letters, digits, ".", "-" and "_" as "_", so
// that it may be a part of a file name. Pure.
std::string PlainHostName(std::string_view name);

// Whether processes of `host` may be alive without being seen on `self`: both the names and the
// runs of the kernels differ. A host that was started again, and a container on the same kernel,
// are not elsewhere. An unknown host is not elsewhere. Pure.
bool IsElsewhere(const HostId& host, const HostId& self);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_HOST_ID_H_
