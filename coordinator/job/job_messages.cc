#include "coordinator/job/job_messages.h"

#include <set>
#include <string>
#include <utility>
#include <variant>

#include "coordinator/job/job_view.h"

namespace troupe {

void SendToGroup(const Job& job, const v1::CoordinatorMessage& message, Turn& turn) {
  std::set<std::string> workers;
  for (const v1::RankPlacement& placement : job.plan.ranks()) workers.insert(placement.worker());
  for (const std::string& worker : workers) SendToWorker(worker, message, turn);
}

void ReplyWithJob(const Job& job, CallId call, Turn& turn) {
  turn.effects.replies.push_back({call, OkStatus(), DescribeJob(job, true)});
}

void ReplyWithError(CallId call, Status status, Turn& turn) {
  turn.effects.replies.push_back({call, std::move(status), std::monostate()});
}

}  // namespace troupe
