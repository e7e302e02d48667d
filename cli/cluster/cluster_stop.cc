#include "cli/cluster/cluster_stop.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "cli/cluster/process.h"
#include "cli/cluster/supervisor_lock.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kDownLimit{20};
constexpr seconds kStopLimit{5};  // from SIGTERM to the end of a process
constexpr seconds kKillLimit{5};  // from SIGKILL to the end of a process
constexpr milliseconds kStopPoll{20};

// Waits until none of `processes` is alive. Returns false if the limit passes first.
bool WaitUntilGone(const std::vector<ProcessId>& processes, seconds limit) {
  const auto end = steady_clock::now() + limit;
  while (std::any_of(processes.begin(), processes.end(), IsAlive)) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kStopPoll);
  }
  return true;
}

// Stops a cluster whose cluster.json cannot be read, because of `damage`: its supervisor, which the
// lock file states, stops its processes and removes the file.
Status StopBySupervisor(const std::string& folder, const Status& damage) {
  const StatusOr<ProcessId> supervisor = FindSupervisor(folder);
  if (!supervisor.ok()) return Annotate(damage, Message(supervisor.status()));
  SignalProcess(*supervisor, SIGTERM);
  SignalProcess(*supervisor, SIGCONT);
  // A supervisor that is killed would leave processes behind that nobody knows.
  if (!WaitUntilGone({*supervisor}, kDownLimit)) {
    return Internal("the supervisor of {}, process {}, did not end within {} s of SIGTERM", folder,
                    supervisor->pid, kDownLimit.count());
  }
  const Status left = ReadClusterFile(folder).status();
  return left.code() == StatusCode::kNotFound ? OkStatus() : left;
}

}  // namespace

StatusOr<ClusterFile> ReadCurrentFile(const std::string& folder) {
  const auto end = steady_clock::now() + kDownLimit;
  while (true) {
    StatusOr<ClusterFile> cluster = ReadClusterFile(folder);
    const bool awaited = cluster.ok() ? !IsAlive(cluster->supervisor)
                                      : cluster.status().code() == StatusCode::kNotFound;
    if (!awaited || !SupervisorLives(folder)) return cluster;
    if (steady_clock::now() > end) {
      return Internal("a supervisor holds {}, but within {} s it did not write cluster.json",
                      SupervisorLockPath(folder), kDownLimit.count());
    }
    std::this_thread::sleep_for(kStopPoll);
  }
}

Status StopCluster(const std::string& folder) {
  auto cluster = ReadCurrentFile(folder);
  if (cluster.status().code() == StatusCode::kInvalidArgument ||
      cluster.status().code() == StatusCode::kResourceExhausted) {
    return StopBySupervisor(folder, cluster.status());
  }
  TROUPE_RETURN_IF_ERROR(cluster.status());
  // A supervisor suspended by SIGSTOP handles SIGTERM only after SIGCONT.
  SignalProcess(cluster->supervisor, SIGTERM);
  SignalProcess(cluster->supervisor, SIGCONT);
  if (!WaitUntilGone({cluster->supervisor}, kDownLimit)) {
    SignalProcess(cluster->supervisor, SIGKILL);
    WaitUntilGone({cluster->supervisor}, kKillLimit);
  }
  // Stops the processes that a killed supervisor left behind; it may have started some since the
  // file was read.
  if (auto newest = ReadClusterFile(folder); newest.ok()) cluster = std::move(newest);
  const std::vector<ProcessId> left = ProcessesOf(*cluster);
  for (const auto& process : left) {
    SignalGroup(process, SIGTERM);
    SignalGroup(process, SIGCONT);
  }
  if (!WaitUntilGone(left, kStopLimit)) {
    for (const auto& process : left) SignalGroup(process, SIGKILL);
    if (!WaitUntilGone(left, kKillLimit)) {
      return Internal("some processes of the cluster in {} survived SIGKILL", folder);
    }
  }
  const Status removed = RemoveClusterFile(folder);
  return removed.code() == StatusCode::kNotFound ? OkStatus() : removed;
}

}  // namespace troupe
