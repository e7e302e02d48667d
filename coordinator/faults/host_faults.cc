#include "coordinator/faults/host_faults.h"

#include <algorithm>
#include <utility>

#include "base/deadline.h"
#include "base/failure_cause.h"
#include "checkpoint/format/folder.h"
#include "coordinator/faults/culprit.h"
#include "coordinator/state/job_failure.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

// Time beyond the burn-in itself, for the process start, access to folders and the answer's
// transfer.
constexpr Duration kBurnInAllowance = std::chrono::seconds(120);

void Record(const std::string& worker, Turn& turn) {
  const HostBlame& blame = turn.fleet.blame.at(worker);
  const Duration half_life = turn.limits().blame_half_life;
  if (HasDecayed(blame, turn.now, half_life)) {
    turn.effects.writes.DeleteBlame(worker);
    turn.fleet.blame.erase(worker);
  } else {
    turn.effects.writes.PutBlame(ToRecord(worker, blame, turn.now, half_life));
  }
}

void Lay(const std::string& worker, HostFault fault, Turn& turn) {
  for (const std::string& part :
       LayFault(worker, std::move(fault), turn.limits(), turn.wall_ns, &turn.fleet.blame)) {
    turn.effects.notes.push_back(
        fmt::format("{} is set aside: {}", part,
                    Shortened(turn.fleet.blame.at(worker).set_aside.back().reason)));
  }
  Record(worker, turn);
}

bool IsIdle(const std::string& worker, const Fleet& fleet) {
  const auto lease = fleet.leases.lower_bound({worker, 0});
  return lease == fleet.leases.end() || lease->first.first != worker;
}

MonotonicTime BurnInTimeOf(const HostBlame& blame) {
  MonotonicTime last = blame.set_aside.front().burn_in_time;
  for (const SetAside& part : blame.set_aside) last = std::max(last, part.burn_in_time);
  return last;
}

void AskForBurnIn(const std::string& worker, HostBlame& blame, Turn& turn) {
  const Duration limit = turn.limits().burn_in;
  blame.burn_in = ++turn.fleet.last_burn_in;
  blame.burn_in_deadline = turn.now + limit + kBurnInAllowance;
  v1::CoordinatorMessage message;
  message.mutable_burn_in()->set_request(blame.burn_in);
  message.mutable_burn_in()->set_seconds(ToSeconds(limit));
  for (const std::string& folder : FoldersToTry(blame, turn.now, turn.limits().blame_half_life))
    message.mutable_burn_in()->add_folders(folder);
  SendToWorker(worker, std::move(message), turn);
}

void Postpone(const std::string& worker, const std::string& reason, Turn& turn) {
  PostponeBurnIn(reason, turn.limits(), turn.now, turn.wall_ns, &turn.fleet.blame.at(worker));
  turn.effects.notes.push_back(fmt::format("{} stays set aside: {}", worker, Shortened(reason)));
  Record(worker, turn);
}

}  // namespace

void LayToHost(const Job& job, const v1::Failure& failure, HostFault fault, Turn& turn) {
  const Blamed blamed = CulpritOf(failure).blamed;
  if (blamed == Blamed::kNobody || failure.worker().empty()) return;
  fault.job = job.id();
  fault.time = turn.now;
  fault.text = FailureText(failure);
  const bool has_rank = failure.rank() >= 0 && failure.rank() < job.plan.ranks_size();
  if (blamed == Blamed::kDevice && has_rank) {
    fault.device = job.plan.ranks(failure.rank()).device();
  }
  Lay(failure.worker(), std::move(fault), turn);
}

void LayBrokenLink(const Job& job, const v1::Failure& failure,
                   const std::set<std::string>& suspects, Turn& turn) {
  for (const std::string& worker : suspects) {
    Lay(worker,
        {.job = job.id(),
         .weight = 1.0 / static_cast<double>(suspects.size()),
         .time = turn.now,
         .text = FailureText(failure)},
        turn);
  }
}

void LayFailedWrite(const Job& job, int32_t rank, const std::string& reason, Turn& turn) {
  Lay(job.plan.ranks(rank).worker(),
      {.job = job.id(),
       .time = turn.now,
       .text = fmt::format("CHECKPOINT_FAILED: rank {}: {}", rank, reason),
       .folder = FolderIdPath(job.spec.checkpoint().folder(), job.record.folder_id())},
      turn);
}

void LayWrongReading(const Job& job, const v1::CheckpointRecord& record, const std::string& text,
                     Turn& turn) {
  Lay(record.doubted_by(),
      {.job = job.id(),
       .time = turn.now,
       .text = "BAD_CHECKPOINT: " + text,
       .folder = FolderIdPath(FolderOfAttempt(record.path()), record.folder_id())},
      turn);
}

void Forgive(const Job& job, Turn& turn) {
  for (const std::string& worker :
       WithdrawFaults(job.id(), turn.limits(), turn.now, &turn.fleet.blame)) {
    Record(worker, turn);
  }
}

void StartBurnIns(Turn& turn) {
  std::vector<std::string> overdue;
  std::erase_if(turn.fleet.blame, [&](const auto& entry) {
    const bool over = HasDecayed(entry.second, turn.now, turn.limits().blame_half_life);
    if (over) turn.effects.writes.DeleteBlame(entry.first);
    return over;
  });
  for (auto& [worker, blame] : turn.fleet.blame) {
    if (blame.set_aside.empty()) continue;
    const Worker* const there = FindWorker(worker, turn.fleet);
    const bool connected = there != nullptr && there->session != 0;
    if (blame.burn_in != 0) {
      // Dropped if ranks were placed on the worker or it has gone; the next occasion repeats it.
      if (!connected || !IsIdle(worker, turn.fleet)) blame.burn_in = 0;
      if (blame.burn_in != 0 && turn.now >= blame.burn_in_deadline) overdue.push_back(worker);
      continue;
    }
    if (connected && IsIdle(worker, turn.fleet) && turn.now >= BurnInTimeOf(blame)) {
      AskForBurnIn(worker, blame, turn);
    }
  }
  for (const std::string& worker : overdue) Postpone(worker, "its burn-in has not completed", turn);
}

void AskForBurnInAnew(const std::string& worker, Turn& turn) {
  const auto found = turn.fleet.blame.find(worker);
  if (found != turn.fleet.blame.end()) found->second.burn_in = 0;
}

void OnBurnInDone(const v1::BurnInDone& message, const std::string& worker, Turn& turn) {
  const auto found = turn.fleet.blame.find(worker);
  if (found == turn.fleet.blame.end() || message.request() == 0 ||
      found->second.burn_in != message.request()) {
    return;
  }
  if (!message.sound()) {
    Postpone(worker, "burn-in: " + message.reason(), turn);
    return;
  }
  LiftSetAside(&found->second);
  turn.effects.notes.push_back(
      fmt::format("{} is available again: its burn-in found no fault", worker));
  Record(worker, turn);
  turn.reschedule = true;
}

std::optional<MonotonicTime> NextBurnInTime(const Fleet& fleet) {
  std::optional<MonotonicTime> next;
  for (const auto& [worker, blame] : fleet.blame) {
    if (blame.set_aside.empty()) continue;
    const Worker* const there = FindWorker(worker, fleet);
    if (there == nullptr || there->session == 0 || !IsIdle(worker, fleet)) continue;
    next = EarlierOf(next, blame.burn_in != 0 ? blame.burn_in_deadline : BurnInTimeOf(blame));
  }
  return next;
}

}  // namespace troupe
