#include "coordinator/service/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/metrics/metric_list.h"
#include "base/metrics/metrics.h"
#include "base/serial_executor.h"
#include "base/store/rocksdb_store.h"
#include "coordinator/service/api_service.h"
#include "coordinator/service/connection_acceptor.h"
#include "coordinator/service/engine.h"
#include "coordinator/service/self_call.h"
#include "coordinator/service/session_service.h"

namespace troupe {
namespace {

constexpr auto kShutdownLimit = std::chrono::milliseconds(500);
// Workers ping at their heartbeat; a server with a longer minimum interval would end their streams.
constexpr int kMinPingIntervalMs = 100;
constexpr size_t kMaxWaitingDataChecks = 256;
// Calls and streams of one connection at a time.
constexpr int kMaxStreams = 256;
// Memory limit for all messages in flight.
constexpr size_t kMaxMessageBytes = size_t{1} << 30;
// A connection that does not become HTTP/2 is closed, as is one without a call.
constexpr int kHandshakeMs = 10000;
constexpr int kIdleConnectionMs = 15 * 60 * 1000;

std::chrono::milliseconds SelfCallInterval(const ServerOptions& options) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      FromSeconds(std::clamp(options.detection_seconds / 3, 0.1, 1.0)));
}

int Milliseconds(Duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::min<int64_t>(count, std::numeric_limits<int>::max()));
}

// Sets the limits of connections, streams and messages.
void SetLimits(const TimeLimits& limits, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder->SetResourceQuota(grpc::ResourceQuota("coordinator").Resize(kMaxMessageBytes));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinPingIntervalMs);
  // Keepalive detects a watcher that has lost its host.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(limits.keepalive));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(limits.keepalive_answer));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

}  // namespace

// Members are destroyed in reverse order: calls end before the engine that they use, the engine
// before the catalog.
struct Server::Parts {
  std::string host;
  SystemClock clock;
  Metrics metrics;
  std::unique_ptr<RocksDbStore> store;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<SerialExecutor> data_checks;
  std::unique_ptr<PlanDesk> plan_desk;
  std::unique_ptr<JobServiceShell> jobs;
  std::unique_ptr<PlanServiceShell> plans;
  std::unique_ptr<CheckpointServiceShell> checkpoints;
  std::unique_ptr<ClusterServiceShell> cluster;
  std::unique_ptr<SessionService> sessions;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections;
  std::unique_ptr<grpc::Server> grpc;
  std::unique_ptr<ConnectionAcceptor> acceptor;
  std::unique_ptr<SelfCall> self_call;
  std::unique_ptr<MetricsServer> metrics_server;  // reads the age of the two above

  // The age of the older of the two signs of life.
  std::chrono::duration<double> HealthAge() const {
    return std::max(acceptor->Age(), self_call->Age());
  }
};

StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  const size_t colon = options.listen.rfind(':');
  if (colon == std::string::npos)
    return InvalidArgument("--listen {} is not HOST:PORT", options.listen);
  auto parts = std::make_unique<Parts>();
  parts->host = options.listen.substr(0, colon);
  TROUPE_ASSIGN_OR_RETURN(parts->acceptor, ConnectionAcceptor::Listen(options.listen));
  PosixFileSystem files;
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, options.data_directory));
  TROUPE_ASSIGN_OR_RETURN(parts->store, RocksDbStore::Open(options.data_directory));
  EngineOptions engine;
  engine.store = parts->store.get();
  engine.clock = &parts->clock;
  engine.metrics = &parts->metrics;
  TimeLimits limits = MakeTimeLimits(options.detection_seconds);
  if (options.blame_half_life_seconds)
    limits.blame_half_life = FromSeconds(*options.blame_half_life_seconds);
  engine.machine.limits = limits;
  engine.machine.planner = std::move(options.planner);
  engine.machine.keep_ended = options.keep_ended;
  std::error_code unknown;
  const auto catalog = std::filesystem::absolute(options.data_directory, unknown);
  if (unknown) return ErrnoStatus(unknown.value(), options.data_directory);
  engine.machine.checkpoint_folder = (catalog / "checkpoints").lexically_normal().string();
  engine.on_failure = options.on_failure;
  TROUPE_ASSIGN_OR_RETURN(parts->engine, Engine::Start(std::move(engine)));
  Engine& running = *parts->engine;
  parts->data_checks = std::make_unique<SerialExecutor>(kMaxWaitingDataChecks);
  parts->plan_desk = std::make_unique<PlanDesk>(PlanDesk::Options());
  parts->jobs = std::make_unique<JobServiceShell>(running, *parts->plan_desk, *parts->data_checks);
  parts->plans = std::make_unique<PlanServiceShell>(running, *parts->plan_desk);
  parts->checkpoints = std::make_unique<CheckpointServiceShell>(running, *parts->plan_desk);
  parts->cluster = std::make_unique<ClusterServiceShell>(running);
  parts->sessions = std::make_unique<SessionService>(running);

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetLimits(limits, &builder);
  parts->connections = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  builder.RegisterService(parts->jobs.get());
  builder.RegisterService(parts->plans.get());
  builder.RegisterService(parts->checkpoints.get());
  builder.RegisterService(parts->cluster.get());
  builder.RegisterService(parts->sessions.get());
  parts->grpc = builder.BuildAndStart();
  if (parts->grpc == nullptr) return Internal("gRPC could not start a server");
  parts->acceptor->Start(
      {.accepted =
           [connections = parts->connections.get()](int listener, int connection) {
             grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
             parameters.listener_fd = listener;
             parameters.fd = connection;
             connections->HandleNewConnection(&parameters);
           },
       .refused = [metrics = &parts->metrics] { metrics->Add(metric::kConnectionsRefused, 1); }},
      FirstRefusedDescriptor(options.descriptor_limit));
  parts->self_call = std::make_unique<SelfCall>(
      parts->grpc->InProcessChannel(grpc::ChannelArguments()), SelfCallInterval(options));
  if (!options.metrics_listen.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        parts->metrics_server,
        MetricsServer::Start(parts->metrics, options.metrics_listen,
                             [parts = parts.get()] { return parts->HealthAge(); }));
  }
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() { Stop(); }

void Server::Stop() {
  if (parts_->grpc == nullptr) return;
  parts_->self_call->Stop();
  parts_->acceptor->Stop();
  parts_->grpc->Shutdown(std::chrono::system_clock::now() + kShutdownLimit);
  parts_->grpc->Wait();
  parts_->grpc.reset();
  parts_->plan_desk->Stop();  // it calls the data checks, and they call the engine
  parts_->data_checks->Stop();
  parts_->engine.reset();
  parts_->store.reset();
}

std::string Server::address() const { return fmt::format("{}:{}", parts_->host, port()); }
int Server::port() const { return parts_->acceptor->port(); }
int Server::metrics_port() const {
  return parts_->metrics_server ? parts_->metrics_server->port() : 0;
}

}  // namespace troupe
