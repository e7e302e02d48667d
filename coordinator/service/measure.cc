#include "coordinator/service/measure.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/flag_parser.h"
#include "base/metrics/metric_list.h"
#include "base/metrics/purpose.h"
#include "coordinator/state/job_state.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

// Name of each WriteMethod of base/streaming_file.h.
constexpr std::string_view kWriteMethods[] = {"io_uring_registered", "io_uring", "direct",
                                              "buffered"};

void Record(const StepMeasured& measured, Metrics& metrics) {
  const label::JobName job(measured.job);
  metrics.Set(metric::kJobStep, static_cast<double>(measured.step.step()), job);
  metrics.Set(metric::kJobLoss, measured.step.loss(), job);
  metrics.Set(metric::kJobGradNorm, measured.step.grad_norm(), job);
  metrics.Set(metric::kJobLearningRate, measured.step.learning_rate(), job);
  if (measured.step.has_validation_loss()) {
    metrics.Set(metric::kJobValidationLoss, measured.step.validation_loss(), job);
  }
  metrics.Add(metric::kJobSkippedSteps, measured.step.skipped() ? 1 : 0, job);
  metrics.Add(metric::kJobTokens, static_cast<double>(measured.step.tokens()), job);
  metrics.Add(metric::kJobModelFlops, measured.model_flops, job);
  metrics.Add(metric::kJobHardwareFlops, measured.model_flops + measured.recomputed_flops, job);
  // An unknown device has no peak: it gets no series, and therefore no MFU.
  if (measured.peak_flops > 0) metrics.Add(metric::kJobPeakFlops, measured.peak_flops, job);
  metrics.Observe(metric::kJobStepDuration, measured.step.step_seconds(), job);
}

// The number of per-expert series is bounded; the imbalance of the load is recorded for any number
// of experts.
void RecordExpertLoad(const RankMeasured& measured, Metrics& metrics) {
  constexpr int kMostExperts = 64;
  const v1::StepReport& report = measured.report;
  const label::JobName job(measured.job);
  if (report.expert_load_size() > kMostExperts) return;
  for (int e = 0; e < report.expert_load_size(); ++e) {
    metrics.Add(metric::kJobRouterLoad, report.expert_load(e), job,
                label::Expert(std::to_string(e)));
  }
}

// The choices of the most chosen expert divided by the mean; absent without choices.
std::optional<double> ImbalanceOf(const v1::StepReport& report) {
  double most = 0, sum = 0;
  for (const double load : report.expert_load()) {
    most = std::max(most, load);
    sum += load;
  }
  if (sum <= 0) return std::nullopt;
  return most * report.expert_load_size() / sum;
}

void RecordFold(const Gauge<label::JobName, label::Rank>& worst,
                const Gauge<label::JobName>& median, const label::JobName& job, RankFold& fold,
                Metrics& metrics) {
  const RankFold::Result result = fold.Fold();
  metrics.Set(median, result.median, job);
  for (const auto& [rank, value] : result.worst)
    metrics.Set(worst, value, job, label::Rank(std::to_string(rank)));
  for (const int rank : result.dropped)
    metrics.Remove(worst, job, label::Rank(std::to_string(rank)));
}

// The time of the rank's step for which it was blocked in communication.
double ExposedSeconds(const v1::StepReport& report) {
  double seconds = 0;
  for (const v1::CommunicationSeconds& of : report.figures().communication())
    seconds += of.exposed();
  return seconds;
}

// The time of the rank's step without its waits; absent if the step did more than train.
std::optional<double> BusySeconds(const v1::StepReport& report) {
  if (report.disturbed() || !(report.step_seconds() > 0)) return std::nullopt;
  const double seconds =
      report.step_seconds() - report.figures().data_wait_seconds() - ExposedSeconds(report);
  return std::max(seconds, 0.0);
}

// Upper bounds of the ratio of a rank's busy time to the median.
constexpr double kBusyBounds[] = {0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.5, 2, 4};

void RecordBusy(const label::JobName& job, RankFold& fold, Metrics& metrics) {
  const RankFold::Result result = fold.Fold();
  for (const int rank : result.dropped)
    metrics.Remove(metric::kJobRankWorstBusy, job, label::Rank(std::to_string(rank)));
  if (!(result.median > 0)) return;
  for (const auto& [rank, value] : result.worst) {
    metrics.Set(metric::kJobRankWorstBusy, value / result.median, job,
                label::Rank(std::to_string(rank)));
  }
  double counts[std::size(kBusyBounds) + 1] = {};
  double sum = 0;
  for (const double value : fold.Values()) {
    const double ratio = value / result.median;
    ++counts[std::ranges::lower_bound(kBusyBounds, ratio) - std::begin(kBusyBounds)];
    sum += ratio;
  }
  metrics.ObserveMany(metric::kJobRankBusy, {kBusyBounds, counts, sum}, job);
}

// Divides the time for which ranks were blocked in communication into waiting and moving bytes. All
// ranks end a step together, so the rank that comes to its collectives last is blocked least, and
// only by the transfers themselves.
void RecordPeerWait(const label::JobName& job, RankFold& exposed, Metrics& metrics) {
  exposed.Fold();
  double least = std::numeric_limits<double>::infinity();
  double sum = 0;
  const std::vector<double> values = exposed.Values();
  for (const double value : values) {
    least = std::min(least, value);
    sum += value;
  }
  metrics.Set(metric::kJobTransfer, least, job);
  metrics.Set(metric::kJobPeerWait, sum / static_cast<double>(values.size()) - least, job);
}

// The job of a measurement; null: it is of none.
const std::string* JobOf(const Measurement& measurement) {
  return std::visit(
      [](const auto& one) -> const std::string* {
        using One = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<One, CheckpointMeasured>) {
          return &one.record.job();
        } else if constexpr (std::is_same_v<One, MessageDenied>) {
          return nullptr;
        } else {
          return &one.job;
        }
      },
      measurement);
}

// A rank or worker may report any text: the number of series is bounded by the known ones.
template <typename Names>
std::string KnownOrOther(const Names& known, const std::string& name) {
  return std::ranges::count(known, name) > 0 ? name : "other";
}

void Record(const RankMeasured& measured, Metrics& metrics) {
  const v1::StepReport& report = measured.report;
  const v1::StepFigures& figures = report.figures();
  const label::JobName job(measured.job);
  metrics.Add(metric::kJobDataWait, figures.data_wait_seconds(), job);
  metrics.Add(metric::kJobCoreWait, figures.core_wait_seconds(), job);
  for (const v1::CommunicationSeconds& of : figures.communication()) {
    const label::Purpose purpose(KnownOrOther(kPurposeNames, of.purpose()));
    metrics.Add(metric::kJobCommunication, of.total(), job, purpose);
    metrics.Add(metric::kJobExposedCommunication, of.exposed(), job, purpose);
  }
  if (report.routed_choices() > 0) {
    metrics.Add(metric::kJobRouterRouted, static_cast<double>(report.routed_choices()), job);
    metrics.Add(metric::kJobRouterDropped, static_cast<double>(report.dropped_choices()), job);
  }
  RecordExpertLoad(measured, metrics);
}

void RecordNewestCommit(const JobFigures::Commit& commit, const label::JobName& job,
                        Metrics& metrics) {
  metrics.Set(metric::kCheckpointLastStep, static_cast<double>(commit.step), job);
  metrics.Set(metric::kCheckpointLastCommit, static_cast<double>(commit.wall_time_ns) * 1e-9, job);
}

void Record(const CheckpointMeasured& measured, Metrics& metrics) {
  const v1::CheckpointRecord& record = measured.record;
  const label::JobName job(record.job());
  if (record.state() == v1::CHECKPOINT_STATE_QUARANTINED) {
    metrics.Add(metric::kCheckpointQuarantined, 1, job);
    return;
  }
  if (record.state() != v1::CHECKPOINT_STATE_COMMITTED) {
    metrics.Add(metric::kCheckpointAborts, 1, job);
    return;
  }
  metrics.Set(metric::kCheckpointDuration, record.duration_seconds(), job);
  metrics.Set(metric::kCheckpointStall, measured.stall_seconds, job);
  metrics.Add(metric::kCheckpointBytes, static_cast<double>(record.bytes()), job);
  RecordNewestCommit({record.step(), record.commit_wall_time_ns()}, job, metrics);
  for (const auto& [method, shards] : measured.writes) {
    metrics.Add(metric::kCheckpointWrites, shards, job,
                label::Method(KnownOrOther(kWriteMethods, method)));
  }
}

void Record(const CheckpointSkipped& skipped, Metrics& metrics) {
  metrics.Add(metric::kCheckpointSkipped, 1, label::JobName(skipped.job));
}

void Record(const CheckpointVerifiedMeasured& measured, Metrics& metrics) {
  const char* result = "unreadable";
  if (measured.found == CheckpointFound::kWhole) result = "whole";
  if (measured.found == CheckpointFound::kDamaged) result = "damaged";
  metrics.Add(metric::kCheckpointVerifications, 1, label::JobName(measured.job),
              label::Result(result));
}

void Record(const MessageDenied& denied, Metrics& metrics) {
  metrics.Add(metric::kMessagesDenied, 1, label::Kind(denied.kind));
}

void Record(const RestartMeasured& measured, Metrics& metrics) {
  metrics.Add(metric::kJobRestarts, 1, label::JobName(measured.job));
}

// The job's figures, which follow, have its new state.
void Record(const StartMeasured&, Metrics&) {}

// Calls `use` with each state that a job can have.
void ForEachState(const std::function<void(v1::JobState)>& use) {
  const google::protobuf::EnumDescriptor& states = *v1::JobState_descriptor();
  for (int i = 0; i < states.value_count(); ++i) {
    const auto state = static_cast<v1::JobState>(states.value(i)->number());
    if (state != v1::JOB_STATE_UNSPECIFIED) use(state);
  }
}

// Replaces the series that describes the job if it has changed, as after a recovery on another
// layout.
void RecordShape(const JobFigures& figures, std::map<std::string, JobShape>* shapes,
                 Metrics& metrics) {
  const label::JobName job(figures.job);
  const auto set = [&](const JobShape& shape, bool is_current) {
    const label::Layout layout(shape.layout);
    const label::Precision precision(shape.precision);
    const label::Schedule schedule(shape.schedule);
    if (is_current) {
      metrics.Set(metric::kJobInfo, 1, job, layout, precision, schedule);
    } else {
      metrics.Remove(metric::kJobInfo, job, layout, precision, schedule);
    }
  };
  const auto [entry, is_new] = shapes->try_emplace(figures.job, figures.shape);
  if (!is_new && entry->second != figures.shape) set(entry->second, false);
  entry->second = figures.shape;
  set(figures.shape, true);
  metrics.Set(metric::kJobRanks, figures.ranks, job);
}

void Record(const JobFigures& figures, Metrics& metrics) {
  const label::JobName job(figures.job);
  if (figures.checkpoint_seconds > 0) {
    metrics.Set(metric::kCheckpointInterval, static_cast<double>(figures.checkpoint_seconds), job);
  } else {
    metrics.Remove(metric::kCheckpointInterval, job);
  }
  if (figures.checkpoint_steps > 0) {
    metrics.Set(metric::kCheckpointIntervalSteps, static_cast<double>(figures.checkpoint_steps),
                job);
  } else {
    metrics.Remove(metric::kCheckpointIntervalSteps, job);
  }
  // Creates the series with value 0: an increase needs a value before the first event.
  for (const auto& counter :
       {metric::kJobRestarts, metric::kJobSkippedSteps, metric::kCheckpointQuarantined,
        metric::kCheckpointAborts, metric::kCheckpointBytes, metric::kCheckpointSkipped}) {
    metrics.Add(counter, 0, job);
  }
  ForEachState([&](v1::JobState state) {
    metrics.Set(metric::kJobState, state == figures.state ? 1 : 0, job,
                label::State(StateName(state)));
  });
  metrics.Set(metric::kJobStep, static_cast<double>(figures.step), job);
  if (figures.newest_commit) RecordNewestCommit(*figures.newest_commit, job, metrics);
}

void Record(const RecoveredJob& found, Metrics& metrics) {
  const label::JobName job(found.figures.job);
  metrics.Add(metric::kJobRestarts, static_cast<double>(found.restarts), job);
  metrics.Add(metric::kCheckpointQuarantined, static_cast<double>(found.quarantined), job);
  metrics.Add(metric::kCheckpointSkipped, static_cast<double>(found.skipped), job);
}

void Observe(const Histogram<>& histogram, const DurationCounts& durations, Metrics& metrics) {
  metrics.ObserveMany(histogram, {DurationCounts::kBounds, durations.counts, durations.sum});
}

// Work that grows with all jobs or ranks is done at most this often. The engine sends something at
// least every few seconds: the workers' figures.
constexpr Duration kRecordInterval = std::chrono::seconds(1);

}  // namespace

MetricsActor::MetricsActor(Metrics& metrics)
    : metrics_(metrics),
      phases_(
          {.spent =
               [&metrics](const std::string& job, JobPhase phase, double seconds) {
                 metrics.Add(metric::kJobTime, seconds, label::JobName(job),
                             label::Phase(std::string(PhaseName(phase))));
               },
           .left_queue =
               [&metrics](double seconds) { metrics.Observe(metric::kJobQueueWait, seconds); }}) {}

Status MetricsActor::Start(Context& context) {
  metrics_.Set(metric::kBuildInfo, 1, label::Version(kVersion), label::Worker(""),
               label::Device(""), label::KernelLevel(""), label::Versions(""));
  metrics_.Add(metric::kMeasurementsDropped, 0);
  return OkStatus();
}

Status MetricsActor::Handle(AnyMessage message, Context& context) {
  const Measured* const measured = message.As<Measured>();
  if (measured == nullptr) return Internal("metrics get a message {}", message.name());
  metrics_.Add(metric::kMeasurementsDropped, static_cast<double>(measured->dropped));
  const MonotonicTime now = context.Now();
  const auto is_shown = [&](const JobFigures& figures) {
    states_[figures.job] = figures.state;
    lifetime_.SetState(figures.job, figures.state, figures.ended_wall_ns, now,
                       context.WallNanoseconds());
    return lifetime_.IsShown(figures.job);
  };
  for (const RecoveredJob& found : measured->recovered) {
    if (!is_shown(found.figures)) continue;
    Record(found, metrics_);
    phases_.Find(found.figures.job, found.figures.state, now);
    RecordJob(found.figures, now);
  }
  for (const Measurement& measurement : measured->measurements) {
    if (const std::string* job = JobOf(measurement); job != nullptr && !lifetime_.IsShown(*job))
      continue;
    std::visit([&](const auto& one) { Record(one, metrics_); }, measurement);
    NoteRank(measurement);
    RecordTime(measurement, now);
  }
  RecordRanks(now);
  for (const std::string& job : measured->forgotten_jobs) {
    DropSeries(job);
    lifetime_.Forget(job);
    states_.erase(job);
  }
  for (const JobFigures& figures : measured->jobs) {
    if (is_shown(figures)) RecordJob(figures, now);
  }
  RecordAllJobs(now);
  if (measured->workers) RecordWorkers(*measured->workers);
  if (measured->control) RecordControl(*measured->control);
  return OkStatus();
}

void MetricsActor::NoteRank(const Measurement& measurement) {
  const auto* const measured = std::get_if<RankMeasured>(&measurement);
  if (measured == nullptr) return;
  const v1::StepReport& report = measured->report;
  RankFigures& ranks = ranks_[measured->job];
  if (report.figures().has_bubble_ratio()) {
    ranks.bubble.Set(report.rank(), report.step(), report.figures().bubble_ratio());
    ranks.has_bubble = true;
  }
  if (const std::optional<double> imbalance = ImbalanceOf(report)) {
    ranks.imbalance.Set(report.rank(), report.step(), *imbalance);
    ranks.has_imbalance = true;
  }
  if (const std::optional<double> busy = BusySeconds(report)) {
    ranks.busy.Set(report.rank(), report.step(), *busy);
    ranks.exposed.Set(report.rank(), report.step(), ExposedSeconds(report));
    ranks.has_busy = true;
  }
  ranks.is_new = true;
}

void MetricsActor::RecordRanks(MonotonicTime now) {
  if (now < ranks_due_) return;
  for (auto& [name, ranks] : ranks_) {
    if (!std::exchange(ranks.is_new, false)) continue;
    ranks_due_ = now + kRecordInterval;
    const label::JobName job(name);
    if (ranks.has_bubble) {
      RecordFold(metric::kPipelineBubble, metric::kPipelineMedianBubble, job, ranks.bubble,
                 metrics_);
    }
    if (std::exchange(ranks.has_busy, false)) {
      RecordBusy(job, ranks.busy, metrics_);
      RecordPeerWait(job, ranks.exposed, metrics_);
    }
    if (ranks.has_imbalance) {
      RecordFold(metric::kJobRouterImbalance, metric::kJobRouterMedianImbalance, job,
                 ranks.imbalance, metrics_);
    }
  }
}

void MetricsActor::RecordTime(const Measurement& measurement, MonotonicTime now) {
  if (const auto* const step = std::get_if<StepMeasured>(&measurement)) {
    phases_.AddStep(step->job, step->repeated, now);
  } else if (const auto* const commit = std::get_if<CheckpointMeasured>(&measurement)) {
    phases_.AddStall(commit->record.job(), commit->stall_seconds);
  }
}

void MetricsActor::RecordJob(const JobFigures& figures, MonotonicTime now) {
  Record(figures, metrics_);
  RecordShape(figures, &shapes_, metrics_);
  phases_.SetState(figures.job, figures.state, now);
}

void MetricsActor::DropSeries(const std::string& job) {
  metrics_.RemoveSeries(label::JobName(job));
  ranks_.erase(job);
  phases_.Forget(job);
  shapes_.erase(job);
}

void MetricsActor::RecordAllJobs(MonotonicTime now) {
  if (now < jobs_due_) return;
  jobs_due_ = now + kRecordInterval;
  for (const std::string& job : lifetime_.Expire(now)) DropSeries(job);
  phases_.Advance(now);
  std::map<v1::JobState, int> counts;
  for (const auto& [job, state] : states_) ++counts[state];
  ForEachState([&](v1::JobState state) {
    metrics_.Set(metric::kJobs, counts[state], label::State(StateName(state)));
  });
}

void MetricsActor::RecordControl(const ControlFigures& figures) {
  metrics_.Set(metric::kLeaderEpoch, static_cast<double>(figures.leader_epoch));
  metrics_.Set(metric::kSessions, static_cast<double>(figures.sessions));
  metrics_.Set(metric::kWatchers, static_cast<double>(figures.watchers));
  for (const auto& [state, devices] :
       {std::pair("leased", figures.devices_leased), std::pair("free", figures.devices_free),
        std::pair("condemned", figures.devices_condemned),
        std::pair("draining", figures.devices_draining),
        std::pair("wanted", figures.devices_wanted)}) {
    metrics_.Set(metric::kDevices, static_cast<double>(devices), label::State(state));
  }
  if (figures.catalog) {
    metrics_.Set(metric::kCatalogKeys, static_cast<double>(figures.catalog->keys));
    metrics_.Set(metric::kCatalogFiles, static_cast<double>(figures.catalog->files_bytes));
    metrics_.Set(metric::kCatalogMemory, static_cast<double>(figures.catalog->memory_bytes));
    metrics_.Set(metric::kCatalogCompaction,
                 static_cast<double>(figures.catalog->pending_compaction_bytes));
    metrics_.Set(metric::kCatalogErrors, static_cast<double>(figures.catalog->background_errors));
  }
  Observe(metric::kEngineTurn, figures.turns, metrics_);
  Observe(metric::kCatalogWrite, figures.catalog_writes, metrics_);
}

void MetricsActor::RecordWorkers(const std::vector<WorkerFigures>& workers) {
  std::set<std::string> gone = std::move(worker_series_);
  worker_series_.clear();
  for (const WorkerFigures& figures : workers) {
    gone.erase(figures.worker);
    worker_series_.insert(figures.worker);
    const label::Worker worker(figures.worker);
    metrics_.Set(metric::kWorkerUp, figures.is_connected ? 1 : 0, worker);
    metrics_.Set(metric::kWorkerMemory, static_cast<double>(figures.memory_bytes), worker);
  }
  for (const std::string& name : gone) {
    metrics_.Remove(metric::kWorkerUp, label::Worker(name));
    metrics_.Remove(metric::kWorkerMemory, label::Worker(name));
  }
}

}  // namespace troupe
