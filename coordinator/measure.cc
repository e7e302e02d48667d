#include "coordinator/measure.h"
#include "coordinator/job_state.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

constexpr v1::JobState kStates[] = {v1::JOB_STATE_QUEUED,     v1::JOB_STATE_STARTING,
                                    v1::JOB_STATE_RUNNING,    v1::JOB_STATE_CHECKPOINTING,
                                    v1::JOB_STATE_RECOVERING, v1::JOB_STATE_SUCCEEDED,
                                    v1::JOB_STATE_FAILED,     v1::JOB_STATE_CANCELLED};

void Record(const StepMeasured& measured, Metrics& metrics) {
  const MetricLabels labels{{"job_name", measured.job}};
  metrics.Set("troupe_job_step", labels, static_cast<double>(measured.step.step()));
  metrics.Set("troupe_job_loss", labels, measured.step.loss());
  metrics.Add("troupe_job_tokens_total", labels, static_cast<double>(measured.step.tokens()));
  metrics.Add("troupe_job_model_flops_total", labels, measured.model_flops);
  // An unknown device has no peak: it gets no series, and therefore no MFU.
  if (measured.peak_flops > 0)
    metrics.Add("troupe_job_peak_flops_total", labels, measured.peak_flops);
  metrics.Observe("troupe_job_step_duration_seconds", labels, measured.step.step_seconds());
}

// The number of per-expert series is bounded; the imbalance of the load is recorded for any number
// of experts.
void RecordExpertLoad(const std::string& job, const v1::StepReport& report, Metrics& metrics) {
  constexpr int kMostExperts = 64;
  const int experts = report.expert_load_size();
  if (experts == 0) return;
  double most = 0, sum = 0;
  for (int e = 0; e < experts; ++e) {
    most = std::max(most, report.expert_load(e));
    sum += report.expert_load(e);
    if (experts > kMostExperts) continue;
    metrics.Add("troupe_job_router_load_total",
                {{"job_name", job}, {"expert", std::to_string(e)}}, report.expert_load(e));
  }
  if (sum <= 0) return;
  metrics.Set("troupe_job_router_imbalance",
              {{"job_name", job}, {"rank", std::to_string(report.rank())}},
              most * experts / sum);
}

void Record(const RankMeasured& measured, Metrics& metrics) {
  const v1::StepReport& report = measured.report;
  const MetricLabels job{{"job_name", measured.job}};
  metrics.Add("troupe_job_data_wait_seconds_total", job, report.data_wait_seconds());
  if (report.routed_choices() > 0) {
    metrics.Add("troupe_job_router_routed_total", job, static_cast<double>(report.routed_choices()));
    metrics.Add("troupe_job_router_dropped_total", job,
                static_cast<double>(report.dropped_choices()));
  }
  RecordExpertLoad(measured.job, report, metrics);
  if (report.step_seconds() > 0) {
    metrics.Set("troupe_pipeline_bubble_ratio",
                {{"job_name", measured.job}, {"rank", std::to_string(report.rank())}},
                report.bubble_seconds() / report.step_seconds());
  }
}

void Record(const CheckpointMeasured& measured, Metrics& metrics) {
  const v1::CheckpointRecord& record = measured.record;
  const MetricLabels labels{{"job_name", record.job()}};
  if (record.state() == v1::CHECKPOINT_STATE_QUARANTINED) {
    metrics.Add("troupe_checkpoint_quarantined_total", labels, 1);
    return;
  }
  if (record.state() != v1::CHECKPOINT_STATE_COMMITTED) {
    metrics.Add("troupe_checkpoint_aborts_total", labels, 1);
    return;
  }
  metrics.Set("troupe_checkpoint_duration_seconds", labels, record.duration_seconds());
  metrics.Set("troupe_checkpoint_stall_seconds", labels, measured.stall_seconds);
  metrics.Add("troupe_checkpoint_bytes_total", labels, static_cast<double>(record.bytes()));
  metrics.Set("troupe_checkpoint_last_committed_step", labels, static_cast<double>(record.step()));
  metrics.Set("troupe_checkpoint_last_commit_timestamp_seconds", labels,
              static_cast<double>(record.commit_wall_time_ns()) * 1e-9);
  for (const auto& [method, shards] : measured.writes) {
    metrics.Add("troupe_checkpoint_writes_total", {{"job_name", record.job()}, {"method", method}},
                shards);
  }
}

void Record(const CheckpointSkipped& skipped, Metrics& metrics) {
  metrics.Add("troupe_checkpoint_skipped_total", {{"job_name", skipped.job}}, 1);
}

void Record(const CheckpointVerifiedMeasured& measured, Metrics& metrics) {
  const char* result = "unreadable";
  if (measured.found == CheckpointFound::kWhole) result = "whole";
  if (measured.found == CheckpointFound::kDamaged) result = "damaged";
  metrics.Add("troupe_checkpoint_verifications_total",
              {{"job_name", measured.job}, {"result", result}}, 1);
}

void Record(const MessageDenied& denied, Metrics& metrics) {
  metrics.Add("troupe_worker_messages_denied_total", {{"kind", denied.kind}}, 1);
}

void Record(const RestartMeasured& measured, Metrics& metrics) {
  metrics.Add("troupe_job_restarts_total", {{"job_name", measured.job}}, 1);
}

}  // namespace

void DeclareCoordinatorMetrics(Metrics& metrics) {
  metrics.DeclareGauge("troupe_job_step", "The last optimizer step that the job has applied.");
  metrics.DeclareGauge("troupe_job_loss", "Training loss of the last step, in nats a token.");
  metrics.DeclareCounter("troupe_job_tokens_total", "Tokens trained on, repeated steps included.");
  metrics.DeclareCounter("troupe_job_model_flops_total",
                         "Floating point operations that the model's steps need.");
  metrics.DeclareCounter(
      "troupe_job_peak_flops_total",
      "Floating point operations that the job's devices could have done in the same time; absent "
      "where a device's peak is unknown. MFU is the ratio of the rates.");
  metrics.DeclareHistogram("troupe_job_step_duration_seconds", "Time of one step.",
                           SecondsBuckets());
  metrics.DeclareCounter("troupe_job_restarts_total", "Recoveries of the job so far.");
  metrics.DeclareGauge("troupe_job_state", "1 for the state the job is in, else 0.");
  metrics.DeclareCounter("troupe_job_data_wait_seconds_total",
                         "Time that ranks waited for data, summed.");
  metrics.DeclareCounter("troupe_job_router_routed_total",
                         "Choices of experts that routers made, of all blocks E.");
  metrics.DeclareCounter("troupe_job_router_dropped_total",
                         "Choices of experts that were dropped beyond a capacity.");
  metrics.DeclareCounter("troupe_job_router_load_total",
                         "Choices of each expert, of all blocks E; of models of at most 64 experts.");
  metrics.DeclareGauge("troupe_job_router_imbalance",
                       "Choices of the most chosen expert over the mean, of the last step, in the "
                       "blocks E of the rank's pipe stage.");
  metrics.DeclareGauge("troupe_pipeline_bubble_ratio",
                       "Share of the last step that the rank waited for other pipeline stages.");
  metrics.DeclareGauge("troupe_checkpoint_duration_seconds",
                       "From the first vote to the commit, of the last commit.");
  metrics.DeclareGauge("troupe_checkpoint_stall_seconds",
                       "How long the last commit held up training.");
  metrics.DeclareCounter("troupe_checkpoint_bytes_total", "Bytes of committed checkpoints.");
  metrics.DeclareCounter("troupe_checkpoint_aborts_total",
                         "Checkpoint attempts that were aborted.");
  metrics.DeclareCounter("troupe_checkpoint_quarantined_total",
                         "Commits that were found damaged and are kept apart.");
  metrics.DeclareCounter("troupe_checkpoint_verifications_total",
                         "Commits that were read back from the disk before older ones were "
                         "deleted, by what was found: whole, damaged or unreadable.");
  metrics.DeclareCounter("troupe_checkpoint_skipped_total",
                         "Due checkpoints that were skipped: one was being written, or the "
                         "coordinator was away.");
  metrics.DeclareCounter("troupe_checkpoint_writes_total",
                         "Shard files of commits, by the method by which they were written: "
                         "io_uring_registered, io_uring, direct or buffered.");
  metrics.DeclareGauge("troupe_checkpoint_last_committed_step", "Step of the newest commit.");
  metrics.DeclareGauge("troupe_checkpoint_last_commit_timestamp_seconds",
                       "Unix time of the newest commit.");
  metrics.DeclareGauge("troupe_worker_up", "1 while the worker has a session, else 0.");
  metrics.DeclareGauge("troupe_worker_memory_bytes",
                       "Resident memory of the worker's daemon and ranks.");
  metrics.DeclareCounter("troupe_worker_messages_denied_total",
                         "Messages of workers about jobs that they have no part in, or answers "
                         "that nobody asked of them, by kind. They have no effect.");
  metrics.DeclareCounter("troupe_connections_refused_total",
                         "Connections that were closed at once: too many were open.");
  metrics.DeclareGauge("troupe_build_info", "1, with the version as a label.");
  metrics.Set("troupe_build_info", {{"version", TROUPE_VERSION}}, 1);
}

void RecordMeasurement(const Measurement& measurement, Metrics& metrics) {
  std::visit([&](const auto& measured) { Record(measured, metrics); }, measurement);
}

void RecordRecoveredJob(const Job& job, Metrics& metrics) {
  metrics.Add("troupe_job_restarts_total", {{"job_name", job.id()}},
              static_cast<double>(job.record.restarts()));
  const auto quarantined = std::count_if(
      job.checkpoints.begin(), job.checkpoints.end(), [](const auto& entry) {
        return entry.second.state() == v1::CHECKPOINT_STATE_QUARANTINED;
      });
  metrics.Add("troupe_checkpoint_quarantined_total", {{"job_name", job.id()}},
              static_cast<double>(quarantined));
  metrics.Add("troupe_checkpoint_skipped_total", {{"job_name", job.id()}},
              static_cast<double>(job.record.skipped_checkpoints()));
  RecordJob(job, metrics);
}

void RecordJob(const Job& job, Metrics& metrics) {
  // Creates the series of a job that never failed, with value 0.
  metrics.Add("troupe_job_restarts_total", {{"job_name", job.id()}}, 0);
  metrics.Add("troupe_checkpoint_quarantined_total", {{"job_name", job.id()}}, 0);
  const v1::JobState shown = ShownState(job);
  for (const v1::JobState state : kStates) {
    metrics.Set("troupe_job_state", {{"job_name", job.id()}, {"state", StateName(state)}},
                state == shown ? 1 : 0);
  }
  metrics.Set("troupe_job_step", {{"job_name", job.id()}}, static_cast<double>(job.record.step()));
  if (const v1::CheckpointRecord* const commit = NewestCommit(job)) {
    metrics.Set("troupe_checkpoint_last_committed_step", {{"job_name", job.id()}},
                static_cast<double>(commit->step()));
    metrics.Set("troupe_checkpoint_last_commit_timestamp_seconds", {{"job_name", job.id()}},
                static_cast<double>(commit->commit_wall_time_ns()) * 1e-9);
  }
}

void RecordFleet(const Fleet& fleet, std::set<std::string>* workers, Metrics& metrics) {
  for (auto it = workers->begin(); it != workers->end();) {
    if (fleet.workers.contains(*it)) {
      ++it;
      continue;
    }
    metrics.Remove("troupe_worker_up", {{"worker", *it}});
    metrics.Remove("troupe_worker_memory_bytes", {{"worker", *it}});
    it = workers->erase(it);
  }
  for (const auto& [name, worker] : fleet.workers) {
    workers->insert(name);
    metrics.Set("troupe_worker_up", {{"worker", name}}, worker.session != 0 ? 1 : 0);
    metrics.Set("troupe_worker_memory_bytes", {{"worker", name}},
                static_cast<double>(worker.memory_bytes));
  }
}

}  // namespace troupe
