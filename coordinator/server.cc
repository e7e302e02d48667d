#include "coordinator/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/metrics.h"
#include "base/rocksdb_store.h"
#include "base/serial_executor.h"
#include "coordinator/api_service.h"
#include "coordinator/engine.h"
#include "coordinator/session_service.h"

namespace troupe {
namespace {

constexpr auto kShutdownLimit = std::chrono::milliseconds(500);
// Workers ping at their heartbeat; a server that minds would end their streams.
constexpr int kMinPingIntervalMs = 100;
// A watcher whose host is gone is noticed.
constexpr int kKeepaliveMs = 10000;
constexpr int kKeepaliveTimeoutMs = 5000;
constexpr size_t kMaxWaitingDataChecks = 256;

}  // namespace

// Destroyed from the last to the first: calls end before the engine they use, the engine before the
// catalog.
struct Server::Parts {
  std::string host;
  int port = 0;
  SystemClock clock;
  Metrics metrics;
  std::unique_ptr<MetricsServer> metrics_server;
  std::unique_ptr<RocksDbStore> store;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<SerialExecutor> data_checks;
  std::unique_ptr<JobServiceShell> jobs;
  std::unique_ptr<PlanServiceShell> plans;
  std::unique_ptr<CheckpointServiceShell> checkpoints;
  std::unique_ptr<ClusterServiceShell> cluster;
  std::unique_ptr<SessionService> sessions;
  std::unique_ptr<grpc::Server> grpc;
};

StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  const size_t colon = options.listen.rfind(':');
  if (colon == std::string::npos)
    return InvalidArgument("--listen {} is not HOST:PORT", options.listen);
  auto parts = std::make_unique<Parts>();
  parts->host = options.listen.substr(0, colon);
  PosixFileSystem files;
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, options.data_directory));
  TROUPE_ASSIGN_OR_RETURN(parts->store, RocksDbStore::Open(options.data_directory));
  EngineOptions engine;
  engine.store = parts->store.get();
  engine.clock = &parts->clock;
  engine.metrics = &parts->metrics;
  engine.machine.limits = MakeTimeLimits(options.detection_seconds);
  engine.machine.planner = MakePlanner();
  std::error_code unknown;
  const auto catalog = std::filesystem::absolute(options.data_directory, unknown);
  if (unknown) return ErrnoStatus(unknown.value(), options.data_directory);
  engine.machine.checkpoint_folder = (catalog / "checkpoints").lexically_normal().string();
  engine.on_failure = options.on_failure;
  TROUPE_ASSIGN_OR_RETURN(parts->engine, Engine::Start(std::move(engine)));
  if (!options.metrics_listen.empty()) {
    TROUPE_ASSIGN_OR_RETURN(parts->metrics_server,
                            MetricsServer::Start(parts->metrics, options.metrics_listen));
  }
  Engine& running = *parts->engine;
  parts->data_checks = std::make_unique<SerialExecutor>(kMaxWaitingDataChecks);
  parts->jobs = std::make_unique<JobServiceShell>(running, *parts->data_checks);
  parts->plans = std::make_unique<PlanServiceShell>(running);
  parts->checkpoints = std::make_unique<CheckpointServiceShell>(running);
  parts->cluster = std::make_unique<ClusterServiceShell>(running);
  parts->sessions = std::make_unique<SessionService>(running);

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  // Two coordinators must not share a port.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &parts->port);
  builder.RegisterService(parts->jobs.get());
  builder.RegisterService(parts->plans.get());
  builder.RegisterService(parts->checkpoints.get());
  builder.RegisterService(parts->cluster.get());
  builder.RegisterService(parts->sessions.get());
  parts->grpc = builder.BuildAndStart();
  if (parts->grpc == nullptr || parts->port == 0) {
    return Unavailable(
        "cannot listen on {}: the port is taken or the address is not this machine's",
        options.listen);
  }
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() { Stop(); }

void Server::Stop() {
  if (parts_->grpc == nullptr) return;
  parts_->grpc->Shutdown(std::chrono::system_clock::now() + kShutdownLimit);
  parts_->grpc->Wait();
  parts_->grpc.reset();
  parts_->data_checks->Stop();  // it calls the engine
  parts_->engine.reset();
  parts_->store.reset();
}

std::string Server::address() const { return fmt::format("{}:{}", parts_->host, parts_->port); }
int Server::port() const { return parts_->port; }
int Server::metrics_port() const {
  return parts_->metrics_server ? parts_->metrics_server->port() : 0;
}

}  // namespace troupe
