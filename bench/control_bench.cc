// Measures the latency of the coordinator's control path without gRPC and disk: callers wait for
// round trips through the engine's actor over a store in memory. Prints one JSON line per case.
//
//   query: reads the state.
//   create_job: creates a job, which is durable before the reply; the job is then cancelled.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "actor/system.h"
#include "base/check.h"
#include "base/flag_parser.h"
#include "base/log.h"
#include "base/metrics/metrics.h"
#include "base/store/memory_store.h"
#include "coordinator/engine/engine.h"
#include "coordinator/service/measure.h"
#include "coordinator/unplaced_planner.h"

namespace troupe {
namespace {

// As many as the coordinator has.
constexpr int kActorThreads = 6;
constexpr int kWarmup = 200;

class Coordinator {
 public:
  Coordinator() {
    StatusOr<Address> metrics = actors_.Spawn("metrics", std::make_unique<MetricsActor>(metrics_),
                                              {.mailbox_capacity = kMostWaitingMeasured});
    TROUPE_CHECK_OK(metrics.status());
    EngineOptions options{
        .system = &actors_, .store = &store_, .clock = &clock_, .metrics = *metrics};
    options.machine.planner = MakeUnplacedPlanner();
    options.machine.keep_ended.count = 16;
    StatusOr<std::unique_ptr<Engine>> engine = Engine::Start(std::move(options));
    TROUPE_CHECK_OK(engine.status());
    engine_ = *std::move(engine);
  }

  void Query() {
    std::promise<size_t> jobs;
    TROUPE_CHECK_OK(
        engine_->Query([&](const CoordinatorState& state) { jobs.set_value(state.jobs.size()); }));
    jobs.get_future().get();
  }
  void CreateJob(const std::string& name) {
    CreateJobCall call;
    call.request.mutable_job()->set_name(name);
    call.request.mutable_job()->mutable_checkpoint()->set_folder("");
    Call(std::move(call));
  }
  void CancelJob(const std::string& name) {
    CancelJobCall call;
    call.request.set_name(name);
    Call(std::move(call));
  }

 private:
  template <typename What>
  void Call(What what) {
    std::promise<Status> done;
    engine_->Call(
        [&](CallId id) {
          what.call = id;
          return decltype(Event::what)(std::move(what));
        },
        [&](const Reply& reply) { done.set_value(reply.status); });
    TROUPE_CHECK_OK(done.get_future().get());
  }

  SystemClock clock_;
  MemoryStore store_;
  Metrics metrics_;
  std::unique_ptr<Engine> engine_;
  // Destroyed first: the actors use the others.
  ActorSystem actors_{clock_, {.threads = kActorThreads, .max_actors = 16}};
};

// Lets `callers` threads make `rounds` round trips each. `round` returns the seconds of one.
template <typename Round>
void Measure(std::string_view name, int callers, int rounds, const Round& round) {
  std::vector<std::vector<double>> seconds(callers);
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      for (int i = 0; i < kWarmup + rounds; ++i) {
        const double taken = round(caller, i);
        if (i >= kWarmup) seconds[caller].push_back(taken);
      }
    });
  }
  std::vector<double> all;
  for (int caller = 0; caller < callers; ++caller) {
    threads[caller].join();
    all.insert(all.end(), seconds[caller].begin(), seconds[caller].end());
  }
  std::sort(all.begin(), all.end());
  fmt::print(
      "{{\"bench\": \"control\", \"case\": \"{}\", \"callers\": {}, \"rounds\": {}, "
      "\"p50_us\": {:.1f}, \"p99_us\": {:.1f}}}\n",
      name, callers, all.size(), all[all.size() / 2] * 1e6, all[all.size() * 99 / 100] * 1e6);
}

template <typename Action>
double SecondsOf(const Action& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void MeasureAll(int callers, int rounds) {
  Coordinator coordinator;
  Measure("query", callers, rounds,
          [&](int, int) { return SecondsOf([&] { coordinator.Query(); }); });
  Measure("create_job", callers, rounds / 5, [&](int caller, int i) {
    const std::string name = fmt::format("job-{}-{}", caller, i);
    const double seconds = SecondsOf([&] { coordinator.CreateJob(name); });
    coordinator.CancelJob(name);
    return seconds;
  });
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::FlagParser parser({.name = "troupe-bench-control",
                             .usage = "troupe-bench-control",
                             .summary =
                                 "Measures the latency of calls to the coordinator's engine; "
                                 "prints JSON lines."});
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  troupe::SetLogLevel(troupe::LogLevel::kError);  // events of jobs are logged
  for (const int callers : {1, 4}) troupe::MeasureAll(callers, 20'000 / callers);
  return 0;
}
