#include "coordinator/job_removal.h"

#include <algorithm>
#include <chrono>

#include "coordinator/deletion.h"
#include "coordinator/scheduler.h"

namespace troupe {
namespace {

constexpr auto kKeepEndedInterval = std::chrono::minutes(1);

// The job goes, with its requests, and those who asked for it are answered.
void Remove(const std::string& id, CoordinatorState& state, Turn& turn) {
  const auto job = state.jobs.find(id);
  const auto callers = state.delete_callers.find(id);
  if (callers != state.delete_callers.end()) {
    for (const CallId call : callers->second) ReplyWithJob(job->second, call, turn);
    state.delete_callers.erase(callers);
  }
  std::erase_if(state.requests, [&](const auto& request) {
    if (request.second != id) return false;
    turn.effects.writes.DeleteRequest(request.first);
    state.request_digests.erase(request.first);
    return true;
  });
  if (const uint64_t epoch = job->second.record.group_epoch(); epoch > state.epoch_floor) {
    state.epoch_floor = epoch;
    turn.effects.writes.PutEpochFloor(epoch);
  }
  turn.effects.writes.DeleteJob(id);
  turn.effects.forgotten_jobs.push_back(id);
  state.active.erase(id);
  state.queue.erase(QueueKeyOf(job->second));
  state.jobs.erase(job);
}

void BeginOrRemove(Job& job, bool checkpoints, CoordinatorState& state, Turn& turn) {
  const std::string id = job.id();
  if (BeginDeletion(job, checkpoints, turn)) {
    Remove(id, state, turn);
  } else {
    state.active.insert(id);  // it is looked at until it is gone
  }
}

}  // namespace

void DeleteJob(Job& job, const DeleteJobCall& event, CoordinatorState& state, Turn& turn) {
  const bool checkpoints = event.request.checkpoints();
  const Status status = CheckDeletable(job, checkpoints, state.fleet);
  if (!status.ok()) return ReplyWithError(event.call, status, turn);
  state.delete_callers[job.id()].push_back(event.call);
  BeginOrRemove(job, checkpoints, state, turn);
}

void RemoveIfDeleted(const std::string& id, CoordinatorState& state, Turn& turn) {
  const auto job = state.jobs.find(id);
  if (job == state.jobs.end() || !job->second.record.deleting()) return;
  if (job->second.checkpoints.empty()) Remove(id, state, turn);
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
    BeginOrRemove(state.jobs.at(id), false, state, turn);
  }
}

}  // namespace troupe
