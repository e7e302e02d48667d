#include "coordinator/machine/log_reads.h"

#include <fmt/ranges.h>

#include <utility>

#include "base/deadline.h"
#include "base/text/count_text.h"
#include "coordinator/state/job_state.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

void EndCall(CallId call, Status status, Turn& turn) {
  turn.effects.logs.push_back({call, std::move(status), {}, true});
}

}  // namespace

void AskForLogs(const Job& job, CallId call, const v1::ReadJobLogsRequest& request, LogReads* reads,
                Turn& turn) {
  const bool one = request.has_rank();
  if (one && (request.rank() < 0 || request.rank() >= job.plan.ranks_size())) {
    return EndCall(call,
                   RefuseField(StatusCode::kNotFound, "rank", "is {}; job {} has ranks 0 to {}",
                               request.rank(), job.id(), job.plan.ranks_size() - 1),
                   turn);
  }
  std::set<WorkerLife> workers;
  std::set<std::string> away;
  for (const v1::RankPlacement& placement : job.last_group.ranks()) {
    if (one && placement.rank() != request.rank()) continue;
    const Worker* const worker = FindWorker(placement.worker(), turn.fleet);
    if (worker != nullptr && worker->session != 0) {
      workers.insert(LifeOf(*worker));
    } else {
      away.insert(placement.worker());
    }
  }
  if (workers.empty()) {
    // A job that never ran has logged nothing.
    return EndCall(
        call,
        away.empty()
            ? OkStatus()
            : FailedPrecondition("the log lines of job {} are on {}, which cannot be reached now",
                                 job.id(), fmt::join(away, ", ")),
        turn);
  }
  if (!away.empty()) {
    turn.effects.logs.push_back(
        {call,
         OkStatus(),
         {fmt::format("… the log lines on {} are missing: no connection now",
                      fmt::join(away, ", "))},
         false});
  }
  const uint64_t number = ++reads->last_request;
  v1::CoordinatorMessage message;
  message.mutable_read_logs()->set_request(number);
  message.mutable_read_logs()->set_job(job.id());
  message.mutable_read_logs()->set_rank(one ? request.rank() : -1);
  for (const WorkerLife& worker : workers) SendToWorker(worker.name, message, turn);
  reads->pending[number] = {call, std::move(workers), turn.now + turn.limits().logs};
}

void OnLogLines(const v1::LogLines& lines, const WorkerLife& sender, LogReads* reads, Turn& turn) {
  const auto pending = reads->pending.find(lines.request());
  if (lines.last()) pending->second.outstanding.erase(sender);
  const bool last = pending->second.outstanding.empty();
  turn.effects.logs.push_back(
      {pending->second.call, OkStatus(), {lines.lines().begin(), lines.lines().end()}, last});
  if (last) reads->pending.erase(pending);
}

void ExpireLogs(LogReads* reads, Turn& turn) {
  std::erase_if(reads->pending, [&](const auto& entry) {
    const PendingLogs& logs = entry.second;
    if (turn.now < logs.deadline) return false;
    EndCall(logs.call,
            DeadlineExceeded("{} did not answer", CountText(logs.outstanding.size(), "worker")),
            turn);
    return true;
  });
}

void AbandonLogs(CallId call, LogReads* reads) {
  std::erase_if(reads->pending, [call](const auto& entry) { return entry.second.call == call; });
}

std::optional<MonotonicTime> NextLogDeadline(const LogReads& reads) {
  std::optional<MonotonicTime> next;
  for (const auto& [number, pending] : reads.pending) next = EarlierOf(next, pending.deadline);
  return next;
}

}  // namespace troupe
