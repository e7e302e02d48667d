// The commands up, down, and supervise, which `up` starts.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>

#include "base/detection_seconds.h"
#include "base/failpoint.h"
#include "base/file_system.h"
#include "base/flag_parser.h"
#include "base/keep_ended.h"
#include "base/log_rotation.h"
#include "base/program/program.h"
#include "base/worker_state.h"
#include "cli/client.h"
#include "cli/cluster/absolute_path.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_index.h"
#include "cli/cluster/cluster_ready.h"
#include "cli/cluster/cluster_settings.h"
#include "cli/cluster/cluster_stop.h"
#include "cli/cluster/folder_lock.h"
#include "cli/cluster/process.h"
#include "cli/cluster/prometheus.h"
#include "cli/cluster/running_clusters.h"
#include "cli/cluster/supervisor.h"
#include "cli/cluster/supervisor_lock.h"
#include "cli/commands.h"
#include "plan/device/device_traits.h"
#include "plan/device/worker_devices.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kUpLimit{60};
constexpr seconds kListLimit{5};  // one page of the list of workers
constexpr int kMostWorkers = 256;

constexpr TextFlag kUpFolderFlag{
    "--data-dir", "DIR",
    "folder of the local cluster (default: that of the last `troupe up`, else "
    "~/.local/state/troupe/default)"};
constexpr TextFlag kDownFolderFlag{
    "--data-dir", "DIR",
    "folder of the local cluster (default: that of the newest one that is running)"};
constexpr TextFlag kSupervisedFolderFlag{"--data-dir", "DIR", "folder of the local cluster", true};

constexpr NumberFlag<int> kWorkersFlag{
    {"--workers", "N",
     "number of worker daemons; a running cluster can only grow (default: that of the former run, "
     "else 1)"},
    {1, kMostWorkers}};
constexpr NumberFlag<int> kDevicesPerWorkerFlag{
    {"--devices-per-worker", "N", "the same as --devices cpu:N"}, {1, kWorkerDevicesMax}};
constexpr NumberFlag<int> kPortFlag{
    {"--port", "PORT", "port of the coordinator (default: a free one, which later runs keep)"},
    {0, 65535}};
constexpr NumberFlag<double> kDetectionSecondsFlag{
    {"--detection-seconds", "SECONDS",
     "time after which a silent worker is lost; all time limits of the cluster derive from it "
     "(default: 3)"},
    {kLeastDetectionSeconds, kMostDetectionSeconds}};
constexpr TextFlag kKeepEndedFlag{
    "--keep-ended", "N|TIME|all",
    "ended jobs that are kept in the catalog: the newest N, or each for a time such as 36h (s, m, "
    "h or d) (default: all)"};
constexpr NumberFlag<int64_t> kLogBytesFlag{
    {"--log-bytes", "BYTES", "size at which a log is rotated; 0: never (default: 67108864)"},
    {0, kMostLogBytes}};
constexpr NumberFlag<int> kLogFilesFlag{
    {"--log-files", "N", "rotated logs that are kept of each log (default: 4)"},
    {0, kMostLogFiles}};

constexpr SwitchFlag kMonitoringFlag{
    "--monitoring", "",
    "also start Prometheus with the rules of Troupe, on a free port of the loopback"};
constexpr SwitchFlag kAllowFailpoints{kAllowFailpointsFlag, "", kAllowFailpointsHelp};

// The help text names the kinds that this build has.
const TextFlag& DevicesFlag() {
  static const std::string& help =
      *new std::string(fmt::format("devices of each worker, {} (default: {})",
                                   WorkerDevicesForms(" or "), WorkerDevices().ToText()));
  static const TextFlag kFlag{"--devices", "KIND:N", help.c_str()};
  return kFlag;
}

// Returns the absolute path of a folder that --data-dir names.
StatusOr<std::string> AbsoluteFolder(const std::string& folder) {
  const StatusOr<std::string> path = AbsolutePath(folder);
  if (!path.ok()) return Annotate(path.status(), kUpFolderFlag.name);
  return *path;
}

// Returns the folder of `up`.
StatusOr<std::string> FolderToStart(FileSystem& files, const CommandLine& line) {
  if (const auto& folder = line.Get(kUpFolderFlag)) return AbsoluteFolder(*folder);
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> state, StateFolder());
  if (state) return NewestFolder(files, *state);
  return InvalidArgument(
      "give {} DIR: its default is in the home directory, and neither HOME nor XDG_STATE_HOME is "
      "an absolute path",
      kUpFolderFlag.name);
}

// Returns the folder among `running` whose coordinator has the address, as `up` has printed it.
StatusOr<std::string> FolderOfCoordinator(const std::vector<std::string>& running,
                                          const std::string& address) {
  for (const std::string& folder : running) {
    const StatusOr<ClusterFile> cluster = ReadClusterFile(folder);
    if (cluster.ok() && cluster->coordinator_address == address) return folder;
  }
  return InvalidArgument(
      "TROUPE_COORDINATOR is {}, which is the coordinator of no local cluster of this user: give "
      "{} DIR, or unset the variable",
      address, kDownFolderFlag.name);
}

// Returns the folder of `down`; absent if none is given and no cluster is running. Like other
// commands, it obeys TROUPE_COORDINATOR.
StatusOr<std::optional<std::string>> FolderToStop(const CommandLine& line) {
  if (const auto& given = line.Get(kDownFolderFlag)) {
    TROUPE_ASSIGN_OR_RETURN(const std::string folder, AbsoluteFolder(*given));
    if (access(folder.c_str(), F_OK) == 0) return folder;
    return NotFound("{} {}: there is no such folder", kDownFolderFlag.name, folder);
  }
  const std::vector<std::string> running = RunningClusters();
  if (running.empty()) return std::nullopt;
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> address,
                          TextFromEnvironment("TROUPE_COORDINATOR"));
  if (address) return FolderOfCoordinator(running, *address);
  if (running.size() > 1) {
    PrintMessage("{} local clusters are running; this command stops the newest, in {}\n",
                 running.size(), running.front());
  }
  return running.front();
}

// Makes the folder the default of the next `up`. The cluster runs also if that fails.
void NoteFolder(FileSystem& files, const std::string& folder) {
  const auto state = StateFolder();
  const Status noted = !state.ok()          ? state.status()
                       : state->has_value() ? AddToIndex(files, **state, folder)
                                            : OkStatus();
  if (!noted.ok()) {
    PrintMessage("`troupe up` will not find {} by itself, only by {}: {}\n", folder,
                 kUpFolderFlag.name, Message(noted));
  }
}

// Returns the devices from --devices KIND:N, or --devices-per-worker N for CPU devices; `otherwise`
// if neither is given.
StatusOr<WorkerDevices> WantedDevices(const CommandLine& line, int workers,
                                      const WorkerDevices& otherwise) {
  const std::string stated = line.Get(DevicesFlag()).value_or("");
  const std::optional<int> number = line.Get(kDevicesPerWorkerFlag);
  if (stated.empty() && !number) return otherwise;
  const WorkerDevices processors{.count = number.value_or(1)};
  if (stated.empty()) return processors;
  StatusOr<WorkerDevices> devices = ParseWorkerDevices(stated);
  if (!devices.ok()) return devices.status();
  if (number && *devices != processors) {
    return InvalidArgument("--devices is {} but --devices-per-worker is {}, which means {}", stated,
                           *number, processors.ToText());
  }
  // Each worker uses the first devices of its host.
  if (!DeviceTraitsOf(devices->kind).shares_host_cores && workers > 1) {
    return InvalidArgument(
        "--devices is {} and --workers is {}: all workers would have the same GPUs; start one "
        "worker, which has all of them",
        stated, workers);
  }
  return devices;
}

Status WantKeepEnded(const CommandLine& line, const std::string& folder, bool runs,
                     ClusterSettings* settings) {
  const std::string wanted = line.Get(kKeepEndedFlag).value_or(settings->keep_ended);
  TROUPE_RETURN_IF_ERROR(ParseKeepEnded(kKeepEndedFlag.name, wanted).status());
  if (runs && wanted != settings->keep_ended) {
    return FailedPrecondition(
        "the cluster in {} runs with --keep-ended {}: run `troupe down` first to change it", folder,
        settings->keep_ended);
  }
  settings->keep_ended = wanted;
  return OkStatus();
}

// Returns the number of workers from --workers; without the flag, that of the former run.
StatusOr<int> WantedWorkers(const CommandLine& line, const std::string& folder, bool runs,
                            const ClusterSettings& settings) {
  const int workers = line.Get(kWorkersFlag).value_or(std::max(settings.workers(), 1));
  if (runs && workers < settings.workers()) {
    return FailedPrecondition(
        "the cluster in {} runs with --workers {}: a running cluster can only grow; run `troupe "
        "down` first to start fewer",
        folder, settings.workers());
  }
  return workers;
}

// The settings of the folder's cluster once this `up` is done. A running cluster keeps those that
// cannot change under it.
StatusOr<ClusterSettings> WantedSettings(const CommandLine& line, const std::string& folder,
                                         bool runs) {
  const int port = line.Get(kPortFlag).value_or(0);
  auto former = ReadClusterSettings(folder);
  if (!former.ok() && former.status().code() != StatusCode::kNotFound) return former.status();
  ClusterSettings settings = former.ok() ? *former : ClusterSettings{};
  TROUPE_ASSIGN_OR_RETURN(const int workers, WantedWorkers(line, folder, runs, settings));
  TROUPE_ASSIGN_OR_RETURN(const WorkerDevices devices,
                          WantedDevices(line, workers, settings.devices));
  const double detection_seconds =
      line.Get(kDetectionSecondsFlag).value_or(settings.detection_seconds);
  const int64_t log_bytes = line.Get(kLogBytesFlag).value_or(settings.log_bytes);
  const int log_files = line.Get(kLogFilesFlag).value_or(settings.log_files);
  if (runs && (log_bytes != settings.log_bytes || log_files != settings.log_files)) {
    return FailedPrecondition(
        "the cluster in {} runs with --log-bytes {} --log-files {}: run `troupe down` first to "
        "change them",
        folder, settings.log_bytes, settings.log_files);
  }
  settings.log_bytes = log_bytes;
  settings.log_files = log_files;
  TROUPE_RETURN_IF_ERROR(WantKeepEnded(line, folder, runs, &settings));
  if (runs) {
    if ((port != 0 && port != settings.coordinator_port) || devices != settings.devices ||
        detection_seconds != settings.detection_seconds) {
      return FailedPrecondition(
          "the cluster in {} runs with --port {} --devices {} --detection-seconds {}: run `troupe "
          "down` first to change them",
          folder, settings.coordinator_port, settings.devices.ToText(), settings.detection_seconds);
    }
  } else {
    settings.devices = devices;
    settings.detection_seconds = detection_seconds;
    if (port != 0) settings.coordinator_port = port;
  }
  if (!runs) settings.prometheus.clear();
  if (!runs && settings.workers() > workers) {
    settings.worker_metrics_ports.resize(static_cast<size_t>(workers));
  }
  const int missing = std::max(workers - settings.workers(), 0);
  TROUPE_ASSIGN_OR_RETURN(std::vector<int> ports, FindFreePorts(missing + 4));
  const auto take = [&] {
    const int taken = ports.back();
    ports.pop_back();
    return taken;
  };
  if (settings.coordinator_port == 0) settings.coordinator_port = take();
  if (settings.coordinator_metrics_port == 0) settings.coordinator_metrics_port = take();
  // A cluster of an earlier version that still runs gets its page when it is started again.
  if (settings.coordinator_page_port == 0 && !runs) settings.coordinator_page_port = take();
  if (settings.prometheus_port == 0) settings.prometheus_port = take();
  while (settings.workers() < workers) settings.worker_metrics_ports.push_back(take());
  return settings;
}

// Checks the Prometheus of --monitoring and writes its files, before anything is started.
Status WantMonitoring(const CommandLine& line, const std::string& folder,
                      ClusterSettings* settings) {
  if (!line.Get(kMonitoringFlag)) return OkStatus();
  const char* const path = std::getenv("PATH");
  TROUPE_ASSIGN_OR_RETURN(settings->prometheus, FindPrometheus(path == nullptr ? "" : path));
  TROUPE_RETURN_IF_ERROR(CheckPrometheus(folder, settings->prometheus));
  return WritePrometheusFiles(folder);
}

// After a failure to add Prometheus to a running cluster: the cluster goes on without it, so that
// later runs of `up` do not wait for it.
Status LeaveMonitoring(const std::string& folder, ClusterSettings settings) {
  settings.prometheus.clear();
  TROUPE_RETURN_IF_ERROR(WriteClusterSettings(folder, settings));
  TROUPE_ASSIGN_OR_RETURN(const ClusterFile cluster, ReadCurrentFile(folder));
  SignalProcess(cluster.supervisor, SIGHUP);
  PrintMessage("the cluster in {} goes on without {}\n", folder, kPrometheusName);
  return OkStatus();
}

// Returns whether a process of the cluster has outlived its supervisor.
bool AnySurvivor(const std::string& folder) {
  const auto former = ReadClusterFile(folder);
  if (!former.ok()) return false;
  const std::vector<ProcessId> processes = ProcessesOf(*former);
  return std::any_of(processes.begin(), processes.end(), IsAlive);
}

// Handles ports of the cluster that other processes use: returns an error for the coordinator's
// port, and replaces those of metrics and of the page, which no user chose. REQUIRES: no supervisor
// is alive.
Status LeaveTakenPorts(const CommandLine& line, const std::string& folder,
                       ClusterSettings* settings) {
  // Processes of the cluster may have outlived their supervisor.
  const auto former = ReadClusterFile(folder);
  if (former.ok() && IsAlive(former->coordinator)) return OkStatus();
  if (!IsPortFree(settings->coordinator_port)) {
    const Status taken =
        InvalidArgument("--port {}: another process listens on 127.0.0.1:{}; choose another --port",
                        settings->coordinator_port, settings->coordinator_port);
    if (line.Get(kPortFlag)) return taken;
    return FailedPrecondition("{} (the cluster in {} used this one before)", Message(taken),
                              folder);
  }
  const auto exchange = [&](const std::string& name, int* port) -> Status {
    if (IsPortFree(*port)) return OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int> free, FindFreePorts(1));
    PrintMessage("{}: another process listens on its port {}; it uses {} instead\n", name, *port,
                 free[0]);
    *port = free[0];
    return OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(exchange("coordinator", &settings->coordinator_metrics_port));
  if (settings->coordinator_page_port != 0)
    TROUPE_RETURN_IF_ERROR(exchange("coordinator", &settings->coordinator_page_port));
  const bool has_prometheus =
      former.ok() && former->prometheus && IsAlive(former->prometheus->process);
  if (!settings->prometheus.empty() && !has_prometheus) {
    TROUPE_RETURN_IF_ERROR(exchange(kPrometheusName, &settings->prometheus_port));
  }
  for (int i = 0; i < settings->workers(); ++i) {
    const bool lives =
        former.ok() && std::any_of(former->workers.begin(), former->workers.end(),
                                   [&](const ClusterFile::Worker& worker) {
                                     return worker.name == ClusterSettings::WorkerName(i) &&
                                            IsAlive(worker.process);
                                   });
    if (lives) continue;
    TROUPE_RETURN_IF_ERROR(exchange(ClusterSettings::WorkerName(i),
                                    &settings->worker_metrics_ports[static_cast<size_t>(i)]));
  }
  return OkStatus();
}

Status StartSupervisor(const std::string& folder, const std::string& binaries) {
  for (const char* binary : {"troupe-coordinator", "troupe-worker"}) {
    if (access(JoinPath(binaries, binary).c_str(), X_OK) != 0) {
      return FailedPrecondition("{} is not in the folder of the troupe command, {}", binary,
                                binaries);
    }
  }
  std::vector<std::string> command = {JoinPath(binaries, "troupe"), "supervise",
                                      kSupervisedFolderFlag.name, folder};
  if (AnyFailpointArmed()) command.emplace_back(kAllowFailpointsFlag);
  return StartDetached(command, JoinPath(JoinPath(folder, "logs"), "supervisor.log")).status();
}

// Returns the names of the workers that are connected with the coordinator at `address`. One that
// an operator drains counts: the order outlives a cluster that is stopped and started again.
StatusOr<std::set<std::string>> ConnectedWorkers(const std::string& address) {
  Client client = Client::At(address);
  TROUPE_RETURN_IF_ERROR(client.WaitUntilConnected(milliseconds(500)));
  std::set<std::string> connected;
  v1::ListWorkersRequest request;
  PageTokens tokens;
  for (bool more = true; more;) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kListLimit);
    v1::ListWorkersResponse response;
    TROUPE_RETURN_IF_ERROR(
        FromGrpcStatus(client.cluster().ListWorkers(&context, request, &response)));
    for (const auto& worker : response.workers()) {
      if (worker_state::IsConnected(worker.state())) connected.insert(worker.name());
    }
    TROUPE_ASSIGN_OR_RETURN(more, tokens.Next(response, &request));
  }
  return connected;
}

void PrintCluster(const CommandLine& line, const std::string& folder, const ClusterFile& cluster) {
  if (line.wants_json()) {
    PrintOutput("{}", Lines{ToJsonText(cluster)});
    return;
  }
  PrintOutput("folder {}\n", folder);
  PrintOutput("coordinator {} (pid {})\n", cluster.coordinator_address, cluster.coordinator.pid);
  if (!cluster.coordinator_page.empty()) PrintOutput("page {}\n", cluster.coordinator_page);
  for (const auto& worker : cluster.workers) {
    PrintOutput("{} (pid {})\n", worker.name, worker.process.pid);
  }
  if (cluster.prometheus) {
    PrintOutput("prometheus {} (pid {})\n", cluster.prometheus->url,
                cluster.prometheus->process.pid);
  }
  PrintOutput("export TROUPE_COORDINATOR={}\n", cluster.coordinator_address);
}

StatusOr<ExitCode> Up(const CommandLine& line) {
  TROUPE_RETURN_IF_ERROR(ArmFailpointsFromEnvironment(line.Get(kAllowFailpoints)));
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::string folder, FolderToStart(files, line));
  for (const char* name : {"logs", "workers"}) {
    const Status made = MakeDirectories(files, JoinPath(folder, name));
    if (!made.ok()) return Annotate(made, fmt::format("{} {}", kUpFolderFlag.name, folder));
  }
  TROUPE_ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Acquire(folder, kUpLimit));
  TROUPE_ASSIGN_OR_RETURN(const std::string binaries, BinaryFolder());
  const Status former = ReadClusterFile(folder).status();
  if (former.code() == StatusCode::kFailedPrecondition) return former;
  const bool runs = SupervisorLives(folder);
  std::optional<ClusterFile> running;  // nothing is written before it is known to be of this host
  if (runs) {
    TROUPE_ASSIGN_OR_RETURN(running, ReadCurrentFile(folder));
  }
  const bool fresh = !runs && !AnySurvivor(folder);
  TROUPE_ASSIGN_OR_RETURN(ClusterSettings settings, WantedSettings(line, folder, !fresh));
  const bool was_monitored = !settings.prometheus.empty();
  TROUPE_RETURN_IF_ERROR(WantMonitoring(line, folder, &settings));
  const bool adds_monitoring = !was_monitored && !settings.prometheus.empty();
  if (!runs) TROUPE_RETURN_IF_ERROR(LeaveTakenPorts(line, folder, &settings));
  TROUPE_RETURN_IF_ERROR(WriteClusterSettings(folder, settings));
  if (running) {
    SignalProcess(running->supervisor, SIGHUP);
  } else {
    TROUPE_RETURN_IF_ERROR(StartSupervisor(folder, binaries));
  }
  const StatusOr<ClusterFile> ready = WaitUntilReady(folder, settings, ConnectedWorkers, kUpLimit);
  if (!ready.ok()) {
    // If the processes of a new cluster do not become ready, they are stopped, so that they are not
    // restarted forever.
    const Status undone = fresh             ? StopCluster(folder)
                          : adds_monitoring ? LeaveMonitoring(folder, settings)
                                            : OkStatus();
    if (!undone.ok()) PrintMessage("{}\n", Message(undone));
    return ready.status();
  }
  NoteFolder(files, folder);
  PrintCluster(line, folder, *ready);
  return ExitCode::kDone;
}

StatusOr<ExitCode> Down(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> folder, FolderToStop(line));
  Status stopped = NotFound("no local cluster is running");
  if (folder) {
    TROUPE_ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Acquire(*folder, kUpLimit));
    stopped = StopCluster(*folder);
    if (stopped.code() == StatusCode::kNotFound)
      stopped = NotFound("no cluster is running in {}", *folder);
  }
  if (!stopped.ok() && stopped.code() != StatusCode::kNotFound) return stopped;
  if (!stopped.ok()) PrintMessage("{}\n", Message(stopped));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"folder", folder ? Json(*folder) : Json(nullptr)},
                              {"stopped", stopped.ok()}}));
  } else if (stopped.ok()) {
    PrintOutput("stopped the cluster in {}\n", *folder);
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Supervise(const CommandLine& line) {
  TROUPE_RETURN_IF_ERROR(ArmFailpointsFromEnvironment(line.Get(kAllowFailpoints)));
  TROUPE_ASSIGN_OR_RETURN(const std::string folder,
                          AbsoluteFolder(*line.Get(kSupervisedFolderFlag)));
  TROUPE_ASSIGN_OR_RETURN(const std::string binaries, BinaryFolder());
  TROUPE_RETURN_IF_ERROR(Supervisor(folder, binaries).Run());
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> ClusterCommands() {
  return {
      {.name = "up",
       .summary = "Starts a local cluster, or its missing processes; returns when all workers are "
                  "ready.",
       .flags = {&kUpFolderFlag, &kWorkersFlag, &DevicesFlag(), &kDevicesPerWorkerFlag, &kPortFlag,
                 &kDetectionSecondsFlag, &kKeepEndedFlag, &kLogBytesFlag, &kLogFilesFlag,
                 &kMonitoringFlag, &kAllowFailpoints},
       .cluster = ClusterUse::kFolder,
       .run = Up},
      {.name = "down",
       .summary = "Stops a local cluster.",
       .flags = {&kDownFolderFlag},
       .cluster = ClusterUse::kFolder,
       .run = Down},
      {.name = "supervise",
       .summary = "Runs the supervisor of the cluster in --data-dir in the foreground (`up` starts "
                  "it in the background).",
       .flags = {&kSupervisedFolderFlag, &kAllowFailpoints},
       .cluster = ClusterUse::kFolder,
       .run = Supervise},
  };
}

}  // namespace troupe
