#include "coordinator/machine/job_removal.h"

#include <algorithm>
#include <chrono>

#include "base/deadline.h"
#include "coordinator/job/deletion.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

constexpr auto kKeepEndedInterval = std::chrono::minutes(1);
// Time limit for deleting all files of a job.
constexpr Duration kRemovalLimit = std::chrono::minutes(5);
// Time limit for the files of aborted attempts alone; shorter than a client's deadline, because a
// caller waits.
constexpr Duration kLeftFilesLimit = std::chrono::seconds(20);
constexpr size_t kMostUsedRequests = 10'000;

// Asks every connected worker to forget the job: its ranks may have run on any worker.
void SendForgetJob(const std::string& id, Turn& turn) {
  v1::CoordinatorMessage gone;
  gone.mutable_forget_job()->set_job(id);
  for (const auto& [name, worker] : turn.fleet.workers) {
    if (worker.session != 0) SendToWorker(name, gone, turn);
  }
}

// Keeps the request of a removed job, in place of the one whose job was removed first if there are
// too many.
void KeepUsed(const std::string& request_key, const std::string& id, CoordinatorState& state,
              Turn& turn) {
  v1::UsedRequestRecord& record = state.used_requests[request_key];
  record.set_job(id);
  record.set_removed_wall_time_ns(turn.wall_ns);
  turn.effects.writes.PutUsedRequest(request_key, record);
  if (state.used_requests.size() <= kMostUsedRequests) return;
  const auto first = std::ranges::min_element(state.used_requests, {}, [](const auto& entry) {
    return entry.second.removed_wall_time_ns();
  });
  turn.effects.writes.DeleteUsedRequest(first->first);
  state.used_requests.erase(first);
}

// Answers a call whose job is removed now, perhaps by another call that leaves its checkpoints. All
// attempts of such a job are to be deleted, but only commits have the digest of a manifest.
void AnswerRemoved(const Job& job, const RemovalCaller& caller, Turn& turn) {
  const auto was_committed = [](const auto& entry) { return !entry.second.digest().empty(); };
  const auto first = std::ranges::find_if(job.checkpoints, was_committed);
  if (!caller.checkpoints || first == job.checkpoints.end())
    return ReplyWithJob(job, caller.call, turn);
  ReplyWithError(caller.call,
                 Aborted("another call has deleted job {} without its checkpoints, of which {} may "
                         "remain; {} is among them",
                         job.id(), std::ranges::count_if(job.checkpoints, was_committed),
                         first->second.path()),
                 turn);
}

// Removes the job and its requests and answers the callers that asked for the deletion.
void Remove(const std::string& id, CoordinatorState& state, Turn& turn) {
  const auto job = state.jobs.find(id);
  const auto removal = state.removals.find(id);
  if (removal != state.removals.end()) {
    for (const RemovalCaller& caller : removal->second.callers)
      AnswerRemoved(job->second, caller, turn);
    state.removals.erase(removal);
  }
  SendForgetJob(id, turn);
  std::erase_if(state.requests, [&](const auto& request) {
    if (request.second != id) return false;
    turn.effects.writes.DeleteRequest(request.first);
    state.request_digests.erase(request.first);
    if (job->second.record.only_once()) KeepUsed(request.first, id, state, turn);
    return true;
  });
  if (const uint64_t epoch = job->second.record.group_epoch(); epoch > state.epoch_floor) {
    state.epoch_floor = epoch;
    turn.effects.writes.PutEpochFloor(epoch);
  }
  turn.effects.writes.DeleteJob(id);
  turn.effects.forgotten_jobs.push_back(id);
  state.index.Remove(job->second);
  state.jobs.erase(job);
}

// Describes the worker that has not confirmed a deletion, and the files concerned.
std::string AwaitedRemoval(const Job& job) {
  if (CountToRemove(job) == 0 || job.last_group.ranks_size() == 0) return "no file was reported";
  return fmt::format(
      "{} has not confirmed that {} checkpoint attempts are removed, {} among them; its log may "
      "show why",
      job.last_group.ranks(0).worker(), CountToRemove(job), job.checkpoints.begin()->second.path());
}

void BeginOrRemove(Job& job, bool checkpoints, CoordinatorState& state, Turn& turn) {
  const std::string id = job.id();
  if (BeginDeletion(job, checkpoints, turn)) {
    Remove(id, state, turn);
  } else {
    state.index.Update(job, state.options.limits);  // it has a deadline until it is removed
  }
}

}  // namespace

void DeleteJob(Job& job, const DeleteJobCall& event, CoordinatorState& state, Turn& turn) {
  const bool checkpoints = event.request.checkpoints();
  const Status status = CheckDeletable(job, checkpoints, state.fleet);
  if (!status.ok()) return ReplyWithError(event.call, status, turn);
  const std::string id = job.id();
  JobRemoval& removal = state.removals[id];
  removal.callers.push_back({event.call, checkpoints});
  removal.deadline = turn.now + (checkpoints ? kRemovalLimit : kLeftFilesLimit);
  removal.checkpoints = checkpoints;
  BeginOrRemove(job, checkpoints, state, turn);
}

void AdoptRemoval(const Job& job, MonotonicTime now, CoordinatorState& state) {
  if (!job.record.deleting()) return;
  JobRemoval& removal = state.removals[job.id()];
  removal.deadline = now + kRemovalLimit;
  removal.checkpoints = RemovesCommits(job);
}

void EndLateRemovals(CoordinatorState& state, Turn& turn) {
  std::vector<std::string> late;
  for (const auto& [id, removal] : state.removals) {
    if (turn.now >= removal.deadline) late.push_back(id);
  }
  for (const std::string& id : late) {
    const Job& job = state.jobs.at(id);
    const std::string awaited = AwaitedRemoval(job);
    if (!state.removals.at(id).checkpoints || job.checkpoints.empty()) {
      turn.effects.notes.push_back(
          fmt::format("job {} is deleted, but some of its files remain: {}", id, awaited));
      Remove(id, state, turn);
      continue;
    }
    for (const RemovalCaller& caller : state.removals.at(id).callers) {
      ReplyWithError(
          caller.call,
          DeadlineExceeded("job {} is still being deleted after {:.0f} s: {}; try again, or delete "
                           "it without its checkpoints, whose files then remain",
                           id, ToSeconds(kRemovalLimit), awaited),
          turn);
    }
    state.removals.erase(id);
  }
}

std::optional<MonotonicTime> NextRemovalDeadline(const CoordinatorState& state) {
  std::optional<MonotonicTime> next;
  for (const auto& [id, removal] : state.removals) next = EarlierOf(next, removal.deadline);
  return next;
}

void RemoveIfDeleted(const std::string& id, CoordinatorState& state, Turn& turn) {
  const auto job = state.jobs.find(id);
  if (job == state.jobs.end() || !job->second.record.deleting()) return;
  if (CountToRemove(job->second) == 0) Remove(id, state, turn);
}

void LetEndedGo(CoordinatorState& state, Turn& turn) {
  const KeepEnded& keep = state.options.keep_ended;
  if (!keep.count && !keep.age) return;
  const auto& updates = turn.effects.updates;
  const bool any_ended = std::any_of(updates.begin(), updates.end(), [](const JobUpdate& update) {
    return update.update.has_end();
  });
  if (!any_ended && turn.now < state.keep_ended_time) return;
  state.keep_ended_time = turn.now + kKeepEndedInterval;
  for (const std::string& id : EndedJobsToDrop(state.jobs, state.fleet, keep, turn.wall_ns)) {
    state.removals[id].deadline = turn.now + kRemovalLimit;
    BeginOrRemove(state.jobs.at(id), false, state, turn);
  }
}

std::optional<MonotonicTime> NextTimeToLetEndedGo(const CoordinatorState& state) {
  const KeepEnded& keep = state.options.keep_ended;
  if (!keep.count && !keep.age) return std::nullopt;
  return state.keep_ended_time;
}

}  // namespace troupe
