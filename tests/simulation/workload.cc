#include "tests/simulation/workload.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "actor/sim/random.h"
#include "base/check.h"
#include "plan/job/job_rules.h"
#include "tests/simulation/truth.h"
#include "troupe/v1/service.pb.h"

namespace troupe::simulation {
namespace {

constexpr int64_t kUsualRestarts = 5;  // the default of fault_tolerance.max_restarts

// One job, and what is asked about it.
class JobDraw {
 public:
  JobDraw(uint64_t seed, int number, const Mix& mix, SeededRandom& random, Workload& load)
      : seed_(seed),
        number_(number),
        mix_(mix),
        random_(random),
        load_(load),
        unit_(FromSeconds(load.detection_seconds)),
        crashes_(number > 0 && random.Chance(0.1)),
        name_(fmt::format("{}-{}", crashes_ ? "crasher" : "job", number)),
        request_id_(fmt::format("request-{}", number)),
        // Further traits have a random stream of their own, so that a trait changes nothing else of
        // a seed.
        traits_(seed, "traits of " + name_),
        at_(random.Between(Duration(0), unit_ * kFaultPhase / 2)) {}

  void Draw() {
    DrawTraining();
    DrawCheckpoints();
    DrawTolerance();
    AskForJob();
    AskForCheckpoints();
    AskForEnd();
    AskForDeletion();
    load_.specs.push_back(std::move(spec_));
  }

 private:
  void DrawTraining() {
    spec_.set_name(name_);
    spec_.mutable_training()->set_steps(10 + static_cast<int64_t>(random_.Below(21)));
    spec_.mutable_training()->set_seed(random_.Bits());
    spec_.mutable_training()->set_global_batch_size(kSlots);
    spec_.mutable_training()->set_on_nonfinite("fail");
    auto& axes = *spec_.mutable_parallelism();
    const uint64_t degrees = mix_.workers < 20 ? 2 : 3;
    axes.set_pipeline_parallel_degree(int64_t{1} << random_.Below(degrees));
    axes.set_tensor_parallel_degree(int64_t{1} << random_.Below(degrees));
    axes.set_data_parallel_replicate_degree(int64_t{1} << random_.Below(2));
    if (mix_.layout_changes) axes.set_data_parallel_replicate_degree(2 << traits_.Below(2));
    // Undisturbed and alone, a job takes a third to all of the fault phase.
    const Duration whole = random_.Between(unit_ * kFaultPhase / 3, unit_ * kFaultPhase);
    load_.natures[name_] = {
        .seed = spec_.training().seed(),
        .step_time = whole / spec_.training().steps(),
        .longest_save = std::max<Duration>(std::chrono::milliseconds(500),
                                           whole / spec_.training().steps() * 6),
        .crash_at_step = crashes_ ? 2 + static_cast<int64_t>(random_.Below(5)) : 0};
    // One save is in time for its attempt, and two in turn often are not.
    if (mix_.slow_saves) load_.natures[name_].longest_save = unit_ * 5;
  }

  void DrawCheckpoints() {
    auto& checkpoint = *spec_.mutable_checkpoint();
    if (number_ > 0 && random_.Chance(0.15)) return;
    checkpoint.set_folder(kSharedFolder);
    checkpoint.set_interval(static_cast<int64_t>(random_.Below(3)) * 4);
    checkpoint.set_keep_latest_k(2 + static_cast<int64_t>(random_.Below(2)));
    checkpoint.set_final_save_seconds((mix_.short_final_saves ? 1 : kFinalSave) *
                                      load_.detection_seconds);
    checkpoint.set_async_mode(traits_.Chance(0.6) ? "async" : "disabled");
    if (mix_.private_folders && !crashes_ && traits_.Chance(0.5)) {
      checkpoint.set_folder(kPrivateFolder);
      if (checkpoint.interval() == 0) checkpoint.set_interval(4);
    }
  }

  void DrawTolerance() {
    auto& tolerance = *spec_.mutable_fault_tolerance();
    tolerance.set_max_restarts(crashes_ ? 3 : 1'000'000);
    // Each job is the victim of a bad host a few times at most.
    const bool only_hosts = mix_.crash_per_step == 0 && mix_.hang_per_step == 0;
    if (!crashes_ && mix_.bad_hosts > 0 && only_hosts) tolerance.set_max_restarts(kUsualRestarts);
    if (!crashes_ && mix_.small_budgets && traits_.Chance(0.8)) {
      tolerance.set_max_restarts(1 + static_cast<int64_t>(traits_.Below(2)));
    }
    tolerance.set_hang_seconds(load_.detection_seconds);
    tolerance.set_allow_layout_change(mix_.layout_changes && traits_.Chance(0.8));
  }

  void AskForJob() {
    v1::CreateJobRequest create;
    *create.mutable_job() = spec_;
    create.set_request_id(request_id_);
    Ask(at_, CallKind::kCreateJob, create, request_id_);
    if (!mix_.altered_requests || !traits_.Chance(0.5)) return;
    // A user's script that forgot to draw a new request id.
    create.mutable_job()->set_name(name_ + "-altered");
    Ask(at_ + unit_, CallKind::kAlteredJob, create, request_id_);
  }

  void AskForCheckpoints() {
    if (!HasCheckpointFolder(spec_)) return;
    if (random_.Chance(0.5)) {
      v1::CreateCheckpointRequest ask;
      ask.set_job("jobs/" + name_);
      Ask(at_ + random_.Between(Duration(0), unit_ * kFaultPhase), CallKind::kCreateCheckpoint,
          ask);
    }
    SeededRandom further(seed_, "further requests of " + name_);
    for (int i = 0; i < (mix_.slow_saves ? 12 : 0); ++i) {
      v1::CreateCheckpointRequest ask;
      ask.set_job("jobs/" + name_);
      Ask(at_ + further.Between(Duration(0), unit_ * kFaultPhase), CallKind::kCreateCheckpoint,
          ask);
    }
    SeededRandom pins(seed_, "pins of " + name_);
    for (int pin = 0; pin < 4; ++pin) {
      v1::PinCheckpointRequest keep;
      keep.set_job("jobs/" + name_);
      keep.set_step(4 * (1 + static_cast<int64_t>(pins.Below(4))));
      keep.set_pinned(pins.Chance(0.7));
      Ask(at_ + pins.Between(Duration(0), unit_ * kFaultPhase), CallKind::kPinCheckpoint, keep);
    }
  }

  void AskForEnd() {
    if (crashes_) return;
    if (random_.Chance(0.2)) {
      v1::CancelJobRequest cancel;
      cancel.set_name("jobs/" + name_);
      cancel.set_checkpoint(HasCheckpointFolder(spec_) && random_.Chance(0.5));
      cancel.set_checkpoint_if_training(SeededRandom(seed_, "cancel of " + name_).Chance(0.5));
      Ask(at_ + random_.Between(Duration(0), unit_ * kFaultPhase), CallKind::kCancelJob, cancel);
    }
    if (!mix_.resumes || !traits_.Chance(0.6)) return;
    v1::ResumeJobRequest resume;
    resume.set_name("jobs/" + name_);
    resume.mutable_overrides()->mutable_training()->set_steps(spec_.training().steps() + 6);
    if (traits_.Chance(0.3)) {
      resume.mutable_overrides()->mutable_parallelism()->set_tensor_parallel_degree(
          3 - spec_.parallelism().tensor_parallel_degree() % 2 * 2);
    }
    Ask(at_ + random_.Between(unit_ * kFaultPhase / 2, unit_ * kFaultPhase), CallKind::kResumeJob,
        resume);
  }

  void AskForDeletion() {
    if (!mix_.deletions || !traits_.Chance(0.6)) return;
    v1::DeleteJobRequest erase;
    erase.set_name("jobs/" + name_);
    erase.set_checkpoints(traits_.Chance(0.5));
    Ask(at_ + traits_.Between(unit_, unit_ * kFaultPhase), CallKind::kDeleteJob, erase,
        request_id_);
  }

  template <typename Request>
  void Ask(Duration at, CallKind kind, const Request& request, std::string request_id = {}) {
    load_.calls.push_back({at, kind, name_, std::move(request_id), request.SerializeAsString()});
  }

  const uint64_t seed_;
  const int number_;
  const Mix& mix_;
  SeededRandom& random_;
  Workload& load_;
  const Duration unit_;
  const bool crashes_;
  const std::string name_;
  const std::string request_id_;
  SeededRandom traits_;
  const Duration at_;
  v1::JobSpec spec_;
};

}  // namespace

TimeLimits LimitsFor(double detection_seconds) {
  TimeLimits limits = MakeTimeLimits(detection_seconds);
  const Duration unit = FromSeconds(detection_seconds);
  limits.startup_allowance = unit * 4;
  limits.start = unit * 8;
  limits.checkpoint_attempt = unit * 8;
  limits.growth_patience = unit * 2;
  return limits;
}

Workload DrawWorkload(uint64_t seed, const Mix& mix) {
  SeededRandom random(seed, "workload");
  Workload load;
  constexpr double kDetectionSeconds[] = {2, 4, 8};
  load.detection_seconds = kDetectionSeconds[random.Below(3)];
  const int jobs = 2 + static_cast<int>(random.Below(mix.workers < 20 ? 2 : 4));
  for (int i = 0; i < jobs; ++i) JobDraw(seed, i, mix, random, load).Draw();
  return load;
}

std::shared_ptr<const Namespaces> QuotaFor(const Workload& load) {
  int64_t all = 0;
  int64_t largest = 0;
  for (const v1::JobSpec& spec : load.specs) {
    const v1::ParallelismSpec& axes = spec.parallelism();
    const int64_t ranks = axes.pipeline_parallel_degree() * axes.tensor_parallel_degree() *
                          axes.data_parallel_replicate_degree();
    all += ranks;
    largest = std::max(largest, ranks);
  }
  const auto namespaces =
      Namespaces::Parse(fmt::format("namespaces: [{{name: default, quota: {{devices: {}}}}}]",
                                    std::max(largest, all * 2 / 3)),
                        "quota");
  TROUPE_CHECK_OK(namespaces.status());
  return *namespaces;
}

}  // namespace troupe::simulation
