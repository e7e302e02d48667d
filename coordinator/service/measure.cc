#include "coordinator/service/measure.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <utility>

#include "base/flag_parser.h"
#include "base/metrics/metric_list.h"
#include "coordinator/state/job_state.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

void Record(const StepMeasured& measured, Metrics& metrics) {
  const label::JobName job(measured.job);
  metrics.Set(metric::kJobStep, static_cast<double>(measured.step.step()), job);
  metrics.Set(metric::kJobLoss, measured.step.loss(), job);
  metrics.Add(metric::kJobTokens, static_cast<double>(measured.step.tokens()), job);
  metrics.Add(metric::kJobModelFlops, measured.model_flops, job);
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
  const int experts = report.expert_load_size();
  if (experts == 0) return;
  double most = 0, sum = 0;
  for (int e = 0; e < experts; ++e) {
    most = std::max(most, report.expert_load(e));
    sum += report.expert_load(e);
    if (experts > kMostExperts) continue;
    metrics.Add(metric::kJobRouterLoad, report.expert_load(e), job,
                label::Expert(std::to_string(e)));
  }
  if (sum <= 0) return;
  metrics.Set(metric::kJobRouterImbalance, most * experts / sum, job,
              label::Rank(std::to_string(report.rank())));
}

void Record(const RankMeasured& measured, Metrics& metrics) {
  const v1::StepReport& report = measured.report;
  const v1::StepFigures& figures = report.figures();
  const label::JobName job(measured.job);
  const label::Rank rank(std::to_string(report.rank()));
  metrics.Add(metric::kJobDataWait, figures.data_wait_seconds(), job);
  if (report.routed_choices() > 0) {
    metrics.Add(metric::kJobRouterRouted, static_cast<double>(report.routed_choices()), job);
    metrics.Add(metric::kJobRouterDropped, static_cast<double>(report.dropped_choices()), job);
  }
  RecordExpertLoad(measured, metrics);
  if (figures.has_bubble_ratio()) {
    metrics.Set(metric::kPipelineBubble, figures.bubble_ratio(), job, rank);
  }
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
    metrics.Add(metric::kCheckpointWrites, shards, job, label::Method(method));
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

void Record(const JobFigures& figures, Metrics& metrics) {
  const label::JobName job(figures.job);
  // Creates the series of a job that never failed, with value 0.
  metrics.Add(metric::kJobRestarts, 0, job);
  metrics.Add(metric::kCheckpointQuarantined, 0, job);
  const google::protobuf::EnumDescriptor& states = *v1::JobState_descriptor();
  for (int i = 0; i < states.value_count(); ++i) {
    const auto state = static_cast<v1::JobState>(states.value(i)->number());
    if (state == v1::JOB_STATE_UNSPECIFIED) continue;
    metrics.Set(metric::kJobState, state == figures.state ? 1 : 0, job,
                label::State(StateName(state)));
  }
  metrics.Set(metric::kJobStep, static_cast<double>(figures.step), job);
  if (figures.newest_commit) RecordNewestCommit(*figures.newest_commit, job, metrics);
}

void Record(const RecoveredJob& found, Metrics& metrics) {
  const label::JobName job(found.figures.job);
  metrics.Add(metric::kJobRestarts, static_cast<double>(found.restarts), job);
  metrics.Add(metric::kCheckpointQuarantined, static_cast<double>(found.quarantined), job);
  metrics.Add(metric::kCheckpointSkipped, static_cast<double>(found.skipped), job);
  Record(found.figures, metrics);
}

}  // namespace

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
  for (const RecoveredJob& found : measured->recovered) Record(found, metrics_);
  for (const Measurement& measurement : measured->measurements) {
    std::visit([&](const auto& one) { Record(one, metrics_); }, measurement);
  }
  for (const std::string& job : measured->forgotten_jobs) {
    metrics_.RemoveSeries(label::JobName(job));
  }
  for (const JobFigures& figures : measured->jobs) Record(figures, metrics_);
  if (measured->workers) RecordWorkers(*measured->workers);
  return OkStatus();
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
