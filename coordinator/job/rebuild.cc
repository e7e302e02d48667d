#include "coordinator/job/rebuild.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/text/count_text.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/digest.h"
#include "coordinator/job/job_record.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_state.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr int kMaxCheckpoints = 100000;

// Returns the directory of the checkpoints of job `id`; empty if the job has none.
std::string DirectoryOf(const v1::JobSpec& spec, const std::string& id) {
  const std::string& folder = spec.checkpoint().folder();
  if (folder.empty()) return {};
  return (std::filesystem::path(folder) / id).lexically_normal().string();
}

bool IsWithin(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

// Whether `path` is absolute and has no "..", which would not be resolved as its text suggests.
bool IsPlainPath(const std::string& path) {
  return path.starts_with('/') && path.find('\0') == std::string::npos &&
         (path + "/").find("/../") == std::string::npos;
}

// Whether `name` is that of the attempt's directory.
bool IsNameOf(std::string_view name, const v1::CheckpointRecord& record) {
  if (!IsAttemptName(name)) return false;
  const std::string_view numbers = name.substr(name.find("-epoch-"));
  const std::string own =
      fmt::format("-epoch-{}-attempt-{}", record.group_epoch(), record.attempt());
  return numbers == own || numbers.starts_with(own + "-at-");
}

// Returns what is wrong with a record of the job whose checkpoints are in `directory`; empty if
// nothing.
std::string FaultOf(const v1::CheckpointRecord& record, const std::string& job,
                    const std::string& directory) {
  if (record.job() != job) return fmt::format("is of job {}", record.job());
  if (record.attempt() < 1) return fmt::format("has attempt {}, below 1", record.attempt());
  if (record.step() < 1) return fmt::format("has step {}, below 1", record.step());
  const std::filesystem::path path(record.path());
  if (!IsPlainPath(record.path()) || !IsNameOf(path.filename().string(), record)) {
    return fmt::format(
        "has path \"{}\", which is not the absolute path of the directory of attempt {} of group "
        "epoch {}",
        record.path(), record.attempt(), record.group_epoch());
  }
  if (path.parent_path().lexically_normal().string() != directory) {
    return fmt::format("has path {}, which is not in the job's own directory, {}", record.path(),
                       directory);
  }
  if (record.state() != v1::CHECKPOINT_STATE_COMMITTED &&
      record.state() != v1::CHECKPOINT_STATE_QUARANTINED) {
    return fmt::format("is {}", v1::CheckpointState_Name(record.state()));
  }
  if (!IsSha256(record.digest())) return fmt::format("has digest \"{}\"", record.digest());
  return {};
}

// Returns a job whose checkpoints are in `directory` or around it; null if there is none.
const Job* UserOf(const std::string& directory, const std::map<std::string, Job>& jobs) {
  for (const auto& [id, job] : jobs) {
    const std::string other = DirectoryOf(job.spec, id);
    if (!other.empty() && (IsWithin(directory, other) || IsWithin(other, directory))) return &job;
    // A job may have had another folder before it was resumed.
    for (const auto& [attempt, record] : job.checkpoints) {
      const std::filesystem::path path(record.path());
      if (IsWithin(path.lexically_normal().string(), directory)) return &job;
    }
  }
  return nullptr;
}

// Returns the job's directory. INVALID_ARGUMENT if its folder is none, or one that another job
// uses.
StatusOr<std::string> OwnDirectory(const v1::JobSpec& spec,
                                   const std::map<std::string, Job>& jobs) {
  const std::string& folder = spec.checkpoint().folder();
  if (!IsPlainPath(folder)) {
    return RefuseField(StatusCode::kInvalidArgument, "checkpoint.folder",
                       "is \"{}\", not an absolute path without \"..\"", folder);
  }
  std::string directory = DirectoryOf(spec, spec.name());
  if (const Job* const user = UserOf(directory, jobs)) {
    return RefuseField(StatusCode::kInvalidArgument, "checkpoint.folder",
                       "is {}: the job's directory there, {}, is used by job {}", folder, directory,
                       user->id());
  }
  return directory;
}

// The caller may state what it found; only a worker that reads the commit back makes it verified.
v1::CheckpointRecord Unverified(v1::CheckpointRecord record) {
  record.set_verified(false);
  record.clear_doubted_by();
  record.clear_doubt();
  return record;
}

}  // namespace

StatusOr<Job> RebuildJob(const RebuildJobCall& call, uint64_t sequence,
                         const std::map<std::string, Job>& jobs, Turn& turn) {
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
  TROUPE_ASSIGN_OR_RETURN(const std::string directory, OwnDirectory(spec, jobs));
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
    std::string fault = FaultOf(checkpoint, job.id(), directory);
    if (fault.empty() &&
        !job.checkpoints.emplace(checkpoint.attempt(), Unverified(checkpoint)).second) {
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
  RecordEvent(job, event::kRebuilt,
              fmt::format("added to the catalog again from its {}",
                          CountText(job.checkpoints.size(), "checkpoint")),
              turn);
  return job;
}

}  // namespace troupe
