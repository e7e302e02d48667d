#include "tests/simulation/cluster.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "actor/sim/faults.h"
#include "actor/sim/system.h"
#include "base/check.h"
#include "base/log.h"
#include "tests/simulation/catalog_observer.h"
#include "tests/simulation/client_process.h"
#include "tests/simulation/host_observer.h"
#include "tests/simulation/mishaps.h"
#include "tests/simulation/simulated_planner.h"
#include "tests/simulation/stranger_process.h"
#include "tests/simulation/verdict.h"
#include "tests/simulation/worker_process.h"
#include "tests/simulation/workload.h"
#include "tests/simulation/world.h"

namespace troupe::simulation {
namespace {

// The time for which a worker drains, in detection times.
constexpr int kDrainUnits = 4;

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options)
      : options_(options),
        mix_(options.mix ? *options.mix : DrawMix(options.seed)),
        load_(DrawWorkload(options.seed, mix_)),
        unit_(FromSeconds(load_.detection_seconds)),
        system_({.seed = options.seed}),
        world_(system_, options.seed, LimitsFor(load_.detection_seconds)),
        catalog_(world_),
        hosts_(world_, catalog_) {
    world_.natures = load_.natures;
    world_.bugs = options.worker_bugs;
    if (mix_.keep_ended.count) catalog_.EndedMayGo();
    for (const v1::JobSpec& spec : load_.specs) world_.specs[spec.name()] = spec;
    system_.OnRootEnd([this](NodeId node, std::string_view name, const Status& cause) {
      OnProcessEnd(node, cause);
    });
    AddCoordinator();
    system_.OnWrite([this](NodeId node, const WriteBatch& batch) {
      if (node == coordinator_) catalog_.OnWrite(batch);
    });
    AddWorkers();
    client_ = system_.AddNode("client", [this](NodeContext& node) {
      client_address_ = node.Spawn(
          "client", std::make_unique<ClientProcess>(world_, catalog_, node.node(), coordinator_,
                                                    load_.calls, outcomes_));
    });
    if (!mix_.stranger) return;
    stranger_ = system_.AddNode("stranger", [this](NodeContext& node) {
      node.Spawn("stranger",
                 std::make_unique<StrangerProcess>(world_, catalog_, node.node(), coordinator_));
    });
  }

  ClusterResult Run() {
    FaultInjector faults(
        system_, coordinator_, workers_,
        {.seed = options_.seed,
         .phase = unit_ * kFaultPhase,
         .mean_between = FromSeconds(ToSeconds(unit_) * mix_.mean_between),
         .min_length = unit_ / 20,
         .max_length = unit_ * mix_.longest_fault,
         .max_slowness = unit_ / 3,
         .weights = mix_.weights,
         .max_leavers = mix_.max_leavers,
         .write_prefixes = {"", "request/", "lease/", "group/", "checkpoint/", "history/"}});
    Mishaps mishaps(
        world_, catalog_, faults, coordinator_, workers_, mix_, options_.seed,
        [this](std::vector<PlannedCall> calls) {
          TROUPE_CHECK_OK(
              system_.Send(client_address_, AnyMessage(FurtherCalls{std::move(calls)})));
        },
        [this](const std::string& worker) {
          // NOT_FOUND: it is down.
          auto events = std::make_shared<std::vector<SessionEvent>>();
          events->push_back({WayToStop(), nullptr});
          system_.Send(daemons_.at(worker), AnyMessage(SessionEvents{std::move(events)}))
              .IgnoreError();
        });
    mishaps_ = &mishaps;
    Verdict verdict(world_, catalog_, mishaps, load_, outcomes_, mix_.keep_ended);
    system_.Start(coordinator_);
    system_.Start(client_);
    if (stranger_) system_.Start(*stranger_);
    for (const NodeId worker : workers_) system_.Start(worker);
    world_.faults = {.crash_per_step = mix_.crash_per_step,
                     .hang_per_step = mix_.hang_per_step,
                     .shard_failure = mix_.shard_failure,
                     .unreadable_commit = mix_.unreadable_commit};
    faults.Begin();
    mishaps.Begin(unit_ * kFaultPhase, unit_);
    bool within = RunFor(unit_ * kFaultPhase + std::chrono::milliseconds(1));
    world_.faults = {};
    mishaps.Heal();
    Duration healed{};
    const auto heal = [&] {
      while (within && !verdict.AllEnded(Devices(), Left()) && healed < unit_ * kHealLimit) {
        within = RunFor(unit_ / 4);
        healed += unit_ / 4;
      }
    };
    heal();
    // Devices are released and deletions are done only after the last end. A worker that comes back
    // meanwhile may have ranks for which the removal of an ended job waited; the coordinator looks
    // for such jobs once a minute.
    if (within) within = RunFor(unit_ * 3);
    heal();
    const bool ended = within && verdict.AllEnded(Devices(), Left());
    world_.truth.Check(within, 16,
                       fmt::format("not all jobs ended within {} events", options_.max_events));
    world_.truth.Check(
        !within || ended, 16,
        fmt::format("not all jobs ended within {:.0f} s of healing", ToSeconds(healed)));
    if (ended) verdict.Judge(Left());
    return Result(faults, healed);
  }

 private:
  SessionWhat WayToStop() const {
    if (!mix_.drains) return session::Leave{};
    return session::Drain{"SIGTERM", std::chrono::seconds(2) + unit_ * kDrainUnits};
  }

  void AddCoordinator() {
    coordinator_ = system_.AddNode("coordinator", [this](NodeContext& node) {
      CoordinatorOptions options;
      options.limits = world_.limits;
      options.planner = MakeSimulatedPlanner();
      options.keep_ended = mix_.keep_ended;
      if (mix_.quotas) options.namespaces = QuotaFor(load_);
      options.bugs = options_.machine_bugs;
      const Address watchers = node.Spawn("watchers", std::make_unique<WatchFanout>());
      node.Spawn(
          "coordinator",
          std::make_unique<CoordinatorProcess>(world_, catalog_, hosts_, node.node(), node.store(),
                                               watchers, std::move(options), options_.shell_bugs),
          {.mailbox_capacity = 4096});
    });
  }

  void AddWorkers() {
    SeededRandom random(options_.seed, "workers");
    for (int i = 0; i < mix_.workers; ++i) {
      const std::string name = fmt::format("worker-{}", i);
      constexpr int kDevices[] = {1, 1, 2, 4};
      const int drawn = kDevices[random.Below(4)];
      // In a small cluster every host has the same number of devices.
      devices_.push_back(mix_.workers < 20 ? 2 : drawn);
      workers_.push_back(
          system_.AddNode(name, [this, name, devices = devices_.back()](NodeContext& node) {
            daemons_[name] =
                node.Spawn("worker",
                           std::make_unique<WorkerProcess>(world_, node.node(), node.store(), name,
                                                           devices, coordinator_),
                           {.mailbox_capacity = kSessionCapacity});
          }));
    }
  }

  // Number of devices of the workers that are up.
  int Devices() const {
    int devices = 0;
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (system_.IsUp(workers_[i])) devices += devices_[i];
    }
    return devices;
  }

  // Workers that never return, after all faults are healed.
  std::set<std::string> Left() const {
    std::set<std::string> left;
    for (const NodeId worker : workers_) {
      if (!system_.IsUp(worker)) left.insert(system_.NodeName(worker));
    }
    return left;
  }

  // A supervisor restarts a process that ends by itself, as after a crash. Only daemons may end:
  // those that were asked to stop, and those that have followed a coordinator with a lost catalog.
  void OnProcessEnd(NodeId node, const Status& cause) {
    if (!system_.IsUp(node)) return;
    world_.truth.Check(
        cause.ok() || (mishaps_->lost_catalog() && node != coordinator_), 16,
        fmt::format("{} ended by itself: {}", system_.NodeName(node), ToString(cause)));
    system_.Crash(node, CrashKind::kProcess);
    system_.Schedule(std::chrono::seconds(1), [this, node] { system_.Start(node); });
  }

  bool RunFor(Duration time) {
    const uint64_t done = system_.trace().events();
    if (done >= options_.max_events) return false;
    return system_.RunFor(time, options_.max_events - done);
  }

  ClusterResult Result(const FaultInjector& faults, Duration healed) {
    ClusterResult result;
    result.seed = options_.seed;
    result.hash = system_.trace().hash();
    result.events = system_.trace().events();
    result.virtual_seconds = ToSeconds(system_.Now().time_since_epoch());
    result.heal_seconds = ToSeconds(healed);
    result.steps_applied = world_.steps_applied;
    result.commits = catalog_.commits();
    result.deletions = catalog_.deletions();
    result.history_rows = catalog_.history_rows();
    result.coordinator_starts = system_.Boots(coordinator_);
    result.violations = world_.truth.violations();
    result.faults = faults.log();
    result.shrinks = hosts_.shrinks();
    result.growths = hosts_.growths();
    result.strikes = hosts_.strikes();
    result.blamed_hangs = hosts_.blamed_hangs();
    result.goodbyes = hosts_.goodbyes();
    for (const auto& [id, job] : catalog_.jobs()) {
      const int64_t budget = catalog_.submitted(id).fault_tolerance().max_restarts();
      const bool ended_well = job.state() == v1::JOB_STATE_SUCCEEDED;
      result.saved_by_budget += ended_well && job.restarts() > budget;
    }
    result.lost_mounts = world_.lost_mounts.size();
    for (const auto& [id, job] : catalog_.jobs()) {
      result.refused_folders += job.failure().cause() == "STORAGE";
    }
    result.resumed = catalog_.resumed();
    result.rebuilt = mishaps_->rebuilt().size();
    result.lies = world_.lies;
    for (size_t i = 0; i < load_.calls.size() && i < outcomes_.size(); ++i) {
      result.refused_alterations += load_.calls[i].kind == CallKind::kAlteredJob &&
                                    outcomes_[i].code == StatusCode::kAlreadyExists;
    }
    result.deleted_jobs = catalog_.deleted_jobs();
    result.clocks_set_back = world_.clocks_set_back;
    result.reports_during_saves = world_.reports_during_saves;
    result.hung_saves = world_.hung_saves;
    result.waiting_saves = world_.waiting_saves;
    result.images = catalog_.images();
    result.quota_waits = catalog_.quota_waits();
    for (const NodeId worker : workers_) result.left += !system_.IsUp(worker);
    for (const auto& [id, job] : catalog_.jobs()) result.restarts += job.restarts();
    for (const auto& [id, job] : catalog_.jobs())
      result.moves += static_cast<uint64_t>(job.moves());
    if (!result.ok()) result.story = Story(result);
    return result;
  }

  std::string Story(const ClusterResult& result) {
    std::string story =
        fmt::format("seed {}: {} events, {:.1f} s, detection {} s; {}\n", result.seed,
                    result.events, result.virtual_seconds, load_.detection_seconds, mix_.Text());
    for (const Violation& violation : result.violations) {
      story += fmt::format("  broken ({}): {}\n", violation.invariant, violation.what);
    }
    for (const auto& [id, job] : catalog_.jobs()) {
      story += fmt::format("  job {}: {} step {} of {} epoch {} restarts {} {}\n", id,
                           v1::JobState_Name(job.state()), job.step(),
                           catalog_.specs().at(id).training().steps(), job.group_epoch(),
                           job.restarts(), job.failure().ShortDebugString());
    }
    for (size_t i = 0; i < load_.calls.size() && i < outcomes_.size(); ++i) {
      story += fmt::format(
          "  call {} {}: {}\n", static_cast<char>(load_.calls[i].kind), load_.calls[i].job,
          outcomes_[i].answered ? fmt::format("code {}", static_cast<int>(outcomes_[i].code))
                                : "not answered");
    }
    for (const std::string& fault : result.faults) story += "  fault " + fault + "\n";
    return story;
  }

  const ClusterOptions options_;
  const Mix mix_;
  const Workload load_;
  const Duration unit_;
  SimulatedSystem system_;
  World world_;
  CatalogObserver catalog_;
  HostObserver hosts_;
  std::vector<CallOutcome> outcomes_;
  NodeId coordinator_;
  NodeId client_;
  Address client_address_;
  std::optional<NodeId> stranger_;
  std::vector<NodeId> workers_;
  std::map<std::string, Address> daemons_;  // by worker: the actor of its newest life
  std::vector<int> devices_;                // by worker
  const Mishaps* mishaps_ = nullptr;
};

}  // namespace

ClusterResult RunCluster(const ClusterOptions& options) {
  SetLogLevel(LogLevel::kNone);  // the product's actors log what their jobs and faults do
  return Cluster(options).Run();
}

}  // namespace troupe::simulation
