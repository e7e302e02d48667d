#include "report/live/device_use.h"

#include <algorithm>
#include <set>

#include "base/worker_state.h"

namespace troupe {
namespace {

using JobsByName = std::map<std::string, const v1::Job*>;

// The devices of a worker, by index, that ranks of known jobs use.
std::set<int> DevicesOfKnownJobs(const v1::WorkerStatus& worker, const JobsByName& known) {
  std::set<int> devices;
  for (const std::string& name : worker.jobs()) {
    const auto job = known.find(name);
    if (job == known.end()) continue;
    for (const v1::RankStatus& rank : job->second->ranks())
      if (rank.worker() == worker.name()) devices.insert(rank.device());
  }
  return devices;
}

void CountWorker(const v1::WorkerStatus& worker, const JobsByName& known, DevicesInUse* use) {
  const std::set<int> used = DevicesOfKnownJobs(worker, known);
  int others = static_cast<int>(std::ranges::count_if(
      worker.ranks(), [&](const auto& rank) { return !known.contains(rank.job()); }));
  std::set<std::string> kinds;
  for (const v1::Device& device : worker.devices()) kinds.insert(device.kind().kind());
  if (kinds.size() > 1) {
    use->unknown += others;
    others = 0;
  }
  for (const v1::Device& device : worker.devices()) {
    KindUse& kind = use->by_kind[device.kind().kind()];
    ++kind.total;
    const bool is_free = !used.contains(device.index());
    const bool is_of_other = is_free && others > 0;
    if (is_of_other) --others;
    if (!is_free || is_of_other) {
      ++kind.used;
    } else if (worker.state() == worker_state::kReady && device.condemned().empty()) {
      ++kind.free;
    }
  }
}

}  // namespace

DevicesInUse CountDevices(const std::vector<v1::WorkerStatus>& workers,
                          const std::vector<v1::Job>& jobs) {
  JobsByName known;
  for (const v1::Job& job : jobs) known[job.name()] = &job;
  DevicesInUse use;
  for (const v1::WorkerStatus& worker : workers) CountWorker(worker, known, &use);
  return use;
}

}  // namespace troupe
