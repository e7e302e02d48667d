// Measures the control path of a worker daemon: from a coordinator's message to the socket of a
// rank process, and from a rank's report back to the coordinator. Prints one JSON line per case.
//
// The program is all three: the coordinator, a server in this process; the daemon, on the main
// thread; and, started again by the daemon, a rank process that answers each ticket with a report.
//
//   one: one ticket in flight; microseconds of each direction.
//   window: W tickets in flight; round trips per second.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/flag_parser.h"
#include "base/temporary_directory.h"
#include "troupe/v1/service.grpc.pb.h"
#include "worker/daemon/daemon.h"
#include "worker/rank/frame.h"
#include "worker/rank/rank_process.h"

namespace troupe {
namespace {

constexpr char kJob[] = "jobs/bench";
constexpr int kWarmUp = 300;
constexpr int kSamples = 3000;
constexpr int kWindow = 32;
constexpr int kWindowMessages = 20'000;
// Steps after which the daemon may forget their reports.
constexpr int kDurableSteps = 256;

// Seconds on the host's monotonic clock, which all processes share.
double NowSeconds() { return ToSeconds(SystemClock().Now().time_since_epoch()); }

// Answers each ticket with the report of its last step, which carries the time at which the ticket
// arrived.
int RunEchoRank(const RankDescriptors& descriptors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  FrameSocket socket(descriptors.socket);
  v1::RankReport idle;
  idle.mutable_idle();
  if (!socket.Send(idle).ok()) return 1;
  while (true) {
    const auto frame = socket.Receive(-1);
    if (!frame.ok()) return 0;
    v1::RankCommand command;
    if (!*frame || !command.ParseFromString(**frame) || !command.coordinator().has_ticket())
      continue;
    const double arrived = NowSeconds();
    const v1::Ticket& ticket = command.coordinator().ticket();
    v1::RankReport report;
    v1::StepReport& step = *report.mutable_worker()->mutable_step_report();
    step.set_job(ticket.job());
    step.set_group_epoch(ticket.group_epoch());
    step.set_step(ticket.end_step());
    step.set_step_seconds(arrived);
    // As a rank sends the report of a step.
    if (!socket.Send(report, FrameTexts::kUtf8).ok()) return 0;
  }
}

double Quantile(std::vector<double>& values, double part) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

class BenchCoordinator final : public v1::WorkerService::Service {
  using Stream = grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>;

  grpc::Status Session(grpc::ServerContext*, Stream* stream) override {
    stream_ = stream;
    v1::WorkerMessage hello;
    TROUPE_CHECK(stream->Read(&hello) && hello.has_hello(), "no hello");
    v1::CoordinatorMessage welcome = Message();
    welcome.mutable_welcome()->set_leader_epoch(1);
    welcome.mutable_welcome()->set_lease_seconds(60);
    stream->Write(welcome);
    v1::CoordinatorMessage start = Message();
    start.mutable_start_ranks()->set_job(kJob);
    start.mutable_start_ranks()->set_group_epoch(1);
    start.mutable_start_ranks()->mutable_plan()->add_ranks();
    start.mutable_start_ranks()->add_ranks(0);
    stream->Write(start);
    MeasureOne();
    MeasureWindow();
    kill(getpid(), SIGTERM);
    return grpc::Status::OK;
  }

  static v1::CoordinatorMessage Message() {
    v1::CoordinatorMessage message;
    message.set_leader_epoch(1);
    return message;
  }

  void SendTicket() {
    v1::CoordinatorMessage message = Message();
    message.mutable_ticket()->set_job(kJob);
    message.mutable_ticket()->set_group_epoch(1);
    message.mutable_ticket()->set_end_step(++step_);
    stream_->Write(message);
    if (step_ % kDurableSteps != 0) return;
    v1::CoordinatorMessage durable = Message();
    durable.mutable_reports_durable()->set_job(kJob);
    durable.mutable_reports_durable()->set_group_epoch(1);
    durable.mutable_reports_durable()->set_step(step_ - kDurableSteps);
    stream_->Write(durable);
  }

  v1::StepReport AwaitReport() {
    v1::WorkerMessage message;
    while (stream_->Read(&message)) {
      if (message.has_step_report()) return message.step_report();
    }
    TROUPE_CHECK(false, "the daemon's stream ended");
    return {};
  }

  // Tickets are forwarded only to a rank that has begun: they are repeated until then. The daemon
  // itself answers a request for the trace of a rank that it does not have.
  void AwaitRank() {
    v1::WorkerMessage answer;
    do {
      SendTicket();
      v1::CoordinatorMessage trace = Message();
      trace.mutable_trace_request()->set_job("jobs/none");
      trace.mutable_trace_request()->add_ranks(0);
      stream_->Write(trace);
      TROUPE_CHECK(stream_->Read(&answer), "the daemon's stream ended");
    } while (!answer.has_step_report());
    for (int64_t step = answer.step_report().step(); step < step_;) step = AwaitReport().step();
  }

  void MeasureOne() {
    AwaitRank();
    std::vector<double> to_rank, to_coordinator;
    for (int i = 0; i < kWarmUp + kSamples; ++i) {
      const double sent = NowSeconds();
      SendTicket();
      const double arrived = AwaitReport().step_seconds();
      const double back = NowSeconds();
      if (i < kWarmUp) continue;
      to_rank.push_back((arrived - sent) * 1e6);
      to_coordinator.push_back((back - arrived) * 1e6);
    }
    fmt::print(
        "{{\"bench\": \"daemon\", \"case\": \"one\", \"samples\": {}, \"to_rank_us\": "
        "{:.1f}, \"to_rank_p99_us\": {:.1f}, \"to_coordinator_us\": {:.1f}, "
        "\"to_coordinator_p99_us\": {:.1f}}}\n",
        kSamples, Quantile(to_rank, 0.5), Quantile(to_rank, 0.99), Quantile(to_coordinator, 0.5),
        Quantile(to_coordinator, 0.99));
  }

  void MeasureWindow() {
    const double begin = NowSeconds();
    for (int i = 0; i < kWindow; ++i) SendTicket();
    for (int i = 0; i < kWindowMessages; ++i) {
      AwaitReport();
      if (i + kWindow < kWindowMessages) SendTicket();
    }
    const double seconds = NowSeconds() - begin;
    fmt::print(
        "{{\"bench\": \"daemon\", \"case\": \"window\", \"in_flight\": {}, \"messages\": "
        "{}, \"round_trips_per_second\": {:.0f}}}\n",
        kWindow, kWindowMessages, kWindowMessages / seconds);
  }

  Stream* stream_ = nullptr;
  int64_t step_ = 0;
};

int RunBench() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const TemporaryDirectory folder;
  BenchCoordinator coordinator;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&coordinator);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  TROUPE_CHECK(server != nullptr && port != 0, "the server cannot be started");
  DaemonOptions options{.coordinator = fmt::format("127.0.0.1:{}", port),
                        .executable = "/proc/self/exe"};
  options.session.log_directory = folder.path();
  options.session.identity.set_name("worker-0");
  options.session.identity.add_devices();
  const StatusOr<int> code = RunDaemon(std::move(options));
  TROUPE_CHECK_OK(code.status());
  server->Shutdown();
  return *code;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  std::optional<troupe::RankDescriptors> rank;
  troupe::FlagParser parser({.name = "troupe-bench-daemon",
                             .usage = "troupe-bench-daemon",
                             .summary = "Measures the latency between a coordinator and a rank "
                                        "process through their daemon; prints JSON lines."});
  parser.AddParsed({"--rank-process", "SOCKET,PROGRESS"},
                   [&rank](const std::string& value) -> troupe::Status {
                     TROUPE_ASSIGN_OR_RETURN(rank, troupe::ParseRankDescriptors(value));
                     return troupe::OkStatus();
                   });
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  return rank ? troupe::RunEchoRank(*rank) : troupe::RunBench();
}
