#include "coordinator/job/rebuild.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "checkpoint/format/attempt.h"
#include "checkpoint/format/digest.h"
#include "coordinator/job/job_record.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_state.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr int kMaxCheckpoints = 100000;

// Returns what is wrong with a record; empty if nothing.
std::string FaultOf(const v1::CheckpointRecord& record, const std::string& job) {
  if (record.job() != job) return fmt::format("is of job {}", record.job());
  if (record.attempt() < 1) return fmt::format("has attempt {}, below 1", record.attempt());
  if (record.step() < 1) return fmt::format("has step {}, below 1", record.step());
  const std::string& path = record.path();
  const std::string name = path.substr(path.rfind('/') + 1);
  if (path.empty() || path.front() != '/' || path.find("/../") != std::string::npos ||
      path.find('\0') != std::string::npos || !IsAttemptName(name)) {
    return fmt::format("has path \"{}\", which is not the absolute path of an attempt's directory",
                       path);
  }
  if (record.state() != v1::CHECKPOINT_STATE_COMMITTED &&
      record.state() != v1::CHECKPOINT_STATE_QUARANTINED) {
    return fmt::format("is {}", v1::CheckpointState_Name(record.state()));
  }
  if (!IsSha256(record.digest())) return fmt::format("has digest \"{}\"", record.digest());
  return {};
}

}  // namespace

StatusOr<Job> RebuildJob(const RebuildJobCall& call, uint64_t sequence, Turn& turn) {
  const v1::RebuildJobRequest& request = call.request;
  std::shared_ptr<const PreparedJob> prepared = call.prepared;
  if (prepared == nullptr)
    prepared = std::make_shared<PreparedJob>(Prepare(turn.options.planner, request.job()));
  TROUPE_ASSIGN_OR_RETURN(v1::JobSpec spec, prepared->spec);
  TROUPE_ASSIGN_OR_RETURN(v1::Plan plan, prepared->plan);
  if (request.checkpoints().empty() || request.checkpoints_size() > kMaxCheckpoints) {
    return RefuseField(StatusCode::kInvalidArgument, "checkpoints", "are {}, not 1 to {}",
                       request.checkpoints_size(), kMaxCheckpoints);
  }
  Job job;
  job.spec = std::move(spec);
  job.plan = std::move(plan);
  v1::JobRecord& record = job.record;
  record.set_id(job.spec.name());
  record.set_state(v1::JOB_STATE_CANCELLED);
  record.set_sequence(sequence);
  record.set_create_wall_time_ns(request.create_wall_time_ns());
  record.set_creator(call.creator);
  for (int i = 0; i < request.checkpoints_size(); ++i) {
    const v1::CheckpointRecord& checkpoint = request.checkpoints(i);
    std::string fault = FaultOf(checkpoint, job.id());
    if (fault.empty() && !job.checkpoints.emplace(checkpoint.attempt(), checkpoint).second) {
      fault = fmt::format("has attempt {}, which another checkpoint has too", checkpoint.attempt());
    }
    if (!fault.empty()) {
      return RefuseField(StatusCode::kInvalidArgument, fmt::format("checkpoints[{}]", i), "{}",
                         fault);
    }
    record.set_last_attempt(std::max(record.last_attempt(), checkpoint.attempt()));
    record.set_group_epoch(std::max(record.group_epoch(), checkpoint.group_epoch()));
  }
  if (const v1::CheckpointRecord* const newest = NewestCommit(job)) {
    record.set_step(newest->step());
    record.set_highest_step(newest->step());
  }
  turn.effects.writes.PutSpec(job.id(), job.spec);
  turn.effects.writes.PutPlan(job.id(), job.plan);
  for (const auto& [attempt, checkpoint] : job.checkpoints) {
    turn.effects.writes.PutCheckpoint(checkpoint);
  }
  RecordEvent(
      job, event::kRebuilt,
      fmt::format("added to the catalog again from its {} checkpoints", job.checkpoints.size()),
      turn);
  return job;
}

}  // namespace troupe
