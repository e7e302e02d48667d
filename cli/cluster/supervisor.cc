#include "cli/cluster/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <thread>
#include <utility>

#include "base/failpoint.h"
#include "base/file_system.h"
#include "base/log.h"
#include "base/log_rotation.h"
#include "cli/cluster/process.h"
#include "cli/cluster/prometheus.h"
#include "cli/cluster/supervisor_lock.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// The interval at which processes that are not children of this supervisor are checked.
constexpr long kPollNanoseconds = 100'000'000;
// A process that dies within kQuickDeath of its start died quickly: its next start waits longer, up
// to the limit.
constexpr seconds kQuickDeath{2};
constexpr milliseconds kFirstWait{50};
constexpr milliseconds kLongestWait{800};
// The interval between health probes of a process, and the time limit of a probe.
constexpr milliseconds kProbeInterval{500};
constexpr seconds kProbeLimit{5};
// A supervisor that has not polled for this long was itself suspended.
constexpr seconds kSuspensionGap{2};
// The time between SIGTERM and SIGKILL.
constexpr seconds kCoordinatorStopLimit{3};
constexpr seconds kWorkerStopLimit{5};

void Reap() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

std::string LocalAddress(int port) { return fmt::format("127.0.0.1:{}", port); }

}  // namespace

std::vector<std::string> CoordinatorCommand(const std::string& folder, const std::string& binaries,
                                            const ClusterSettings& settings) {
  std::vector<std::string> command = {JoinPath(binaries, "troupe-coordinator"),
                                      "--listen",
                                      LocalAddress(settings.coordinator_port),
                                      "--metrics-listen",
                                      LocalAddress(settings.coordinator_metrics_port),
                                      "--data-dir",
                                      JoinPath(folder, "coordinator"),
                                      "--detection-seconds",
                                      fmt::format("{}", settings.detection_seconds),
                                      "--keep-ended",
                                      settings.keep_ended,
                                      "--log-bytes",
                                      fmt::format("{}", settings.log_bytes),
                                      "--log-files",
                                      fmt::format("{}", settings.log_files)};
  if (settings.coordinator_page_port != 0) {
    command.insert(command.end(), {"--page-listen", LocalAddress(settings.coordinator_page_port)});
  }
  return command;
}

Supervisor::Supervisor(std::string folder, std::string binaries)
    : folder_(std::move(folder)), binaries_(std::move(binaries)) {}

Status Supervisor::Run() {
  TROUPE_ASSIGN_OR_RETURN(const SupervisorLock lock, SupervisorLock::Acquire(folder_));
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);

  TROUPE_RETURN_IF_ERROR(ReadSettings());
  AdoptSurvivors();
  looked_at_ = steady_clock::now();
  bool changed = true;  // the file names the former supervisor, even if all its processes survive
  while (true) {
    NoticeHangs();
    NoticeDeaths();
    changed |= StartMissing();
    if (changed) WriteFile();
    changed = false;
    const timespec limit{.tv_sec = 0, .tv_nsec = kPollNanoseconds};
    const int signal = sigtimedwait(&signals, nullptr, &limit);
    if (signal == SIGTERM || signal == SIGINT) break;
    if (signal == SIGHUP) {
      const Status status = ReadSettings();
      if (!status.ok()) LogError("supervisor", "settings: {}", Message(status));
      StopUnwanted();
      changed = true;
    }
  }
  StopAll();
  return OkStatus();
}

Status Supervisor::ReadSettings() {
  TROUPE_ASSIGN_OR_RETURN(settings_, ReadClusterSettings(folder_));
  const auto url = [](int port) { return fmt::format("http://{}/metrics", LocalAddress(port)); };
  const std::string log_bytes = fmt::format("{}", settings_.log_bytes);
  const std::string log_files = fmt::format("{}", settings_.log_files);
  LimitLog({settings_.log_bytes, settings_.log_files});
  if (children_.empty()) {
    children_.push_back({.role = Role::kCoordinator,
                         .name = "coordinator",
                         .arguments = CoordinatorCommand(folder_, binaries_, settings_),
                         .metrics = url(settings_.coordinator_metrics_port),
                         .health_port = settings_.coordinator_metrics_port});
  }
  for (int i = static_cast<int>(ChildrenOf(Role::kWorker).size()); i < settings_.workers(); ++i) {
    const std::string name = ClusterSettings::WorkerName(i);
    children_.push_back({.role = Role::kWorker,
                         .name = name,
                         .arguments = {JoinPath(binaries_, "troupe-worker"),
                                       "--coordinator",
                                       LocalAddress(settings_.coordinator_port),
                                       "--name",
                                       name,
                                       "--devices",
                                       settings_.devices.ToText(),
                                       "--host",
                                       "127.0.0.1",
                                       "--data-dir",
                                       JoinPath(JoinPath(folder_, "workers"), name),
                                       "--peak-dir",
                                       folder_,
                                       "--log-dir",
                                       JoinPath(folder_, "logs"),
                                       "--metrics-listen",
                                       LocalAddress(settings_.worker_metrics_ports[i]),
                                       "--log-bytes",
                                       log_bytes,
                                       "--log-files",
                                       log_files,
                                       "--drain-seconds",
                                       "0"},
                         .metrics = url(settings_.worker_metrics_ports[i]),
                         .health_port = settings_.worker_metrics_ports[i]});
  }
  if (!settings_.prometheus.empty() && ChildrenOf(Role::kPrometheus).empty()) {
    const int port = settings_.prometheus_port;
    children_.push_back({.role = Role::kPrometheus,
                         .name = kPrometheusName,
                         .arguments = PrometheusCommand(folder_, settings_.prometheus, port),
                         .metrics = PrometheusUrl(port)});
  }
  return OkStatus();
}

void Supervisor::StopUnwanted() {
  if (!settings_.prometheus.empty()) return;
  StopChildren(ChildrenOf(Role::kPrometheus), kCoordinatorStopLimit);
  std::erase_if(children_, [](const Child& child) { return child.role == Role::kPrometheus; });
}

void Supervisor::AdoptSurvivors() {
  const auto former = ReadClusterFile(folder_);
  if (!former.ok()) return;
  const auto adopt = [&](Child* child, const ProcessId& process) {
    if (!IsAlive(process)) return;
    Begin(child, process);
    LogInfo("supervisor", "{} is still running as process {}", child->name, process.pid);
  };
  adopt(&children_[0], former->coordinator);
  for (const auto& worker : former->workers) {
    for (Child& child : children_) {
      if (child.name == worker.name) adopt(&child, worker.process);
    }
  }
  if (!former->prometheus) return;
  for (Child* child : ChildrenOf(Role::kPrometheus)) adopt(child, former->prometheus->process);
}

bool Supervisor::StartMissing() {
  bool changed = false;
  const auto now = steady_clock::now();
  for (Child& child : children_) {
    if (child.process.pid != 0 || now < child.start_not_before) continue;
    std::vector<std::string> command = child.arguments;
    const bool is_troupe = child.role != Role::kPrometheus;
    if (is_troupe && AnyFailpointArmed()) command.emplace_back(kAllowFailpointsFlag);
    const auto process =
        StartDetached(command, JoinPath(JoinPath(folder_, "logs"), child.name + ".log"));
    child.started_at = now;
    if (!process.ok()) {
      LogError("supervisor", "{}: {}", child.name, Message(process.status()));
      child.start_not_before = now + kLongestWait;
      continue;
    }
    Begin(&child, *process);
    LogInfo("supervisor", "{} started as process {}", child.name, process->pid);
    changed = true;
  }
  return changed;
}

void Supervisor::Begin(Child* child, const ProcessId& process) {
  child->process = process;
  child->started_at = steady_clock::now();
  child->liveness = Liveness(child->started_at, Liveness::Limit(settings_.detection_seconds));
  child->probe.reset();
}

void Supervisor::NoticeHangs() {
  const auto now = steady_clock::now();
  const auto gap = now - std::exchange(looked_at_, now);
  for (Child& child : children_) {
    if (child.process.pid == 0 || child.health_port == 0) continue;
    if (gap > kSuspensionGap) child.liveness.Excuse(gap);
    const auto state = child.probe ? child.probe->Turn() : HealthProbe::State::kFailed;
    if (state == HealthProbe::State::kAnswered) {
      child.liveness.Answered(now,
                              std::chrono::duration_cast<Liveness::Duration>(child.probe->age()));
    }
    const bool late = now - child.probed_at > kProbeLimit;
    if (state != HealthProbe::State::kWaiting || late) child.probe.reset();
    // Until its first answer a process is probed at every turn, because the shorter limit applies
    // from then on.
    const bool due = !child.liveness.has_answered() || now - child.probed_at > kProbeInterval;
    if (!child.probe && due) {
      child.probe = std::make_unique<HealthProbe>(child.health_port);
      child.probed_at = now;
    }
    if (!child.liveness.IsHung(now)) continue;
    LogWarning("supervisor", "{}, process {}, has shown no progress for {:.1f} s and was killed",
               child.name, child.process.pid,
               std::chrono::duration<double>(child.liveness.Silence(now)).count());
    SignalProcess(child.process, SIGKILL);
    // Does not repeat the kill at every turn if the process takes long to die.
    child.liveness.Excuse(kSuspensionGap + Liveness::Limit(settings_.detection_seconds));
  }
}

void Supervisor::NoticeDeaths() {
  const auto now = steady_clock::now();
  for (Child& child : children_) {
    if (child.process.pid == 0 || IsAlive(child.process)) continue;
    child.quick_deaths = now - child.started_at < kQuickDeath ? child.quick_deaths + 1 : 0;
    const milliseconds wait =
        child.quick_deaths == 0
            ? milliseconds(0)
            : std::min(kFirstWait * (1 << std::min(child.quick_deaths - 1, 10)), kLongestWait);
    LogWarning("supervisor", "{}, process {}, has ended; it restarts in {} ms", child.name,
               child.process.pid, wait.count());
    child.start_not_before = now + wait;
    child.process = {};
  }
  Reap();
}

void Supervisor::WriteFile() {
  ClusterFile cluster;
  cluster.coordinator_address = fmt::format("127.0.0.1:{}", settings_.coordinator_port);
  cluster.coordinator_metrics = children_[0].metrics;
  if (settings_.coordinator_page_port != 0)
    cluster.coordinator_page =
        fmt::format("http://{}/", LocalAddress(settings_.coordinator_page_port));
  cluster.coordinator = children_[0].process;
  cluster.supervisor = FindProcess(getpid()).value_or(ProcessId{.pid = getpid()});
  for (const Child* child : ChildrenOf(Role::kWorker)) {
    cluster.workers.push_back(
        {.name = child->name, .process = child->process, .metrics = child->metrics});
  }
  for (const Child* child : ChildrenOf(Role::kPrometheus)) {
    cluster.prometheus = {.process = child->process, .url = child->metrics};
  }
  const Status status = WriteClusterFile(folder_, cluster);
  if (!status.ok()) LogError("supervisor", "cluster.json: {}", Message(status));
}

void Supervisor::StopAll() {
  LogInfo("supervisor", "stopping");
  // The coordinator runs while the workers send their Goodbyes, so nobody is blamed for their end.
  StopChildren(ChildrenOf(Role::kWorker), kWorkerStopLimit);
  std::vector<Child*> others = ChildrenOf(Role::kPrometheus);
  others.push_back(&children_[0]);
  StopChildren(others, kCoordinatorStopLimit);
  const Status status = RemoveClusterFile(folder_);
  if (!status.ok()) LogWarning("supervisor", "cluster.json: {}", Message(status));
}

// The program prometheus may be a script that runs it.
void Supervisor::Signal(const Child& child, int signal) {
  if (child.role == Role::kPrometheus) return SignalGroup(child.process, signal);
  SignalProcess(child.process, signal);
}

std::vector<Supervisor::Child*> Supervisor::ChildrenOf(Role role) {
  std::vector<Child*> found;
  for (Child& child : children_) {
    if (child.role == role) found.push_back(&child);
  }
  return found;
}

void Supervisor::StopChildren(std::vector<Child*> children, seconds limit) {
  for (const Child* child : children) Signal(*child, SIGTERM);
  const auto end = steady_clock::now() + limit;
  bool killed = false;
  while (true) {
    Reap();
    std::erase_if(children, [](Child* child) { return !IsAlive(child->process); });
    if (children.empty()) return;
    if (!killed && steady_clock::now() > end) {
      killed = true;
      for (Child* child : children) {
        LogWarning("supervisor", "{} did not stop within its limit and was killed", child->name);
        Signal(*child, SIGKILL);
      }
    }
    // A process stuck in the kernel must not block the others forever.
    if (steady_clock::now() > end + limit) return;
    std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace troupe
