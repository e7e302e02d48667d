#include "cli/cluster/death_count.h"

#include <fmt/ranges.h>

#include <deque>
#include <fstream>

#include "base/file_system.h"
#include "cli/cluster/prometheus.h"

namespace troupe {
namespace {

// Prometheus logs the cause of its end before it logs that it stops its parts.
constexpr size_t kPrometheusLines = 5;

}  // namespace

Status DeathCount::Look(const ClusterFile& cluster) {
  TROUPE_RETURN_IF_ERROR(Look("coordinator", cluster.coordinator, 1));
  for (const auto& worker : cluster.workers) {
    TROUPE_RETURN_IF_ERROR(Look(worker.name, worker.process, 1));
  }
  if (!cluster.prometheus) return OkStatus();
  return Look(kPrometheusName, cluster.prometheus->process, kPrometheusLines);
}

Status DeathCount::Look(const std::string& name, const ProcessId& process, size_t most_lines) {
  std::set<pid_t>& seen = seen_[name];
  if (process.pid != 0) seen.insert(process.pid);
  if (seen.size() < kTries) return OkStatus();
  const std::string log = JoinPath(JoinPath(folder_, "logs"), name + ".log");
  std::ifstream file(log);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    last.push_back(line);
    if (last.size() > most_lines) last.pop_front();
  }
  return Internal("{} ends each time it is started; the last {} of {}: {}", name,
                  most_lines == 1 ? "line" : "lines", log, fmt::join(last, "; "));
}

}  // namespace troupe
