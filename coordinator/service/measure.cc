#include "coordinator/service/measure.h"

#include <algorithm>
#include <utility>

#include "base/metrics/metric_list.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

constexpr v1::JobState kStates[] = {v1::JOB_STATE_QUEUED,     v1::JOB_STATE_STARTING,
                                    v1::JOB_STATE_RUNNING,    v1::JOB_STATE_CHECKPOINTING,
                                    v1::JOB_STATE_RECOVERING, v1::JOB_STATE_SUCCEEDED,
                                    v1::JOB_STATE_FAILED,     v1::JOB_STATE_CANCELLED};

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

void RecordNewestCommit(const v1::CheckpointRecord& commit, const label::JobName& job,
                        Metrics& metrics) {
  metrics.Set(metric::kCheckpointLastStep, static_cast<double>(commit.step()), job);
  metrics.Set(metric::kCheckpointLastCommit,
              static_cast<double>(commit.commit_wall_time_ns()) * 1e-9, job);
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
  RecordNewestCommit(record, job, metrics);
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

}  // namespace

void RecordBuild(Metrics& metrics) {
  metrics.Set(metric::kBuildInfo, 1, label::Version(TROUPE_VERSION), label::Worker(""),
              label::Device(""), label::KernelLevel(""), label::Versions(""));
}

void RecordMeasurement(const Measurement& measurement, Metrics& metrics) {
  std::visit([&](const auto& measured) { Record(measured, metrics); }, measurement);
}

void RecordRecoveredJob(const Job& job, Metrics& metrics) {
  const label::JobName name(job.id());
  metrics.Add(metric::kJobRestarts, static_cast<double>(job.record.restarts()), name);
  const auto quarantined = std::count_if(
      job.checkpoints.begin(), job.checkpoints.end(),
      [](const auto& entry) { return entry.second.state() == v1::CHECKPOINT_STATE_QUARANTINED; });
  metrics.Add(metric::kCheckpointQuarantined, static_cast<double>(quarantined), name);
  metrics.Add(metric::kCheckpointSkipped, static_cast<double>(job.record.skipped_checkpoints()),
              name);
  RecordJob(job, metrics);
}

void RecordJob(const Job& job, Metrics& metrics) {
  const label::JobName name(job.id());
  // Creates the series of a job that never failed, with value 0.
  metrics.Add(metric::kJobRestarts, 0, name);
  metrics.Add(metric::kCheckpointQuarantined, 0, name);
  const v1::JobState shown = ShownState(job);
  for (const v1::JobState state : kStates) {
    metrics.Set(metric::kJobState, state == shown ? 1 : 0, name, label::State(StateName(state)));
  }
  metrics.Set(metric::kJobStep, static_cast<double>(job.record.step()), name);
  if (const v1::CheckpointRecord* const commit = NewestCommit(job)) {
    RecordNewestCommit(*commit, name, metrics);
  }
}

void RecordFleet(const Fleet& fleet, std::set<std::string>* workers, Metrics& metrics) {
  for (auto it = workers->begin(); it != workers->end();) {
    if (fleet.workers.contains(*it)) {
      ++it;
      continue;
    }
    metrics.Remove(metric::kWorkerUp, label::Worker(*it));
    metrics.Remove(metric::kWorkerMemory, label::Worker(*it));
    it = workers->erase(it);
  }
  for (const auto& [name, worker] : fleet.workers) {
    workers->insert(name);
    metrics.Set(metric::kWorkerUp, worker.session != 0 ? 1 : 0, label::Worker(name));
    metrics.Set(metric::kWorkerMemory, static_cast<double>(worker.memory_bytes),
                label::Worker(name));
  }
}

}  // namespace troupe
