// The cores of this host as reported by the kernel.
#ifndef TROUPE_WORKER_DAEMON_CORE_TOPOLOGY_H_
#define TROUPE_WORKER_DAEMON_CORE_TOPOLOGY_H_

#include <functional>
#include <string>
#include <vector>

namespace troupe {

// "0-3,8" → {0, 1, 2, 3, 8}; empty if the text is not such a list.
std::vector<int> ParseCoreList(const std::string& text);

// Returns the physical cores of a host with the online hardware threads `online`: for each core its
// threads, ascending; cores of one NUMA node next to each other, then by number. `siblings` returns
// the list of the threads of a thread's core, empty if the kernel does not report it; the thread
// then counts as a core. `node` returns its NUMA node. Pure.
std::vector<std::vector<int>> CoresOfHost(const std::vector<int>& online,
                                          const std::function<std::string(int thread)>& siblings,
                                          const std::function<int(int thread)>& node);

// The physical cores of the host that this process runs on.
std::vector<std::vector<int>> ProbeHostCores();

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_CORE_TOPOLOGY_H_
