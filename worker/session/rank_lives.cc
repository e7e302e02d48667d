#include "worker/session/rank_lives.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/failure_cause.h"
#include "base/status.h"
#include "plan/cost/checkpoint_write.h"
#include "plan/cost/slowest_step.h"
#include "worker/session/cores.h"
#include "worker/session/outbox.h"
#include "worker/session/rank_log_path.h"

namespace troupe::session {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(50);

// Reports a rank that cannot begin here as one that stopped at once.
void RefuseRank(State& state, const v1::StartRanks& start, int rank, std::string why,
                Effects& effects, std::string_view cause = {}) {
  v1::WorkerMessage message;
  v1::RankStopped& stopped = *message.mutable_rank_stopped();
  stopped.set_job(start.job());
  stopped.set_group_epoch(start.group_epoch());
  stopped.set_rank(rank);
  stopped.set_crashed(true);
  stopped.set_message(std::move(why));
  stopped.set_cause(std::string(cause));
  SendOrKeep(state, effects, std::move(message));
}

void KillOlderGroup(State& state, const std::string& job, uint64_t epoch, Effects& effects) {
  for (size_t i = 0; i < state.devices.size(); ++i) {
    Device& device = state.devices[i];
    if (device.job == job && device.group_epoch < epoch) {
      Kill(state, static_cast<int>(i), fmt::format("group epoch {} of {} has begun", epoch, job),
           effects);
    }
    if (device.next && device.next->start().job() == job &&
        device.next->start().group_epoch() < epoch) {
      device.next.reset();
    }
  }
}

// The limit of a collective. A collective may wait as long as another rank computes. The
// coordinator knows how long a step takes and ends the epoch of a job that hangs; the ranks' own
// watchdog, which can name the operation, comes a little earlier unless a step may take that long:
// five steps of the slowest processor worth training on.
double HangSeconds(const v1::StartRanks& start, const TimeLimits& limits) {
  constexpr double kBeforeCoordinator = 0.9;
  const double coordinator =
      std::max(start.spec().fault_tolerance().hang_seconds(), ToSeconds(limits.startup_allowance));
  return std::max(kBeforeCoordinator * coordinator, 5 * SlowestStepSeconds(start.plan()));
}

std::vector<int> RanksOnHost(const v1::Plan& plan, const std::string& host) {
  std::vector<int> ranks;
  for (const v1::RankPlacement& placement : plan.ranks()) {
    if (placement.host() == host) ranks.push_back(placement.rank());
  }
  return ranks;
}

v1::BeginRank MakeBegin(const State& state, const v1::StartRanks& start,
                        const v1::RankPlacement& placement) {
  const int rank = placement.rank();
  v1::BeginRank begin;
  *begin.mutable_start() = start;
  begin.set_rank(rank);
  begin.set_incarnation(state.config.identity.incarnation());
  begin.set_image_directory(state.config.image_directory);
  begin.set_tuning_directory(state.config.tuning_directory);
  begin.set_executable_directory(state.config.executable_directory);
  begin.set_log_path(RankLogPath(state.config, start.job(), rank));
  begin.set_ranks_on_host(static_cast<int>(RanksOnHost(start.plan(), placement.host()).size()));
  begin.set_cores_on_host(static_cast<int>(state.config.allowed_cores.size()));
  begin.set_core_table_fault(state.core_table_fault);
  begin.set_abort_seconds(ToSeconds(state.limits.abort));
  // A rank may also wait while another one writes a checkpoint.
  begin.set_hang_seconds(HangSeconds(start, state.limits) +
                         CheckpointWriteSeconds(start.spec(), start.plan()));
  return begin;
}

}  // namespace

Duration Backoff(int failures, Duration limit) {
  if (failures <= 0) return Duration::zero();
  return std::min<Duration>(limit, kFirstBackoff * (int64_t{1} << std::min(failures - 1, 16)));
}

bool MayStart(const Device& device) {
  return device.process == ProcessState::kNone && device.condemned.empty();
}

void StartDevice(State& state, int index, MonotonicTime now, Effects& effects) {
  Device& device = state.devices[index];
  device.process = ProcessState::kStarting;
  device.kill_at = now + state.limits.process_start;
  effects.push_back(StartProcess{index});
}

void Kill(State& state, int index, std::string reason, Effects& effects) {
  Device& device = state.devices[index];
  if (device.process == ProcessState::kNone || device.process == ProcessState::kKilled) return;
  device.process = ProcessState::kKilled;
  effects.push_back(KillProcess{index, std::move(reason)});
}

Group* FindGroup(State& state, const std::string& job, uint64_t epoch) {
  const auto found = state.groups.find(job);
  return found == state.groups.end() || found->second.epoch != epoch ? nullptr : &found->second;
}

void EndRank(State& state, int index, v1::RankStopped stopped, Effects& effects) {
  Device& device = state.devices[index];
  stopped.set_job(device.job);
  stopped.set_group_epoch(device.group_epoch);
  stopped.set_rank(device.rank);
  if (Group* group = FindGroup(state, device.job, device.group_epoch)) {
    group->ranks.erase(device.rank);
    state.cores_stale = true;
    if (group->ranks.empty() && (state.link == Link::kUp || group->reports.empty()))
      state.groups.erase(device.job);
  }
  device.job.clear();
  device.rank = -1;
  v1::WorkerMessage message;
  *message.mutable_rank_stopped() = std::move(stopped);
  SendOrKeep(state, effects, std::move(message));
}

void BeginNext(State& state, int index, Effects& effects) {
  Device& device = state.devices[index];
  if (device.process != ProcessState::kIdle || !device.next) return;
  device.process = ProcessState::kBusy;
  device.job = device.next->start().job();
  device.group_epoch = device.next->start().group_epoch();
  device.rank = device.next->rank();
  v1::RankCommand command;
  *command.mutable_begin() = std::move(*device.next);
  device.next.reset();
  if (Group* group = FindGroup(state, device.job, device.group_epoch)) {
    const v1::CoreSet& cores = group->ranks[device.rank].cores;
    *command.mutable_begin()->mutable_cores() = cores;
    SendCores(state, effects, device.job, device.group_epoch, device.rank, cores);
  }
  effects.push_back(SendToRank{index, std::move(command)});
}

void OnStartRanks(State& state, const v1::StartRanks& start, MonotonicTime now, Effects& effects) {
  uint64_t& highest = state.highest_epoch[start.job()];
  if (start.group_epoch() <= highest) return;  // stale, or a repetition
  highest = start.group_epoch();
  KillOlderGroup(state, start.job(), start.group_epoch(), effects);
  Group group;
  group.epoch = start.group_epoch();
  const v1::Plan& plan = start.plan();
  group.threads = std::max(1, plan.threads_per_rank());
  group.begin_ns = static_cast<uint64_t>(now.time_since_epoch().count());
  for (const int rank : start.ranks()) {
    if (rank < 0 || rank >= plan.ranks_size()) {
      RefuseRank(state, start, rank,
                 fmt::format("rank {} is not below {}", rank, plan.ranks_size()), effects);
      continue;
    }
    const v1::RankPlacement& placement = plan.ranks(rank);
    const int index = placement.device();
    if (index < 0 || index >= static_cast<int>(state.devices.size())) {
      RefuseRank(state, start, rank, fmt::format("there is no device {}", index), effects);
      continue;
    }
    Device& device = state.devices[index];
    if (!device.condemned.empty()) {
      RefuseRank(state, start, rank,
                 fmt::format("device {} is condemned: {}", index, device.condemned), effects,
                 cause::kDeviceFault);
      continue;
    }
    const bool taken =
        device.next || (!device.job.empty() && device.process == ProcessState::kBusy);
    if (taken) {
      RefuseRank(state, start, rank,
                 fmt::format("device {} has rank {} of {}", index,
                             device.next ? device.next->rank() : device.rank,
                             device.next ? device.next->start().job() : device.job),
                 effects);
      continue;
    }
    v1::BeginRank begin = MakeBegin(state, start, placement);
    device.next = std::move(begin);
    group.ranks[rank].device = index;
    if (group.ranks_on_host.empty()) group.ranks_on_host = RanksOnHost(plan, placement.host());
  }
  std::vector<int> indices;
  for (const auto& [rank, record] : group.ranks) indices.push_back(record.device);
  if (!group.ranks.empty()) state.groups[start.job()] = std::move(group);
  DivideHostCores(state, effects);
  for (int index : indices) BeginNext(state, index, effects);
}

void RefuseNext(State& state, int index, std::string why, Effects& effects) {
  const v1::BeginRank begin = *std::exchange(state.devices[index].next, std::nullopt);
  const v1::StartRanks& start = begin.start();
  if (Group* group = FindGroup(state, start.job(), start.group_epoch())) {
    group->ranks.erase(begin.rank());
    state.cores_stale = true;
    if (group->ranks.empty()) state.groups.erase(start.job());
  }
  RefuseRank(state, start, begin.rank(), std::move(why), effects,
             state.devices[index].condemned.empty() ? std::string_view() : cause::kDeviceFault);
}

void OnStopRanks(State& state, const v1::StopRanks& stop, const v1::CoordinatorMessage& message,
                 MonotonicTime now, Effects& effects) {
  uint64_t& highest = state.highest_epoch[stop.job()];
  if (stop.group_epoch() < highest) return;
  highest = stop.group_epoch();
  for (size_t i = 0; i < state.devices.size(); ++i) {
    Device& device = state.devices[i];
    const int index = static_cast<int>(i);
    if (device.next && device.next->start().job() == stop.job()) {
      // The rank has not begun: it ends before its process learns of it.
      const v1::BeginRank begin = std::move(*device.next);
      device.next.reset();
      if (Group* group = FindGroup(state, stop.job(), begin.start().group_epoch())) {
        group->ranks.erase(begin.rank());
        state.cores_stale = true;
        if (group->ranks.empty()) state.groups.erase(stop.job());
      }
      v1::WorkerMessage answer;
      answer.mutable_rank_stopped()->set_job(stop.job());
      answer.mutable_rank_stopped()->set_group_epoch(begin.start().group_epoch());
      answer.mutable_rank_stopped()->set_rank(begin.rank());
      SendOrKeep(state, effects, std::move(answer));
    }
    if (device.job != stop.job() || device.process != ProcessState::kBusy) continue;
    device.process = ProcessState::kStopping;
    device.kill_at = now + state.limits.abort;
    v1::RankCommand command;
    *command.mutable_coordinator() = message;
    effects.push_back(SendToRank{index, std::move(command)});
  }
  // Reports kept for a group without ranks are no longer needed.
  const auto group = state.groups.find(stop.job());
  if (group != state.groups.end() && group->second.ranks.empty()) state.groups.erase(group);
}

}  // namespace troupe::session
