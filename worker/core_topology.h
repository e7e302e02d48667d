// The cores of this host as the kernel describes them.
#ifndef TROUPE_WORKER_CORE_TOPOLOGY_H_
#define TROUPE_WORKER_CORE_TOPOLOGY_H_

#include <functional>
#include <string>
#include <vector>

namespace troupe {

// "0-3,8" → {0, 1, 2, 3, 8}; empty where the text is no such list.
std::vector<int> ParseCoreList(const std::string& text);

// The physical cores of a host whose online hardware threads are `online`: each the threads that
// share it, ascending; cores of one NUMA node next to each other, then by number. siblings: the
// list of the threads of the core that a thread is on; empty where the kernel does not say, and
// then the thread counts as a core. node: its NUMA node. Pure.
std::vector<std::vector<int>> CoresOfHost(const std::vector<int>& online,
                                          const std::function<std::string(int thread)>& siblings,
                                          const std::function<int(int thread)>& node);

// Of the host that this process runs on.
std::vector<std::vector<int>> ProbeHostCores();

}  // namespace troupe

#endif  // TROUPE_WORKER_CORE_TOPOLOGY_H_
