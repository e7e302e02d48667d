#include "coordinator/machine/traces.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/state/job_state.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr int64_t kStepsMax = 100;
constexpr int64_t kBytesMax = 256 << 20;

Status CheckSteps(const Job& job, const v1::TraceJobRequest& request) {
  if (request.first_step() < 1 || request.last_step() < request.first_step()) {
    return RefuseField(StatusCode::kInvalidArgument, "steps",
                       "are {} to {}: the first must be at least 1 and not after the last",
                       request.first_step(), request.last_step());
  }
  if (request.last_step() > job.steps()) {
    return RefuseField(StatusCode::kInvalidArgument, "steps",
                       "are {} to {}, but job {} has training.steps {}", request.first_step(),
                       request.last_step(), job.id(), job.steps());
  }
  if (request.last_step() - request.first_step() >= kStepsMax) {
    return RefuseField(StatusCode::kInvalidArgument, "steps",
                       "are {} to {}, which are more than {}", request.first_step(),
                       request.last_step(), kStepsMax);
  }
  if (job.last_group.ranks_size() == 0) {
    return FailedPrecondition("job {} has not run: it is {}", job.id(), StateName(ShownState(job)));
  }
  if (HasEnded(job) && request.last_step() > job.record.step()) {
    return FailedPrecondition("job {} is {} and completed steps up to {}, not {}", job.id(),
                              StateName(ShownState(job)), job.record.step(), request.last_step());
  }
  return OkStatus();
}

void Finish(uint64_t number, Status status, Traces* traces, Turn& turn) {
  const auto found = traces->pending.find(number);
  PendingTrace pending = std::move(found->second);
  traces->pending.erase(found);
  if (!status.ok()) return ReplyWithError(pending.call, std::move(status), turn);
  turn.effects.replies.push_back({pending.call, OkStatus(), std::move(pending.answered)});
}

void SendRequest(const std::string& worker, const v1::TraceRequest& request,
                 const std::vector<int32_t>& ranks, Turn& turn) {
  v1::CoordinatorMessage message;
  *message.mutable_trace_request() = request;
  message.mutable_trace_request()->mutable_ranks()->Assign(ranks.begin(), ranks.end());
  SendToWorker(worker, std::move(message), turn);
}

}  // namespace

void AskForTrace(const Job& job, CallId call, const v1::TraceJobRequest& request, Traces* traces,
                 Turn& turn) {
  if (Status status = CheckSteps(job, request); !status.ok()) {
    return ReplyWithError(call, std::move(status), turn);
  }
  std::map<std::string, std::vector<int32_t>> ranks_of;
  PendingTrace pending;
  for (const v1::RankPlacement& placement : job.last_group.ranks()) {
    ranks_of[placement.worker()].push_back(placement.rank());
    pending.outstanding[placement.rank()] = placement.worker();
  }
  for (const auto& [name, ranks] : ranks_of) {
    const Worker* const worker = FindWorker(name, turn.fleet);
    if (worker != nullptr && worker->session != 0) continue;
    return ReplyWithError(
        call,
        FailedPrecondition("the traces of job {}'s ranks {} are on {}, which cannot be reached now",
                           job.id(), fmt::join(ranks, ", "), name),
        turn);
  }
  const uint64_t number = ++traces->last_request;
  pending.call = call;
  pending.deadline = turn.now + turn.limits().trace;
  pending.request.set_request(number);
  pending.request.set_job(job.id());
  pending.request.set_group_epoch(job.last_group.group_epoch());
  pending.request.set_first_step(request.first_step());
  pending.request.set_last_step(request.last_step());
  for (const auto& [worker, ranks] : ranks_of) SendRequest(worker, pending.request, ranks, turn);
  traces->pending[number] = std::move(pending);
}

void OnRankTrace(const v1::RankTrace& trace, Traces* traces, Turn& turn) {
  PendingTrace& pending = traces->pending.at(trace.request());
  pending.outstanding.erase(trace.rank());
  if (trace.code() != 0) {
    return Finish(trace.request(),
                  MakeStatus(static_cast<StatusCode>(trace.code()), trace.message()), traces, turn);
  }
  pending.bytes += static_cast<int64_t>(trace.ByteSizeLong());
  if (pending.bytes > kBytesMax) {
    return Finish(
        trace.request(),
        ResourceExhausted("the trace has more than {} bytes: ask for fewer steps", kBytesMax),
        traces, turn);
  }
  *pending.answered.add_ranks() = trace;
  if (!pending.outstanding.empty()) return;
  auto& ranks = *pending.answered.mutable_ranks();
  std::sort(ranks.pointer_begin(), ranks.pointer_end(),
            [](const v1::RankTrace* a, const v1::RankTrace* b) { return a->rank() < b->rank(); });
  Finish(trace.request(), OkStatus(), traces, turn);
}

void AskAgainAfterEnd(const v1::RankStopped& stopped, const std::string& worker,
                      const Traces& traces, Turn& turn) {
  for (const auto& [number, pending] : traces.pending) {
    if (pending.request.job() != stopped.job() ||
        pending.request.group_epoch() != stopped.group_epoch() ||
        !pending.outstanding.contains(stopped.rank()) ||
        pending.outstanding.at(stopped.rank()) != worker) {
      continue;
    }
    SendRequest(worker, pending.request, {stopped.rank()}, turn);
  }
}

void ExpireTraces(Traces* traces, Turn& turn) {
  std::vector<uint64_t> late;
  for (const auto& [number, pending] : traces->pending) {
    if (turn.now >= pending.deadline) late.push_back(number);
  }
  for (const uint64_t number : late) {
    const PendingTrace& pending = traces->pending.at(number);
    std::vector<int32_t> silent;
    for (const auto& [rank, worker] : pending.outstanding) silent.push_back(rank);
    Finish(number,
           DeadlineExceeded("steps {} to {} of job {} were not all completed within {:.0f} s: rank "
                            "{} did not answer",
                            pending.request.first_step(), pending.request.last_step(),
                            pending.request.job(), ToSeconds(turn.limits().trace),
                            fmt::join(silent, ", ")),
           traces, turn);
  }
}

void AbandonTrace(CallId call, Traces* traces) {
  std::erase_if(traces->pending, [call](const auto& entry) { return entry.second.call == call; });
}

std::optional<MonotonicTime> NextTraceDeadline(const Traces& traces) {
  std::optional<MonotonicTime> next;
  for (const auto& [number, pending] : traces.pending) next = EarlierOf(next, pending.deadline);
  return next;
}

}  // namespace troupe
