// Keeps the processes of a local cluster running: restarts a dead worker (same name) or coordinator (same port) within
// a second, kills and restarts one that lives and no longer answers (cli/cluster/liveness.h), keeps cluster.json current, and stops everything on SIGTERM, the coordinator first, so that it records no
// failure of jobs whose workers are being stopped.
//
// It starts them as
//   troupe-coordinator --listen HOST:PORT --metrics-listen HOST:PORT --data-dir DIR/coordinator
//                      --detection-seconds S --keep-ended KEEP
//   troupe-worker --coordinator HOST:PORT --name worker-N --devices cpu:K --host 127.0.0.1
//                 --data-dir DIR/workers/worker-N --log-dir DIR/logs --metrics-listen HOST:PORT
// with their output in DIR/logs/NAME.log.
//
// Processes outlive a supervisor that is killed; the next one takes over those that still live. One thread.
#ifndef TROUPE_CLI_CLUSTER_SUPERVISOR_H_
#define TROUPE_CLI_CLUSTER_SUPERVISOR_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_settings.h"
#include "cli/cluster/health_probe.h"
#include "cli/cluster/liveness.h"

namespace troupe {

// Name of the lock that a supervisor holds while it lives.
std::string SupervisorLockPath(const std::string& folder);

// What the coordinator of the cluster in `folder` is started with: its binary first.
std::vector<std::string> CoordinatorCommand(const std::string& folder, const std::string& binaries,
                                            const ClusterSettings& settings);

class Supervisor {
 public:
  // REQUIRES: `folder` is absolute and has settings; `binaries` holds troupe-coordinator and troupe-worker.
  Supervisor(std::string folder, std::string binaries);

  // Returns after SIGTERM or SIGINT, everything stopped. FAILED_PRECONDITION if another one has the lock.
  Status Run();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Child {
    std::string name;
    std::vector<std::string> arguments;
    std::string metrics;
    ProcessId process;       // pid 0: not running
    Time started_at{};
    Time start_not_before{};
    int quick_deaths = 0;
    int health_port = 0;  // of 127.0.0.1: where it says whether it works
    Liveness liveness;
    std::unique_ptr<HealthProbe> probe;  // null: none is under way
    Time probed_at{};                    // when the last one began
  };

  Status ReadSettings();
  void TakeOverSurvivors();
  // Starts what does not run and is due; true if anything changed.
  bool StartMissing();
  void NoticeDeaths();
  // Asks each process whether it works, and kills those that have not for too long.
  void NoticeHangs();
  // `child` has just been started or taken over as `process`.
  void Begin(Child* child, const ProcessId& process);
  void WriteFile();
  void StopAll();
  void StopChildren(std::vector<Child*> children, std::chrono::seconds limit);

  const std::string folder_;
  const std::string binaries_;
  ClusterSettings settings_;
  std::vector<Child> children_;  // the coordinator, then the workers
  Time looked_at_{};             // when NoticeHangs last looked
};

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_SUPERVISOR_H_
