#include "worker/daemon/daemon.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file_system.h"
#include "base/last_sign.h"
#include "base/log.h"
#include "base/metrics/metrics.h"
#include "worker/daemon/burn_in_run.h"
#include "worker/daemon/coordinator_stream.h"
#include "worker/daemon/core_table.h"
#include "worker/daemon/event_queue.h"
#include "worker/daemon/file_chores.h"
#include "worker/daemon/rank_child.h"
#include "worker/daemon/worker_metrics.h"
#include "worker/devices/device_metrics.h"
#include "worker/devices/device_watch.h"

namespace troupe {
namespace {

// The longest sleep, so that a clock that stops cannot block the daemon.
constexpr int64_t kPollMillisecondsMax = 1000;
// The interval at which the claims of the host's other daemons are read.
constexpr Duration kClaimsInterval = std::chrono::seconds(1);

// Returns the devices that report the id by which their driver knows them.
std::vector<WatchedDevice> WatchedDevices(const v1::Hello& identity) {
  std::vector<WatchedDevice> watched;
  for (const v1::Device& device : identity.devices()) {
    if (!device.id().empty()) watched.push_back({device.index(), device.id()});
  }
  return watched;
}

// Returns "cuda:8".
std::string DevicesText(const v1::Hello& identity) {
  const std::string kind = identity.devices().empty() ? "cpu" : identity.devices(0).kind().kind();
  return fmt::format("{}:{}", kind, std::max(1, identity.devices_size()));
}

class Daemon {
 public:
  // Updates `turned` on each iteration of its loop.
  Daemon(DaemonOptions options, WorkerMetrics& metrics, LastSign& turned)
      : options_(std::move(options)),
        metrics_(metrics),
        turned_(turned),
        dialer_(options_.coordinator),
        file_chores_(options_.session, queue_),
        burn_in_({.executable = options_.executable,
                  .devices = DevicesText(options_.session.identity),
                  .name = options_.session.identity.name(),
                  .log_directory = options_.session.log_directory},
                 queue_),
        state_(session::MakeState(options_.session, clock_.Now())),
        children_(state_.devices.size()) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    std::vector<WatchedDevice> watched = WatchedDevices(options_.session.identity);
    if (!watched.empty()) Watch(std::move(watched));
  }
  ~Daemon() { close(signals_); }

  int Run() {
    OpenCoreTable();
    Handle(session::Tick{});
    while (!exit_code_) {
      turned_.Touch();
      Poll();
    }
    return *exit_code_;
  }

 private:
  void Watch(std::vector<WatchedDevice> devices) {
    auto measured = std::make_shared<DeviceMetrics>(metrics_.metrics());
    watch_ = std::make_unique<DeviceWatch>(DeviceWatchOptions{
        .library = options_.nvml,
        .devices = std::move(devices),
        .observed =
            [measured, queue = queue_](const DeviceObservation& observation) {
              measured->Record(observation, SystemClock().WallNanoseconds());
              const Verdict& verdict = observation.verdict;
              if (verdict.health < Health::kReplaceRank) return;
              queue->Push(session::DeviceFault{
                  observation.index, verdict.health == Health::kCondemned, verdict.cause});
            },
    });
  }

  void Poll() {
    std::vector<pollfd> polled = {{signals_, POLLIN, 0}, {queue_->descriptor(), POLLIN, 0}};
    std::vector<int> devices;
    for (size_t i = 0; i < children_.size(); ++i) {
      if (!children_[i]) continue;
      devices.push_back(static_cast<int>(i));
      const short wanted = POLLIN | (children_[i]->wants_write() ? POLLOUT : 0);
      polled.push_back({children_[i]->socket(), wanted, 0});
      polled.push_back({children_[i]->end_descriptor(), POLLIN, 0});
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(session::NextDeadline(state_) - clock_.Now())
            .count();
    const int limit = static_cast<int>(std::clamp<int64_t>(left, 0, kPollMillisecondsMax));
    if (poll(polled.data(), polled.size(), limit) < 0 && errno != EINTR) {
      LogError("worker", "{}", ToString(ErrnoStatus(errno, "poll")));
    }
    if (polled[0].revents != 0) {
      LogInfo("worker", "stops after a signal");
      exit_code_ = 0;
      return;
    }
    LookAtClaims();
    for (QueuedEvent& event : queue_->TakeAll()) {
      std::visit([this](auto& what) { Handle(std::move(what)); }, event);
    }
    for (size_t d = 0; d < devices.size(); ++d) {
      ServeChild(devices[d], polled[2 + 2 * d].revents, polled[3 + 2 * d].revents != 0);
    }
    if (clock_.Now() >= session::NextDeadline(state_)) Handle(session::Tick{});
  }

  void OpenCoreTable() {
    if (options_.core_table.empty()) return;
    StatusOr<std::unique_ptr<CoreTable>> table = CoreTable::Open(options_.core_table);
    if (!table.ok()) return NoteTable(table.status());
    core_table_ = *std::move(table);
  }

  void LookAtClaims() {
    if (!core_table_ || clock_.Now() < claims_due_) return;
    claims_due_ = clock_.Now() + kClaimsInterval;
    StatusOr<std::vector<v1::CoreClaims>> others = core_table_->Others();
    if (!others.ok()) {
      NoteTable(others.status());
      return;
    }
    std::string text;
    for (const v1::CoreClaims& claims : *others) text += claims.SerializeAsString();
    if (text == others_claim_) return;
    others_claim_ = std::move(text);
    Handle(session::OthersClaim{*std::move(others)});
  }

  // Logs each complaint once; ranks that begin from now on report it as a fall-back.
  void NoteTable(const Status& status) {
    std::string text = ToString(status);
    if (text == table_complaint_) return;
    LogWarning("worker", "cores are not divided with the other daemons of this host: {}", text);
    table_complaint_ = text;
    Handle(session::CoreTableFault{std::move(text)});
  }

  void ServeChild(int device, short socket_events, bool has_ended) {
    RankChild* const child = children_[device].get();
    if (child == nullptr) return;
    if (socket_events & POLLOUT) child->Write();
    // The child's last messages are handled before its end.
    for (v1::RankReport& report : child->Read()) {
      if (report.has_metrics()) {
        metrics_.Add(device, report.metrics());
      } else {
        Handle(session::RankSaid{device, std::move(report)});
      }
    }
    if (!has_ended) return;
    const ChildEnd end = child->Reap();
    session::RankExited exited{device, end.exit_code, end.signal, child->LastOperation(), {}};
    LogWarning("worker",
               "rank process {} of device {} ended: exit code {}, signal {}, last operation: {}",
               child->pid(), device, end.exit_code, end.signal, exited.last_operation);
    children_[device].reset();
    Handle(std::move(exited));
  }

  template <typename What>
  void Handle(What what) {
    for (session::Effect& effect : session::Step(state_, {clock_.Now(), std::move(what)})) {
      std::visit([this](auto& one) { Perform(one); }, effect);
    }
  }

  void Perform(session::Dial& dial) {
    const uint64_t number = dial.stream;
    // A stream's last messages may arrive after this object's end; they go to a queue that nobody
    // reads.
    stream_ = dialer_.Dial({
        .on_message =
            [queue = queue_, number](v1::CoordinatorMessage message) {
              queue->Push(session::StreamMessage{number, std::move(message)});
            },
        .on_closed =
            [queue = queue_, number](std::string reason) {
              queue->Push(session::StreamClosed{number, std::move(reason)});
            },
    });
    if (const Status hit = HitFailpoint("session.before_hello"); !hit.ok()) {
      LogWarning("worker", "{}", ToString(hit));
    }
    stream_->Send(std::move(dial.hello));
  }
  void Perform(session::HangUp&) { stream_.reset(); }
  void Perform(session::SendToCoordinator& send) {
    if (stream_) stream_->Send(std::move(send.message));
  }
  void Perform(session::SendHeartbeat& heartbeat) {
    int64_t bytes = ProcessMemoryBytes(getpid());
    for (const auto& child : children_) {
      if (child) bytes += child->MemoryBytes();
    }
    v1::WorkerMessage message;
    message.set_leader_epoch(heartbeat.leader_epoch);
    message.mutable_heartbeat()->set_memory_bytes(bytes);
    if (stream_) stream_->Send(std::move(message));
  }
  void Perform(session::StartProcess& start) {
    StatusOr<std::unique_ptr<RankChild>> child = RankChild::Start(options_.executable);
    if (!child.ok()) {
      LogError("worker", "device {}: {}", start.device, ToString(child.status()));
      Handle(session::RankExited{start.device, 1, 0, {}, std::string(Message(child.status()))});
      return;
    }
    metrics_.Restart(start.device);
    children_[start.device] = *std::move(child);
  }
  void Perform(session::KillProcess& kill) {
    LogWarning("worker", "kills the rank process of device {}: {}", kill.device, kill.reason);
    if (children_[kill.device]) children_[kill.device]->Kill();
  }
  void Perform(session::SendToRank& send) {
    if (send.command.has_begin()) metrics_.Restart(send.device);
    if (children_[send.device]) children_[send.device]->Send(send.command);
  }
  void Perform(session::ReadRankLogs& read) {
    file_chores_.ReadLogs(std::move(read.request), stream_);
  }
  void Perform(session::ReadRankTrace& read) {
    file_chores_.ReadTrace(std::move(read.request), read.rank, stream_);
  }
  void Perform(session::RemoveCheckpoint& remove) {
    file_chores_.Remove(std::move(remove.request));
  }
  void Perform(session::RemoveRankLogs& remove) {
    file_chores_.RemoveLogs(std::move(remove.request));
  }
  void Perform(session::RemoveImages& remove) {
    file_chores_.RemoveImages(std::move(remove.request));
  }
  void Perform(session::ReadCheckpointBack& read) { file_chores_.Verify(std::move(read.request)); }
  void Perform(session::BeginBurnIn& begin) { burn_in_.Start(std::move(begin.request)); }
  void Perform(session::StopBurnIn&) { burn_in_.Stop(); }
  void Perform(session::PublishClaims& publish) {
    if (!core_table_) return;
    const Status published = core_table_->Publish(publish.claims);
    if (!published.ok()) NoteTable(published);
  }
  void Perform(session::Note& note) { LogInfo("worker", "{}", note.text); }
  void Perform(session::EndDaemon& end) {
    LogError("worker", "ends: {}", end.message);
    exit_code_ = end.exit_code;
  }

  const DaemonOptions options_;
  WorkerMetrics& metrics_;
  LastSign& turned_;
  SystemClock clock_;
  const std::shared_ptr<EventQueue> queue_ = std::make_shared<EventQueue>();
  CoordinatorDialer dialer_;
  FileChores file_chores_;
  BurnInRun burn_in_;
  session::State state_;
  std::vector<std::unique_ptr<RankChild>> children_;  // by device
  std::shared_ptr<CoordinatorStream> stream_;
  int signals_ = -1;
  std::optional<int> exit_code_;
  std::unique_ptr<CoreTable> core_table_;  // null: only this daemon's ranks are known here
  MonotonicTime claims_due_;
  std::string others_claim_;  // the claims that the session got last
  std::string table_complaint_;
  std::unique_ptr<DeviceWatch> watch_;  // null: there is no device to watch
};

}  // namespace

StatusOr<int> RunDaemon(DaemonOptions options) {
  WorkerMetrics metrics(options.session.identity);
  LastSign turned;
  std::unique_ptr<MetricsServer> server;
  if (!options.metrics_listen.empty()) {
    TROUPE_ASSIGN_OR_RETURN(server, MetricsServer::Start(metrics.metrics(), options.metrics_listen,
                                                         [&turned] { return turned.Age(); }));
    const std::string host = options.metrics_listen.substr(0, options.metrics_listen.rfind(':'));
    options.session.identity.set_metrics_address(
        fmt::format("http://{}:{}/metrics", host, server->port()));
  }
  return Daemon(std::move(options), metrics, turned).Run();
}

}  // namespace troupe
