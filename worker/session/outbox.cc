#include "worker/session/outbox.h"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace troupe::session {
namespace {

// Ends of ranks that are kept while there is no stream; each device has at most a few.
constexpr size_t kUnsentMax = 1024;
// Limit of reports sent before the coordinator has recorded some, so that neither side queues those
// of a whole night.
constexpr size_t kReportsTogether = 4096;

std::string KindOf(const v1::WorkerMessage& message) {
  const auto* kind = message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->FindOneofByName("message"));
  return kind == nullptr ? "empty" : kind->name();
}

}  // namespace

void Send(State& state, Effects& effects, v1::WorkerMessage message) {
  if (state.link != Link::kUp) return;
  message.set_leader_epoch(state.leader_epoch);
  effects.push_back(SendToCoordinator{std::move(message)});
}

void SendOrKeep(State& state, Effects& effects, v1::WorkerMessage message) {
  if (state.link == Link::kUp) return Send(state, effects, std::move(message));
  if (state.unsent.size() == kUnsentMax) {
    effects.push_back(
        Note{fmt::format("{} messages wait for a stream, the most that are kept: the "
                         "oldest, {}, is dropped",
                         kUnsentMax, KindOf(state.unsent.front()))});
    state.unsent.pop_front();
  }
  state.unsent.push_back(std::move(message));
}

void SendCores(State& state, Effects& effects, const std::string& job, uint64_t epoch, int rank,
               const v1::CoreSet& cores) {
  if (cores.cores().empty()) return;
  v1::WorkerMessage message;
  v1::RankCores& report = *message.mutable_rank_cores();
  report.set_job(job);
  report.set_group_epoch(epoch);
  report.set_rank(rank);
  *report.mutable_cores() = cores;
  Send(state, effects, std::move(message));
}

void SendReports(State& state, Group& group, Effects& effects) {
  group.sent_step.reset();
  size_t sent = 0;
  for (const auto& [step, report] : group.reports) {
    Send(state, effects, report);
    if (++sent < kReportsTogether) continue;
    if (step == group.reports.rbegin()->first) break;
    group.sent_step = step;
    return;
  }
  // Sent after all reports, because a manifest may end the job and its history.
  for (const auto& [attempt, manifest] : group.manifests) Send(state, effects, manifest);
}

void SendAgain(State& state, Effects& effects) {
  for (auto it = state.groups.begin(); it != state.groups.end();) {
    Group& group = it->second;
    for (const auto& [rank, record] : group.ranks) {
      for (const auto& message :
           {record.slice_device, record.address, record.ready, record.failed}) {
        if (message) Send(state, effects, *message);
      }
      SendCores(state, effects, it->first, group.epoch, rank, record.cores);
    }
    // Votes are sent before reports, as they were made: the report of a step long after an
    // attempt's step implies that the attempt was skipped.
    for (const auto& [key, vote] : group.votes) Send(state, effects, vote);
    SendReports(state, group, effects);
    it = group.ranks.empty() ? state.groups.erase(it) : std::next(it);
  }
  for (v1::WorkerMessage& message : state.unsent) Send(state, effects, std::move(message));
  state.unsent.clear();
}

}  // namespace troupe::session
