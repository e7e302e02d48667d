#include "coordinator/service/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "actor/system.h"
#include "base/clock.h"
#include "base/detection_seconds.h"
#include "base/file_system.h"
#include "base/http/health_pages.h"
#include "base/http/http_server.h"
#include "base/log.h"
#include "base/metrics/metric_list.h"
#include "base/metrics/metrics.h"
#include "base/metrics/metrics_server.h"
#include "base/security/certificate.h"
#include "base/security/credentials.h"
#include "base/security/identity.h"
#include "base/security/listen_policy.h"
#include "base/security/random_hex.h"
#include "base/security/secret.h"
#include "base/store/rocksdb_store.h"
#include "coordinator/access/access_control.h"
#include "coordinator/access/access_processor.h"
#include "coordinator/access/audit_log.h"
#include "coordinator/access/internal_caller.h"
#include "coordinator/engine/engine.h"
#include "coordinator/kubernetes/kubernetes_jobs.h"
#include "coordinator/kubernetes/kubernetes_pods.h"
#include "coordinator/page/page_server.h"
#include "coordinator/service/access_service.h"
#include "coordinator/service/access_timer.h"
#include "coordinator/service/api_service.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/call_guard.h"
#include "coordinator/service/cluster_service.h"
#include "coordinator/service/connection_acceptor.h"
#include "coordinator/service/data_directory.h"
#include "coordinator/service/external_scaler.h"
#include "coordinator/service/insecure_notice.h"
#include "coordinator/service/measure.h"
#include "coordinator/service/rpc_times.h"
#include "coordinator/service/self_call.h"
#include "coordinator/service/service_pools.h"
#include "coordinator/service/session_service.h"
#include "coordinator/service/unreadable_requests.h"

namespace troupe {
namespace {

constexpr auto kShutdownLimit = std::chrono::milliseconds(500);
constexpr auto kSelfCallLimit = std::chrono::seconds(10);
// Workers ping at their heartbeat; a server with a longer minimum interval would end their streams.
constexpr int kMinPingIntervalMs = 100;

// The actors of this process that block have a thread each: the engine, which waits for synced
// writes, and the workers of the pools. One more thread runs the actors that never block.
constexpr int kActorThreads = 1 + kPoolWorkers + 1;
constexpr size_t kMostActors = 24;

constexpr char kAuditFile[] = "audit.log";  // in the data directory

// Calls and streams of one connection at a time.
constexpr int kMaxStreams = 256;
// Memory limit for all messages in flight.
constexpr size_t kMaxMessageBytes = size_t{1} << 30;
// A connection without a call is closed.
constexpr int kIdleConnectionMs = 15 * 60 * 1000;

Duration SelfCallInterval(const ServerOptions& options) {
  return FromSeconds(std::clamp(options.detection_seconds / 3, 0.1, 1.0));
}

// An answered call may be two intervals old, and one that is not answered ends after a second.
std::chrono::duration<double> ReadyLimit(const ServerOptions& options) {
  return std::max(FromSeconds(options.detection_seconds), 4 * SelfCallInterval(options));
}

// gRPC's health service while there is a server. Thread-safe.
class Readiness {
 public:
  void SetService(grpc::HealthCheckServiceInterface* service) {
    const std::lock_guard lock(mutex_);
    service_ = service;
  }
  void Set(bool ready) {
    const std::lock_guard lock(mutex_);
    if (service_ != nullptr) service_->SetServingStatus(ready);
  }

 private:
  std::mutex mutex_;
  grpc::HealthCheckServiceInterface* service_ = nullptr;
};

int Milliseconds(Duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::min<int64_t>(count, std::numeric_limits<int>::max()));
}

// Sets the limits of connections, streams and messages.
void SetLimits(const TimeLimits& limits, const ServerOptions& options,
               grpc::ServerBuilder* builder) {
  const ConnectionTimes& times = options.connection_times;
  builder->SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder->SetResourceQuota(grpc::ResourceQuota("coordinator").Resize(kMaxMessageBytes));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(times.handshake));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  if (options.tls) {
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(times.age));
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(times.grace));
  }
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinPingIntervalMs);
  // Keepalive detects a watcher that has lost its host.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(limits.keepalive));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(limits.keepalive_answer));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

// A builder has one list of interceptors.
void SetInterceptors(const ServerOptions& options, Metrics& metrics, grpc::ServerBuilder* builder) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(ExplainUnreadableRequests());
  interceptors.push_back(MeasureCalls(metrics));
  if (options.insecure) interceptors.push_back(MarkAnswersInsecure());
  builder->experimental().SetInterceptorCreators(std::move(interceptors));
}

}  // namespace

// Members are destroyed in reverse order: calls end before the engine that they use. Stop ends the
// actors before the engine, whose callbacks they call, and before the catalog.
struct Server::Parts {
  std::string host;
  const SystemClock system_clock;
  const Clock& clock;
  std::atomic<bool> stops = false;  // Stop has begun
  Metrics metrics;
  std::unique_ptr<RocksDbStore> store;
  std::string checkpoint_root_id;  // empty: not known
  std::unique_ptr<AuditLog> audit;
  std::unique_ptr<AccessControl> access;
  InternalCaller internal;  // that reconciles TroupeJobs, and whose secret the page has too
  std::optional<CallAudit> call_audit;
  std::unique_ptr<ActorSystem> actors;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<CallGuard> guard;
  std::unique_ptr<NamespacesWatch> namespaces;  // changes those of engine and guard
  std::unique_ptr<JobServiceShell> jobs;
  std::unique_ptr<PlanServiceShell> plans;
  std::unique_ptr<CheckpointServiceShell> checkpoints;
  std::unique_ptr<ClusterServiceShell> cluster;
  std::unique_ptr<SessionService> sessions;
  std::unique_ptr<EnrollmentService> enrollment;
  std::unique_ptr<AccessServiceShell> access_service;
  std::unique_ptr<ExternalScalerShell> scaler;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections;
  std::unique_ptr<grpc::Server> grpc;
  std::unique_ptr<ConnectionAcceptor> acceptor;
  std::shared_ptr<grpc::Channel> self_channel;  // released by none of gRPC's threads
  Address self_call;
  const std::shared_ptr<Readiness> readiness = std::make_shared<Readiness>();
  const std::shared_ptr<SelfCallRecord> self_calls = std::make_shared<SelfCallRecord>();
  // These read the ages of acceptor and self_calls.
  std::unique_ptr<MetricsServer> metrics_server;
  std::unique_ptr<HttpServer> health_server;
  std::unique_ptr<PageServer> page_server;          // calls grpc
  std::unique_ptr<KubernetesJobs> kubernetes_jobs;  // calls grpc, and reads engine and store
  std::unique_ptr<KubernetesPods> kubernetes_pods;  // reads engine

  explicit Parts(const Clock* given) : clock(given == nullptr ? system_clock : *given) {}
  ~Parts() { Stop(); }

  void Stop() {
    stops = true;
    readiness->Set(false);
    page_server.reset();
    kubernetes_jobs.reset();
    kubernetes_pods.reset();
    namespaces.reset();
    if (grpc == nullptr) return;
    actors->Stop(self_call, OkStatus()).IgnoreError();  // it may have ended
    acceptor->Stop();
    grpc->Shutdown(std::chrono::system_clock::now() + kShutdownLimit);
    grpc->Wait();
    readiness->SetService(nullptr);
    grpc.reset();
    actors.reset();
    if (self_calls->calls.Wait(kSelfCallLimit)) {
      self_channel.reset();
    } else {
      LogWarning("coordinator", "a call to this server has not ended; its channel is kept");
      new std::shared_ptr<grpc::Channel>(std::move(self_channel));
    }
    engine.reset();
    store.reset();
  }

  // Supervises the root actors: the process ends with the first one that fails.
  void StartActors(const std::function<void(const Status&)>& on_failure) {
    actors = std::make_unique<ActorSystem>(
        clock,
        ActorSystemOptions{.threads = kActorThreads,
                           .max_actors = kMostActors,
                           .on_root_end = [on_failure](std::string_view name, const Status& cause) {
                             if (cause.ok()) return;  // it was stopped
                             LogError("coordinator", "{} stops: {}", name, ToString(cause));
                             if (on_failure) on_failure(cause);
                           }});
  }

  StatusOr<std::unique_ptr<Engine>> StartEngine(const ServerOptions& options,
                                                const TimeLimits& limits) {
    EngineOptions engine;
    engine.system = actors.get();
    engine.store = store.get();
    engine.clock = &clock;
    TROUPE_ASSIGN_OR_RETURN(engine.metrics,
                            actors->Spawn("metrics", std::make_unique<MetricsActor>(metrics),
                                          {.mailbox_capacity = kMostWaitingMeasured}));
    engine.record_path = [calls = CallAudit{*audit, *access}](const RefusedPath& path) {
      RecordRefusedPath(calls, path);
    };
    engine.machine.limits = limits;
    engine.machine.planner = options.planner;
    engine.machine.keep_ended = options.keep_ended;
    engine.machine.most_user_jobs = options.most_user_jobs;
    if (options.namespaces) engine.machine.namespaces = options.namespaces->namespaces;
    TROUPE_ASSIGN_OR_RETURN(
        engine.machine.checkpoint_folder,
        DefaultCheckpointFolder(options.checkpoint_root, options.data_directory));
    checkpoint_root_id = CheckpointRootId(options.checkpoint_root);
    engine.machine.checkpoint_folder_id = checkpoint_root_id;
    return Engine::Start(std::move(engine));
  }

  // REQUIRES: the engine runs.
  void StartNamespaces(const ServerOptions& options) {
    guard =
        std::make_unique<CallGuard>(options.namespaces ? options.namespaces->namespaces : nullptr,
                                    options.user_limits, *call_audit);
    if (!options.namespaces) return;
    namespaces = std::make_unique<NamespacesWatch>(
        *options.namespaces, [this](const std::shared_ptr<const Namespaces>& changed) {
          guard->SetNamespaces(changed);
          engine->SetNamespaces(changed);
        });
  }

  // REQUIRES: the engine runs.
  Status MakeServices(const ServerOptions& options, const ServicePools& pools) {
    const CallAudit& calls = call_audit.emplace(CallAudit{*audit, *access, &internal});
    StartNamespaces(options);
    const CheckFiles check_files =
        options.checkpoint_root.empty()
            ? options.check_files
            : WithCheckpointRoot(options.checkpoint_root, checkpoint_root_id, options.check_files);
    jobs = std::make_unique<JobServiceShell>(*engine, *store, pools, check_files, calls, *guard);
    plans = std::make_unique<PlanServiceShell>(*engine, pools.plans, *guard);
    checkpoints = std::make_unique<CheckpointServiceShell>(*engine, pools.plans, calls, *guard);
    cluster = std::make_unique<ClusterServiceShell>(*engine, calls, *guard);
    sessions = std::make_unique<SessionService>(*engine, kMostWaitingMessages, calls);
    access_service = std::make_unique<AccessServiceShell>(calls, options.tls);
    scaler = std::make_unique<ExternalScalerShell>(*engine, *guard);
    return MakeEnrollment(options, pools);
  }

  std::vector<grpc::Service*> Services() const {
    return {jobs.get(),     plans.get(),          checkpoints.get(), cluster.get(),
            sessions.get(), access_service.get(), enrollment.get(),  scaler.get()};
  }

  // Makes the credentials of connections: with TLS, they check every call.
  std::shared_ptr<grpc::ServerCredentials> MakeCredentials(const ServerOptions& options) {
    if (!options.tls) return grpc::InsecureServerCredentials();
    std::shared_ptr<grpc::ServerCredentials> credentials = TlsServerCredentialsOf(*options.tls);
    const bool reflects = options.insecure || IsLoopbackHost(host);
    credentials->SetAuthMetadataProcessor(
        std::make_shared<AccessProcessor>(reflects, *access, *audit));
    return credentials;
  }

  Status MakeEnrollment(const ServerOptions& options, const ServicePools& pools) {
    Authority authority;
    std::optional<EnrollmentOptions> enrolls = options.enrollment;
    if (enrolls) {
      enrolls->tls = *options.tls;
      TROUPE_ASSIGN_OR_RETURN(authority, CheckEnrollment(options.enrollment->authority,
                                                         *options.tls, WallSeconds(clock)));
    }
    enrollment = std::make_unique<EnrollmentService>(std::move(enrolls), std::move(authority),
                                                     pools, *store, clock, *call_audit);
    return OkStatus();
  }

  Status MakeInternalCaller(const ServerOptions& options) {
    TROUPE_ASSIGN_OR_RETURN(internal.secret, RandomHex(kSecretBytes));
    internal.identity = {.cluster = options.tls ? options.tls->identity.cluster : std::string(),
                         .role = Role::kSubmitter,
                         .name = kKubernetesCaller};
    return OkStatus();
  }

  // REQUIRES: gRPC serves.
  void StartKubernetes(const ServerOptions& options) {
    if (!options.kubernetes) return;
    if (options.kubernetes->pods) {
      kubernetes_pods = std::make_unique<KubernetesPods>(*options.kubernetes, *engine, clock);
    }
    if (!options.kubernetes->jobs) return;
    kubernetes_jobs = std::make_unique<KubernetesJobs>(
        *options.kubernetes,
        CoordinatorJobsOptions{.engine = engine.get(),
                               .store = store.get(),
                               .channel = self_channel,
                               .secret = internal.secret,
                               .begin_call = [calls = self_calls] { return calls->calls.Begin(); }},
        clock);
  }

  // The age of the older of the two signs of life.
  std::chrono::duration<double> HealthAge() const {
    return std::max(acceptor->Age(), self_calls->answered.Age());
  }

  // Records that the metrics were refused to the holder of this certificate.
  void RecordRefusedReader(const std::string& certificate, const Status& reason) const {
    const auto holder = ReadCertificate(certificate);
    audit->AppendRefusal(holder.ok() ? ToUri(holder->identity) : "anonymous", "/metrics",
                         std::string(Message(reason)));
  }

  // Starts the pages over HTTP that the options ask for.
  Status StartPages(const ServerOptions& options) {
    if (!options.metrics_listen.empty()) {
      TROUPE_ASSIGN_OR_RETURN(
          metrics_server,
          MetricsServer::Start(metrics,
                               {.listen = options.metrics_listen,
                                .tls = options.tls,
                                .check_certificate =
                                    [this](const std::string& certificate) {
                                      return access->Authenticate(certificate, {}).status();
                                    },
                                .record_refusal =
                                    [this](const std::string& certificate, const Status& reason) {
                                      RecordRefusedReader(certificate, reason);
                                    },
                                .health_age = [this] { return HealthAge(); }}));
    }
    if (!options.page_listen.empty()) {
      TROUPE_ASSIGN_OR_RETURN(
          page_server,
          PageServer::Start({.listen = options.page_listen,
                             .tls = options.tls,
                             .maker = {.channel = grpc->InProcessChannel(PageChannelArguments()),
                                       .secret = internal.secret,
                                       .access = access.get(),
                                       .audit = audit.get(),
                                       .clock = &clock}}));
    }
    if (options.health_listen.empty()) return OkStatus();
    auto pages = HealthPages(
        [this, limit = HangLimit(options.detection_seconds)] { return HealthAge() <= limit; },
        [this, limit = ReadyLimit(options)] {
          return !stops && self_calls->answered.Age() <= limit;
        });
    auto started = HttpServer::Start(
        {.listen = options.health_listen, .handlers = {.pages = std::move(pages)}});
    if (!started.ok()) return Annotate(started.status(), "health pages");
    health_server = *std::move(started);
    return OkStatus();
  }
};

StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  const size_t colon = options.listen.rfind(':');
  if (colon == std::string::npos)
    return InvalidArgument("--listen {} is not HOST:PORT", options.listen);
  auto parts = std::make_unique<Parts>(options.clock);
  parts->host = options.listen.substr(0, colon);
  TROUPE_ASSIGN_OR_RETURN(parts->acceptor, ConnectionAcceptor::Listen(options.listen));
  TROUPE_RETURN_IF_ERROR(MakeDataDirectory(options.data_directory));
  TROUPE_ASSIGN_OR_RETURN(parts->store, RocksDbStore::Open(options.data_directory));
  TROUPE_ASSIGN_OR_RETURN(
      parts->audit,
      OpenAuditLogOf(*parts->store, JoinPath(options.data_directory, kAuditFile), parts->clock));
  TROUPE_ASSIGN_OR_RETURN(parts->access,
                          AccessControl::Open(options.tls ? options.tls->identity.cluster : "",
                                              *parts->store, parts->clock, *parts->audit));
  parts->metrics.Set(metric::kInsecure, options.insecure ? 1 : 0);
  parts->StartActors(options.on_failure);
  TROUPE_ASSIGN_OR_RETURN(const ServicePools pools, SpawnServicePools(*parts->actors));
  TimeLimits limits = MakeTimeLimits(options.detection_seconds);
  if (options.blame_half_life_seconds)
    limits.blame_half_life = FromSeconds(*options.blame_half_life_seconds);
  TROUPE_ASSIGN_OR_RETURN(parts->engine, parts->StartEngine(options, limits));
  TROUPE_RETURN_IF_ERROR(parts->MakeInternalCaller(options));
  TROUPE_RETURN_IF_ERROR(parts->MakeServices(options, pools));

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetLimits(limits, options, &builder);
  SetInterceptors(options, parts->metrics, &builder);
  parts->connections = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      parts->MakeCredentials(options));
  for (grpc::Service* const service : parts->Services()) builder.RegisterService(service);
  parts->grpc = builder.BuildAndStart();
  if (parts->grpc == nullptr) return Internal("gRPC could not start a server");
  parts->readiness->SetService(parts->grpc->GetHealthCheckService());
  parts->self_channel = parts->grpc->InProcessChannel(grpc::ChannelArguments());
  const int first_refused = FirstRefusedDescriptor(options.descriptor_limit);
  parts->acceptor->Start(
      {.accepted =
           [connections = parts->connections.get()](int listener, int connection) {
             grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
             parameters.listener_fd = listener;
             parameters.fd = connection;
             connections->HandleNewConnection(&parameters);
           },
       .refused = [metrics = &parts->metrics] { metrics->Add(metric::kConnectionsRefused, 1); }},
      {.first_refused = first_refused,
       .most_address_connections =
           options.most_address_connections.value_or(MostAddressConnections(first_refused))});
  TROUPE_ASSIGN_OR_RETURN(
      parts->self_call,
      parts->actors->Spawn("self call", std::make_unique<SelfCall>(
                                            parts->self_channel, SelfCallInterval(options),
                                            parts->self_calls, ReadyLimit(options),
                                            [readiness = parts->readiness, &stops = parts->stops](
                                                bool ready) { readiness->Set(ready && !stops); })));
  TROUPE_RETURN_IF_ERROR(
      parts->actors->Spawn("access timer", std::make_unique<AccessTimer>(*parts->access)).status());
  TROUPE_RETURN_IF_ERROR(parts->StartPages(options));
  parts->StartKubernetes(options);
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() = default;

void Server::Stop() { parts_->Stop(); }

std::string Server::address() const { return fmt::format("{}:{}", parts_->host, port()); }
int Server::port() const { return parts_->acceptor->port(); }
int Server::metrics_port() const {
  return parts_->metrics_server ? parts_->metrics_server->port() : 0;
}
std::string Server::metrics_url() const {
  return parts_->metrics_server ? parts_->metrics_server->url() : "";
}
std::string Server::page_url() const {
  return parts_->page_server ? parts_->page_server->url() : "";
}
int Server::health_port() const {
  return parts_->health_server ? parts_->health_server->port() : 0;
}

}  // namespace troupe
