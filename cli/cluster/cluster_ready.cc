#include "cli/cluster/cluster_ready.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "cli/cluster/death_count.h"
#include "cli/cluster/process.h"
#include "cli/cluster/prometheus.h"

namespace troupe {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kReadyPoll{20};

bool AllRun(const ClusterFile& cluster, const ClusterSettings& settings) {
  if (!IsAlive(cluster.supervisor) ||
      static_cast<int>(cluster.workers.size()) < settings.workers() ||
      cluster.prometheus.has_value() == settings.prometheus.empty()) {
    return false;
  }
  const std::vector<ProcessId> processes = ProcessesOf(cluster);
  return std::all_of(processes.begin(), processes.end(), IsAlive);
}

}  // namespace

StatusOr<ClusterFile> WaitUntilReady(const std::string& folder, const ClusterSettings& settings,
                                     const ListWorkers& list_workers, std::chrono::seconds limit) {
  const auto end = steady_clock::now() + limit;
  std::string lacking = "the supervisor";
  DeathCount deaths(folder);
  for (; steady_clock::now() < end; std::this_thread::sleep_for(kReadyPoll)) {
    const auto cluster = ReadClusterFile(folder);
    if (!cluster.ok()) continue;
    TROUPE_RETURN_IF_ERROR(deaths.Look(*cluster));
    if (!AllRun(*cluster, settings)) continue;
    lacking = "the coordinator";
    const auto ready = list_workers(cluster->coordinator_address);
    if (!ready.ok()) continue;
    lacking.clear();
    if (cluster->prometheus && !IsPrometheusReady(settings.prometheus_port)) {
      lacking = kPrometheusName;
    }
    for (const auto& worker : cluster->workers) {
      if (!ready->contains(worker.name)) lacking += (lacking.empty() ? "" : ", ") + worker.name;
    }
    // Reads the file again, because a process that was restarted meanwhile has another pid.
    if (lacking.empty()) return ReadClusterFile(folder);
  }
  return Internal("not ready within {} s: {}; see the logs in {}/logs", limit.count(), lacking,
                  folder);
}

}  // namespace troupe
