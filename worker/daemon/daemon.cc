#include "worker/daemon/daemon.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "actor/system.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/detection_seconds.h"
#include "base/http/health_pages.h"
#include "base/http/http_server.h"
#include "base/last_sign.h"
#include "base/log.h"
#include "base/metrics/metric_list.h"
#include "base/metrics/metrics.h"
#include "base/metrics/metrics_server.h"
#include "base/random.h"
#include "base/security/insecure_reminder.h"
#include "plan/device/device_kind.h"
#include "worker/daemon/burn_in_actor.h"
#include "worker/daemon/certificate_renewal.h"
#include "worker/daemon/coordinator_link.h"
#include "worker/daemon/coordinator_stream.h"
#include "worker/daemon/descriptor_watch.h"
#include "worker/daemon/device_actor.h"
#include "worker/daemon/event_sender.h"
#include "worker/daemon/file_tasks.h"
#include "worker/daemon/rank_actor.h"
#include "worker/daemon/rank_child.h"
#include "worker/daemon/session_actor.h"
#include "worker/daemon/spot_watch.h"
#include "worker/daemon/worker_metrics.h"

namespace troupe {
namespace {

// The longest sleep, so that a clock that stops cannot block the daemon.
constexpr Duration kWaitMax = std::chrono::seconds(1);
// The longest time from a signal to the daemon's end.
constexpr Duration kLeaveMax = std::chrono::seconds(3);
// The session, its parts, and a rank for each of at most 64 devices, with room for those that end.
constexpr size_t kActorsMax = 256;

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
  const std::string kind = identity.devices().empty() ? std::string(kDefaultDeviceKind)
                                                      : identity.devices(0).kind().kind();
  return fmt::format("{}:{}", kind, std::max(1, identity.devices_size()));
}

// The signs of life of the daemon's actors, which its pages report. Thread-safe.
struct Signs {
  LastSign works;
  std::atomic<bool> has_session{false};
};

// Starts the pages /healthz and /readyz if the options ask for them; absent otherwise.
StatusOr<std::unique_ptr<HttpServer>> StartHealthPages(const DaemonOptions& options,
                                                       const Signs& signs) {
  if (options.health_listen.empty()) return nullptr;
  const auto lives = [&signs] { return signs.works.Age() <= HangLimit(kLeastDetectionSeconds); };
  const auto is_ready = [lives, &signs] { return lives() && signs.has_session; };
  auto server = HttpServer::Start(
      {.listen = options.health_listen, .handlers = {.pages = HealthPages(lives, is_ready)}});
  if (!server.ok()) return Annotate(server.status(), "health pages");
  LogInfo("worker", "/healthz and /readyz are served on port {}", (*server)->port());
  return server;
}

// The adapter between the operating system and the daemon's actors: owns their systems, and polls
// signals and the ranks' descriptors on the main thread.
//
// The actors of one system share one thread: none of them blocks, and a message between two of them
// wakes no thread. Rank processes die with the thread that started them (the kernel's parent-death
// signal), which lives as long as the system.
class Daemon {
 public:
  Daemon(DaemonOptions options, WorkerMetrics& metrics, Signs& signs)
      : options_(std::move(options)), dialer_(options_.coordinator, options_.tls) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    signal_token_ = descriptors_.Add(signals_, [this](unsigned) { return OnSignals(); });
    descriptors_.Arm(signal_token_, DescriptorWatch::kReadable);
    const StatusOr<Address> session =
        system_->Spawn("session", MakeSessionActor(SessionOptions(metrics, signs)),
                       {.mailbox_capacity = kSessionCapacity});
    TROUPE_CHECK_OK(session.status());
    session_ = *session;
    if (options_.spot) spot_ = std::make_unique<SpotWatch>(SpotOptions());
    if (options_.tls) renewal_ = std::make_unique<CertificateRenewal>(RenewalOptions());
  }
  ~Daemon() {
    renewal_.reset();
    spot_.reset();
    gate_->Close();
    system_.reset();
    close(signals_);
  }

  int Run() {
    InsecureReminder reminder("worker", options_.insecure);
    while (exit_code_ < 0) {
      reminder.RemindAt(clock_.Now());
      descriptors_.Wait(kWaitMax);
      if (clock_.Now() >= end_by_) End(0);
    }
    return exit_code_;
  }

 private:
  static constexpr int kRuns = -1;

  SessionActorOptions SessionOptions(WorkerMetrics& metrics, Signs& signs) {
    SessionActorOptions session{.config = options_.session,
                                .core_table = options_.core_table,
                                .memory_bytes = ProcessMemoryBytes,
                                .totals = &metrics,
                                .works = &signs.works,
                                .has_session = &signs.has_session,
                                .exit = [this](int code) { End(code); }};
    session.send = [gate = gate_](Address to, AnyMessage message) {
      return gate->Send(to, std::move(message));
    };
    // These are actors of other systems, so a message reports their end.
    session.open_files = [gate = gate_, config = options_.session](Address self) {
      return std::make_unique<FileTasks>(FileTasksOptions{
          .config = config,
          .send = [gate, self](AnyMessage message) { return gate->Send(self, std::move(message)); },
          .on_end = [gate, self](std::string_view name,
                                 const Status& cause) { gate->Stop(self, PartEnded(name, cause)); },
      });
    };
    session.link = MakeCoordinatorLink(
        [this](StreamCallbacks callbacks) { return dialer_.Dial(std::move(callbacks)); }, gate_);
    session.burn_in = MakeBurnInActor({.executable = options_.executable,
                                       .devices = DevicesText(options_.session.identity),
                                       .name = options_.session.identity.name(),
                                       .log_directory = options_.session.log_directory},
                                      gate_);
    std::vector<WatchedDevice> watched = WatchedDevices(options_.session.identity);
    if (!watched.empty()) {
      session.devices = MakeDeviceActor({.library = options_.nvml,
                                         .devices = std::move(watched),
                                         .metrics = &metrics.metrics(),
                                         .gate = gate_});
    }
    session.start_rank = [this](int device) -> StatusOr<StartedRank> {
      TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<RankChild> child,
                              RankChild::Start(options_.executable));
      const pid_t pid = child->pid();
      return StartedRank{MakeRankActor({.device = device,
                                        .child = std::move(child),
                                        .descriptors = &descriptors_,
                                        .gate = gate_}),
                         pid};
    };
    return session;
  }

  // The session dials again with the new certificate, before the coordinator ends the stream of the
  // former one.
  CertificateRenewal::Options RenewalOptions() {
    const uint64_t key =
        RandomKey(static_cast<uint64_t>(clock_.WallNanoseconds()) ^ static_cast<uint64_t>(getpid()),
                  "certificate renewal");
    return {
        .coordinator = options_.coordinator,
        .tls = *options_.tls,
        .uniform = [key, index = uint64_t{0}]() mutable { return Uniform(key, index++); },
        .on_renewed = [this] { dialer_.Reconnect("the certificate of this worker is renewed"); }};
  }

  SpotWatchOptions SpotOptions() {
    return {.provider = *options_.spot,
            .url = options_.metadata_url.empty() ? MetadataUrlOf(*options_.spot)
                                                 : options_.metadata_url,
            .on_notice = [this](const SpotNotice& notice) {
              return SendToSession(session::Drain{notice.reason, notice.left});
            }};
  }

  // The first SIGTERM drains; any other signal ends the daemon at once. RESOURCE_EXHAUSTED if the
  // session had no room for the newest one, with which it is called again.
  Status OnSignals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
      const bool drains =
          !asked_ && info.ssi_signo == SIGTERM && options_.drain_limit > Duration::zero();
      LogInfo("worker", "was asked to stop by a signal{}", drains ? "" : ", at once");
      if (drains) {
        asked_ = session::Drain{"SIGTERM", options_.drain_limit};
      } else {
        asked_ = session::Leave{};
      }
    }
    descriptors_.Arm(signal_token_, DescriptorWatch::kReadable);
    return asked_ ? Ask() : OkStatus();
  }

  // Lets the session end, unless it does not get to it in time.
  Status Ask() {
    const Duration limit =
        std::holds_alternative<session::Drain>(*asked_) ? options_.drain_limit : kLeaveMax;
    end_by_ = std::min(end_by_, clock_.Now() + limit);
    return SendToSession(*asked_);
  }

  Status SendToSession(SessionWhat what) {
    auto events = std::make_shared<std::vector<SessionEvent>>();
    events->push_back({std::move(what), nullptr});
    const Status sent = gate_->Send(session_, AnyMessage(SessionEvents{std::move(events)}));
    return sent.code() == StatusCode::kResourceExhausted ? sent : OkStatus();
  }

  void OnRootEnd(const Status& cause) {
    if (exit_code_ != kRuns) return;  // it has stated its exit code and its reason
    LogError("worker", "ends: {}", ToString(cause));
    End(1);
  }

  // The first code counts.
  void End(int code) {
    int none = kRuns;
    exit_code_.compare_exchange_strong(none, code);
    descriptors_.Wake();
  }

  const DaemonOptions options_;
  SystemClock clock_;
  std::atomic<int> exit_code_ = kRuns;
  MonotonicTime end_by_ = MonotonicTime::max();
  int signals_ = -1;
  DescriptorWatch::Token signal_token_ = 0;
  std::optional<SessionWhat> asked_;  // session::Drain or session::Leave, by a signal
  DescriptorWatch descriptors_;
  CoordinatorDialer dialer_;
  std::unique_ptr<ActorSystem> system_ = std::make_unique<ActorSystem>(
      clock_,
      ActorSystemOptions{
          .threads = 1,
          .max_actors = kActorsMax,
          .on_root_end = [this](std::string_view, const Status& cause) { OnRootEnd(cause); },
      });
  Address session_;
  const std::shared_ptr<ActorGate> gate_ = std::make_shared<ActorGate>(system_.get());
  std::unique_ptr<SpotWatch> spot_;              // null: no notices are heeded
  std::unique_ptr<CertificateRenewal> renewal_;  // null without TLS
};

}  // namespace

StatusOr<int> RunDaemon(DaemonOptions options) {
  WorkerMetrics metrics(options.session.identity);
  metrics.metrics().Set(metric::kInsecure, options.insecure ? 1 : 0);
  Signs signs;
  std::unique_ptr<MetricsServer> server;
  if (!options.metrics_listen.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        server, MetricsServer::Start(metrics.metrics(),
                                     {.listen = options.metrics_listen,
                                      .announced_host = options.host,
                                      .tls = options.tls,
                                      .health_age = [&signs] { return signs.works.Age(); }}));
    options.session.identity.set_metrics_address(server->url());
  }
  TROUPE_ASSIGN_OR_RETURN(const auto health, StartHealthPages(options, signs));
  return Daemon(std::move(options), metrics, signs).Run();
}

}  // namespace troupe
