#include "tests/simulation/cluster.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "actor/sim/faults.h"
#include "actor/sim/system.h"
#include "tests/simulation/catalog_observer.h"
#include "tests/simulation/client_process.h"
#include "tests/simulation/simulated_planner.h"
#include "tests/simulation/worker_process.h"
#include "tests/simulation/world.h"

namespace troupe::simulation {
namespace {

// The lengths of a run in units of the detection time, so that every run has as many heartbeats.
constexpr int kFaultPhase = 10;
constexpr int kHealLimit = 60;

struct Workload {
  double detection_seconds = 3;
  std::vector<v1::JobSpec> specs;
  std::map<std::string, JobNature> natures;
  std::vector<PlannedCall> calls;
};

// The cluster's limits, but for those that wait out what is rarely wrong: with the product's a run
// would be heartbeats for the most part.
TimeLimits LimitsFor(double detection_seconds) {
  TimeLimits limits = MakeTimeLimits(detection_seconds);
  const Duration unit = FromSeconds(detection_seconds);
  limits.startup_allowance = unit * 4;
  limits.start = unit * 8;
  limits.checkpoint_attempt = unit * 8;
  return limits;
}

bool HasFolder(const v1::JobSpec& spec) { return !spec.checkpoint().folder().empty(); }

// What this seed's users want.
Workload DrawWorkload(uint64_t seed) {
  SeededRandom random(seed, "workload");
  Workload load;
  constexpr double kDetectionSeconds[] = {2, 4, 8};
  load.detection_seconds = kDetectionSeconds[random.Below(3)];
  const Duration unit = FromSeconds(load.detection_seconds);
  const int jobs = 2 + static_cast<int>(random.Below(4));
  for (int i = 0; i < jobs; ++i) {
    v1::JobSpec spec;
    const bool crashes = i > 0 && random.Chance(0.1);
    const std::string name = fmt::format("{}-{}", crashes ? "crasher" : "job", i);
    spec.set_name(name);
    spec.mutable_training()->set_steps(10 + static_cast<int64_t>(random.Below(21)));
    spec.mutable_training()->set_seed(random.Bits());
    spec.mutable_training()->set_global_batch_size(kSlots);
    spec.mutable_training()->set_on_nonfinite("fail");
    auto& axes = *spec.mutable_parallelism();
    axes.set_pipeline_parallel_degree(int64_t{1} << random.Below(3));
    axes.set_tensor_parallel_degree(int64_t{1} << random.Below(3));
    axes.set_data_parallel_replicate_degree(int64_t{1} << random.Below(2));
    if (i == 0 || random.Chance(0.85)) {
      spec.mutable_checkpoint()->set_folder("/shared");
      spec.mutable_checkpoint()->set_interval(static_cast<int64_t>(random.Below(3)) * 4);
      spec.mutable_checkpoint()->set_keep_latest_k(2 + static_cast<int64_t>(random.Below(2)));
    }
    spec.mutable_fault_tolerance()->set_max_restarts(crashes ? 3 : 1'000'000);
    spec.mutable_fault_tolerance()->set_hang_seconds(load.detection_seconds);
    spec.mutable_fault_tolerance()->set_allow_layout_change(false);
    // A job alone and undisturbed takes a third to all of the fault phase.
    const Duration whole = random.Between(unit * kFaultPhase / 3, unit * kFaultPhase);
    load.natures[name] = {.seed = spec.training().seed(),
                          .step_time = whole / spec.training().steps(),
                          .crash_at_step = crashes ? 2 + static_cast<int64_t>(random.Below(5)) : 0};

    v1::CreateJobRequest create;
    *create.mutable_job() = spec;
    create.set_request_id(fmt::format("request-{}", i));
    const Duration at = random.Between(Duration(0), unit * kFaultPhase / 2);
    load.calls.push_back(
        {at, CallKind::kCreateJob, name, create.request_id(), create.SerializeAsString()});
    if (!crashes && random.Chance(0.2)) {
      v1::CancelJobRequest cancel;
      cancel.set_name("jobs/" + name);
      cancel.set_checkpoint(HasFolder(spec) && random.Chance(0.5));
      load.calls.push_back({at + random.Between(Duration(0), unit * kFaultPhase),
                            CallKind::kCancelJob, name, "", cancel.SerializeAsString()});
    }
    if (HasFolder(spec) && random.Chance(0.5)) {
      v1::CreateCheckpointRequest ask;
      ask.set_job("jobs/" + name);
      load.calls.push_back({at + random.Between(Duration(0), unit * kFaultPhase),
                            CallKind::kCreateCheckpoint, name, "", ask.SerializeAsString()});
    }
    // Of a stream of their own, so that they change nothing else of a seed.
    SeededRandom pins(seed, "pins of " + name);
    for (int pin = 0; HasFolder(spec) && pin < 4; ++pin) {
      v1::PinCheckpointRequest keep;
      keep.set_job("jobs/" + name);
      keep.set_step(4 * (1 + static_cast<int64_t>(pins.Below(4))));
      keep.set_pinned(pins.Chance(0.7));
      load.calls.push_back({at + pins.Between(Duration(0), unit * kFaultPhase),
                            CallKind::kPinCheckpoint, name, "", keep.SerializeAsString()});
    }
    load.specs.push_back(std::move(spec));
  }
  return load;
}

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options)
      : options_(options),
        load_(DrawWorkload(options.seed)),
        unit_(FromSeconds(load_.detection_seconds)),
        system_({.seed = options.seed}),
        world_(system_, options.seed, LimitsFor(load_.detection_seconds)),
        observer_(world_),
        outcomes_(load_.calls.size()) {
    world_.natures = load_.natures;
    system_.OnWrite([this](NodeId, const WriteBatch& batch) { observer_.OnWrite(batch); });
    system_.OnRootEnd([this](NodeId node, std::string_view name, const Status& cause) {
      OnProcessEnd(node, cause);
    });
    AddCoordinator();
    AddWorkers();
    client_ = system_.AddNode("client", [this](NodeContext& node) {
      node.Spawn("client", std::make_unique<ClientProcess>(world_, observer_, node.node(),
                                                           coordinator_, load_.calls, outcomes_));
    });
  }

  ClusterResult Run() {
    FaultInjector faults(
        system_, coordinator_, workers_,
        {.seed = options_.seed,
         .phase = unit_ * kFaultPhase,
         .mean_between = unit_ / 2,
         .min_length = unit_ / 20,
         .max_length = unit_ * 3,
         .max_slowness = unit_ / 3,
         .write_prefixes = {"", "request/", "lease/", "group/", "checkpoint/", "history/"}});
    system_.Start(coordinator_);
    system_.Start(client_);
    for (const NodeId worker : workers_) system_.Start(worker);
    world_.faults = {.crash_per_step = 0.001,
                     .hang_per_step = 0.0002,
                     .shard_failure = 0.01,
                     .unreadable_commit = 0.05};
    faults.Begin();
    ScheduleCorruption();
    bool within = RunFor(unit_ * kFaultPhase + std::chrono::milliseconds(1));
    world_.faults = {};
    Duration healed{};
    while (within && !AllEnded() && healed < unit_ * kHealLimit) {
      within = RunFor(unit_ / 4);
      healed += unit_ / 4;
    }
    // Devices come free and deletions are done after the last end.
    if (within) within = RunFor(unit_ * 3);
    Judge(within, healed);
    return Result(faults, healed);
  }

 private:
  void AddCoordinator() {
    coordinator_ = system_.AddNode("coordinator", [this](NodeContext& node) {
      CoordinatorOptions options;
      options.limits = world_.limits;
      options.planner = MakeSimulatedPlanner();
      options.bugs = options_.machine_bugs;
      node.Spawn("coordinator",
                 std::make_unique<CoordinatorProcess>(world_, observer_, node.node(), node.store(),
                                                      std::move(options), options_.shell_bugs),
                 {.mailbox_capacity = 4096});
    });
  }

  void AddWorkers() {
    SeededRandom random(options_.seed, "workers");
    for (int i = 0; i < options_.workers; ++i) {
      const std::string name = fmt::format("worker-{}", i);
      constexpr int kDevices[] = {1, 1, 2, 4};
      const int devices = kDevices[random.Below(4)];
      workers_.push_back(system_.AddNode(name, [this, name, devices](NodeContext& node) {
        node.Spawn(
            "worker",
            std::make_unique<WorkerProcess>(world_, node.node(), name, devices, coordinator_),
            {.mailbox_capacity = 4096});
      }));
    }
  }

  // A process that ends by itself is started again by its supervisor, as after a crash.
  void OnProcessEnd(NodeId node, const Status& cause) {
    if (system_.IsUp(node)) {
      world_.truth.Violate(16, "{} ended by itself: {}", system_.NodeName(node), ToString(cause));
      system_.Crash(node, CrashKind::kProcess);
      system_.Schedule(std::chrono::seconds(1), [this, node] { system_.Start(node); });
    }
  }

  // A committed shard goes bad on the disk, once in some runs.
  void ScheduleCorruption() {
    if (!world_.random.Chance(0.3)) return;
    system_.Schedule(world_.random.Between(unit_, unit_ * kFaultPhase), [this] {
      const v1::CheckpointRecord* const commit = observer_.AnyCommit(world_.random);
      if (commit != nullptr) world_.storage.Corrupt(commit->path());
    });
  }

  bool RunFor(Duration time) {
    const uint64_t done = system_.trace().events();
    if (done >= options_.max_events) return false;
    return system_.RunFor(time, options_.max_events - done);
  }

  bool AllEnded() const {
    for (const CallOutcome& outcome : outcomes_) {
      if (!outcome.answered) return false;
    }
    for (const v1::JobSpec& spec : load_.specs) {
      const auto job = observer_.jobs().find(spec.name());
      if (job == observer_.jobs().end()) return false;
      const v1::JobState state = job->second.state();
      if (state != v1::JOB_STATE_SUCCEEDED && state != v1::JOB_STATE_FAILED &&
          state != v1::JOB_STATE_CANCELLED) {
        return false;
      }
    }
    return true;
  }

  void Judge(bool within, Duration healed) {
    Truth& truth = world_.truth;
    truth.Check(within, 16,
                fmt::format("not all jobs ended within {} events", options_.max_events));
    if (!within) return;
    truth.Check(AllEnded(), 16,
                fmt::format("not all jobs ended within {:.0f} s of healing", ToSeconds(healed)));
    if (!AllEnded()) return;
    for (const v1::JobSpec& spec : load_.specs) {
      const v1::JobRecord& job = observer_.jobs().at(spec.name());
      const bool crashes = load_.natures.at(spec.name()).crash_at_step != 0;
      // A job whose only commit went bad on the disk must not begin again from its seed. That it
      // had none left, and that what is quarantined is bad, is checked where it is restored and
      // here.
      const bool lost = job.failure().cause() == "NO_RESTORABLE_CHECKPOINT";
      if (lost) {
        truth.Check(observer_.Head(spec.name()) == nullptr, 11,
                    spec.name() + " ended without a restorable commit, and has one");
      }
      truth.Check((job.state() == v1::JOB_STATE_FAILED) == (crashes || lost), 16,
                  fmt::format("{} is {}: {} {}", spec.name(), v1::JobState_Name(job.state()),
                              job.failure().cause(), job.failure().message()));
      if (job.state() == v1::JOB_STATE_SUCCEEDED && HasFolder(spec)) {
        const v1::CheckpointRecord* const head = observer_.Head(spec.name());
        const int64_t steps = spec.training().steps();
        truth.Check((head != nullptr && head->step() == steps) ||
                        observer_.HasQuarantined(spec.name(), steps),
                    11,
                    fmt::format("{} succeeded with its head at step {} of {}", spec.name(),
                                head == nullptr ? -1 : head->step(), steps));
      }
      const v1::CheckpointRecord* const head = observer_.Head(spec.name());
      if (head != nullptr && !world_.storage.IsCorrupt(head->path())) {
        const StatusOr<Restored> restored = world_.storage.Read(head->path(), head->digest());
        truth.Check(restored.ok(), 11,
                    fmt::format("{}: the head: {}", spec.name(), ToString(restored.status())));
      }
    }
    truth.Check(observer_.leases().empty(), 16,
                fmt::format("{} devices are still leased after every job ended",
                            observer_.leases().size()));
  }

  ClusterResult Result(const FaultInjector& faults, Duration healed) {
    ClusterResult result;
    result.seed = options_.seed;
    result.hash = system_.trace().hash();
    result.events = system_.trace().events();
    result.virtual_seconds = ToSeconds(system_.Now().time_since_epoch());
    result.heal_seconds = ToSeconds(healed);
    result.steps_applied = world_.steps_applied;
    result.commits = observer_.commits();
    result.deletions = observer_.deletions();
    result.history_rows = observer_.history_rows();
    result.coordinator_starts = system_.Boots(coordinator_);
    result.violations = world_.truth.violations();
    result.faults = faults.log();
    for (const auto& [id, job] : observer_.jobs()) result.restarts += job.restarts();
    if (!result.ok()) result.story = Story(result);
    return result;
  }

  std::string Story(const ClusterResult& result) {
    std::string story = fmt::format("seed {}: {} events, {:.1f} s, detection {} s\n", result.seed,
                                    result.events, result.virtual_seconds, load_.detection_seconds);
    for (const Violation& violation : result.violations) {
      story += fmt::format("  broken ({}): {}\n", violation.invariant, violation.what);
    }
    for (const auto& [id, job] : observer_.jobs()) {
      story += fmt::format("  job {}: {} step {} of {} epoch {} restarts {} {}\n", id,
                           v1::JobState_Name(job.state()), job.step(),
                           observer_.specs().at(id).training().steps(), job.group_epoch(),
                           job.restarts(), job.failure().ShortDebugString());
    }
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      story += fmt::format(
          "  call {} {}: {}\n", static_cast<char>(load_.calls[i].kind), load_.calls[i].job,
          outcomes_[i].answered ? fmt::format("code {}", static_cast<int>(outcomes_[i].code))
                                : "not answered");
    }
    for (const std::string& fault : result.faults) story += "  fault " + fault + "\n";
    return story;
  }

  const ClusterOptions options_;
  const Workload load_;
  const Duration unit_;
  SimulatedSystem system_;
  World world_;
  CatalogObserver observer_;
  std::vector<CallOutcome> outcomes_;
  NodeId coordinator_;
  NodeId client_;
  std::vector<NodeId> workers_;
};

}  // namespace

ClusterResult RunCluster(const ClusterOptions& options) { return Cluster(options).Run(); }

}  // namespace troupe::simulation
