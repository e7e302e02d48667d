// Keeps the processes of a local cluster running. It restarts a dead worker (same name) or
// coordinator (same port) within a second, kills and restarts one that no longer answers
// (cli/cluster/liveness.h), and keeps cluster.json current. On SIGTERM it stops the workers first,
// then the coordinator, which receives their goodbyes and so blames nobody for their end.
//
// It starts them as
//
//   troupe-coordinator --listen HOST:PORT --metrics-listen HOST:PORT --data-dir DIR/coordinator
//                      --detection-seconds S --log-bytes B --log-files F --page-listen HOST:PORT
//   troupe-worker --coordinator HOST:PORT --name worker-N --devices KIND:K --host 127.0.0.1
//                 --data-dir DIR/workers/worker-N --peak-dir DIR --log-dir DIR/logs
//                 --metrics-listen HOST:PORT --log-bytes B --log-files F
//
// and with --monitoring the Prometheus of cli/cluster/prometheus.h, all with their output in
// DIR/logs/NAME.log; the first two with --allow-failpoints if the supervisor has armed
// any.
//
// If the supervisor is killed, the processes continue, and the next supervisor adopts the living
// ones. Single-threaded.
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

// The command line of the coordinator of the cluster in `folder`; its binary comes first.
std::vector<std::string> CoordinatorCommand(const std::string& folder, const std::string& binaries,
                                            const ClusterSettings& settings);

class Supervisor {
 public:
  // REQUIRES: `folder` is absolute and has settings; `binaries` contains troupe-coordinator and
  // troupe-worker.
  Supervisor(std::string folder, std::string binaries);

  // Returns after SIGTERM or SIGINT, with every process stopped. FAILED_PRECONDITION if another
  // supervisor holds the lock.
  Status Run();

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class Role { kCoordinator, kWorker, kPrometheus };
  struct Child {
    Role role;
    std::string name;
    std::vector<std::string> arguments;
    std::string metrics;  // URL; for Prometheus, that of its pages
    ProcessId process;    // pid 0: not running
    Time started_at{};
    Time start_not_before{};
    int quick_deaths = 0;
    int health_port = 0;  // port of /health on 127.0.0.1; 0: it is not probed
    Liveness liveness;
    std::unique_ptr<HealthProbe> probe;  // null: no probe in flight
    Time probed_at{};                    // start of the last probe
  };

  Status ReadSettings();
  // Stops Prometheus if the settings do not name one any more.
  void StopUnwanted();
  void AdoptSurvivors();
  // Starts the processes that are not running and are due. Returns whether anything changed.
  bool StartMissing();
  void NoticeDeaths();
  // Probes each process and kills those that have not worked for too long.
  void NoticeHangs();
  // Records `process`, just started or adopted, as the process of `child`.
  void Begin(Child* child, const ProcessId& process);
  void WriteFile();
  void StopAll();
  void StopChildren(std::vector<Child*> children, std::chrono::seconds limit);
  static void Signal(const Child& child, int signal);
  std::vector<Child*> ChildrenOf(Role role);

  const std::string folder_;
  const std::string binaries_;
  ClusterSettings settings_;
  std::vector<Child> children_;  // the coordinator is the first
  Time looked_at_{};             // last call of NoticeHangs
};

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_SUPERVISOR_H_
