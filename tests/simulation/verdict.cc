#include "tests/simulation/verdict.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "plan/job/job_rules.h"

namespace troupe::simulation {
namespace {

int64_t RanksOf(const v1::JobSpec& spec, bool smallest) {
  const v1::ParallelismSpec& axes = spec.parallelism();
  return axes.pipeline_parallel_degree() * axes.tensor_parallel_degree() *
         (smallest ? 1 : axes.data_parallel_replicate_degree());
}

}  // namespace

bool Verdict::IsLost(const std::string& job) const {
  return catalog_.lost_jobs().contains(job) && !mishaps_.rebuilt().contains(job) &&
         !catalog_.jobs().contains(job);
}

bool Verdict::IsOver(const std::string& id, int devices) const {
  const auto job = catalog_.jobs().find(id);
  if (job == catalog_.jobs().end()) return IsLost(id) || catalog_.IsDeleted(id);
  if (catalog_.HasEnded(id)) return true;
  const v1::JobSpec& spec = catalog_.submitted(id);
  const bool recovers = job->second.state() == v1::JOB_STATE_RECOVERING;
  const bool waits = recovers || job->second.state() == v1::JOB_STATE_QUEUED;
  // The job waits for its folder: on the host that has it, or until people mount it elsewhere.
  if (HasLoneFolder(id)) return true;
  const bool may_shrink = recovers && spec.fault_tolerance().allow_layout_change();
  return waits && RanksOf(spec, may_shrink) > devices;
}

bool Verdict::KeepsFewEnded() const {
  const auto counts = [&](const auto& job) {
    return catalog_.HasEnded(job.first) &&
           job.second.failure().cause() != "FINAL_CHECKPOINT_UNWRITABLE";
  };
  const auto& jobs = catalog_.jobs();
  return !keep_ended_.count ||
         std::count_if(jobs.begin(), jobs.end(), counts) <= *keep_ended_.count;
}

bool Verdict::AllEnded(int devices, const std::set<std::string>& left) const {
  const size_t calls = load_.calls.size() + mishaps_.further_calls();
  if (!mishaps_.is_over() || outcomes_.size() < calls) return false;
  for (const v1::JobSpec& spec : load_.specs) {
    if (!IsOver(spec.name(), devices)) return false;
  }
  // A job cannot be deleted while one of its ranks may live, or while a file must be deleted on a
  // worker that is away.
  if (left.empty() && !KeepsFewEnded()) return false;
  for (size_t i = 0; i < outcomes_.size(); ++i) {
    // Calls about a job that is lost or waits forever may get no answer.
    if (outcomes_[i].answered) continue;
    if (i >= load_.calls.size()) return false;
    if (load_.calls[i].kind == CallKind::kDeleteJob && !left.empty()) continue;
    const std::string& job = load_.calls[i].job;
    if (!IsOver(job, devices)) return false;
    // A job that waits for its folder may still end through a cancel.
    if (catalog_.HasEnded(job) && !HasLoneFolder(job)) return false;
  }
  return true;
}

void Verdict::Judge(const std::set<std::string>& left) {
  for (const v1::JobSpec& spec : load_.specs) {
    if (catalog_.HasEnded(spec.name())) JudgeJob(spec.name());
  }
  for (const v1::CheckpointRecord& commit : catalog_.kept_commits()) {
    const bool shared = world_.storage.IsOfSharedFolder(commit.folder_id());
    const bool kept = !shared || world_.storage.IsCorrupt(commit.path()) ||
                      world_.storage.ReadOfTruth(commit.path(), commit.digest()).ok();
    world_.truth.Check(
        kept, kDeletion,
        fmt::format("{} of the deleted job {} is gone", commit.path(), commit.job()));
  }
  // The ranks on a worker that is away are unknown until their tickets end, which is after the run.
  int held = 0;
  std::set<std::string> holders;
  for (const auto& [key, lease] : catalog_.leases()) {
    const bool over = catalog_.HasEnded(lease.job()) || catalog_.IsDeleted(lease.job());
    // A rank that is blocked in a write and cannot be killed keeps its device.
    const bool blocked = world_.BlockedFor(LeasedWorker(key)) > Duration::zero();
    // The run does not wait for the end of a job with a lone folder, which may have come just now.
    const bool lone = catalog_.jobs().contains(lease.job()) && HasLoneFolder(lease.job());
    if (left.contains(LeasedWorker(key)) || blocked || lone || !over) continue;
    ++held;
    holders.insert(fmt::format("{} epoch {}", lease.job(), lease.group_epoch()));
  }
  world_.truth.Check(held == 0, 16,
                     fmt::format("{} devices are still leased after every job ended, to {}", held,
                                 fmt::join(holders, ", ")));
}

bool Verdict::HasLoneFolder(const std::string& id) const {
  const v1::JobSpec& spec = catalog_.submitted(id);
  if (HasPrivateFolder(spec)) return true;
  const std::string& folder_id = catalog_.jobs().at(id).folder_id();
  return HasCheckpointFolder(spec) && !folder_id.empty() &&
         !world_.storage.IsOfSharedFolder(folder_id);
}

bool Verdict::MayFail(const std::string& id, const std::string& cause) const {
  const v1::JobRecord& job = catalog_.jobs().at(id);
  if (load_.natures.at(id).crash_at_step != 0 || cause == "NO_RESTORABLE_CHECKPOINT") return true;
  if (HasLoneFolder(id)) return true;
  // At the first start nobody can distinguish a folder that is not shared from a lost mount. The
  // job, which has done nothing yet, ends at once and names the host.
  if (cause == "STORAGE") return job.highest_step() == 0 && !world_.lost_mounts.empty();
  // A bad host, or one whose writes hang, writes no last checkpoint, and its ranks hold the only
  // copy of the state.
  if (cause == "FINAL_CHECKPOINT_UNWRITABLE") {
    const double limit = catalog_.submitted(id).checkpoint().final_save_seconds();
    if (limit < kFinalSave * load_.detection_seconds) return true;
    const v1::GroupRecord* const group = catalog_.Group(id);
    return group != nullptr &&
           std::any_of(group->ranks().begin(), group->ranks().end(),
                       [this](const v1::RankPlacement& placement) {
                         const std::string& worker = placement.worker();
                         return world_.FaultOf(worker) == HostFault::kCannotWrite ||
                                world_.blocked_writes.contains(worker);
                       });
  }
  return false;
}

void Verdict::JudgeJob(const std::string& id) {
  Truth& truth = world_.truth;
  const v1::JobRecord& job = catalog_.jobs().at(id);
  const std::string& cause = job.failure().cause();
  const bool failed = job.state() == v1::JOB_STATE_FAILED;
  const bool crashes = load_.natures.at(id).crash_at_step != 0;
  // A job with a single commit that was corrupted on disk must not start again from its seed. Here,
  // and on restore, it is checked that it had no other commit and that the quarantined ones are
  // bad.
  const bool lost = cause == "NO_RESTORABLE_CHECKPOINT";
  if (lost) {
    truth.Check(catalog_.Head(id) == nullptr, 11,
                id + " ended without a restorable commit, and has one");
  }
  const std::string end = fmt::format("{} is {}: {} {}", id, v1::JobState_Name(job.state()), cause,
                                      job.failure().message());
  truth.Check(!failed || cause != "RESTART_BUDGET" || crashes, kBudget, end);
  truth.Check(failed ? MayFail(id, cause) : !crashes, 16, end);
  JudgeHead(id, job);
}

void Verdict::JudgeHead(const std::string& id, const v1::JobRecord& job) {
  const v1::JobSpec& spec = catalog_.submitted(id);
  if (HasLoneFolder(id)) return;
  const v1::CheckpointRecord* const head = catalog_.Head(id);
  if (job.state() == v1::JOB_STATE_SUCCEEDED && HasCheckpointFolder(spec)) {
    const int64_t steps = spec.training().steps();
    world_.truth.Check(
        (head != nullptr && head->step() == steps) || catalog_.HasQuarantined(id, steps), 11,
        fmt::format("{} succeeded with its head at step {} of {}", id,
                    head == nullptr ? -1 : head->step(), steps));
  }
  if (head == nullptr || world_.storage.IsCorrupt(head->path())) return;
  const StatusOr<Restored> restored = world_.storage.ReadOfTruth(head->path(), head->digest());
  world_.truth.Check(restored.ok(), 11,
                     fmt::format("{}: the head: {}", id, ToString(restored.status())));
}

}  // namespace troupe::simulation
