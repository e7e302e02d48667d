#include "coordinator/job/group.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/failure_cause.h"
#include "base/text/count_text.h"
#include "coordinator/faults/start_limit.h"
#include "coordinator/history/receipt_tally.h"
#include "coordinator/job/attempt_messages.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/job/running_layout.h"
#include "coordinator/job/tickets.h"
#include "coordinator/job/timed_checkpoint.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_failure.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/stop.h"
#include "coordinator/state/transition.h"
#include "plan/device/device_traits.h"
#include "plan/job/job_choices.h"

namespace troupe {
namespace {

std::string CheckpointPath(const v1::CheckpointRecord* commit) {
  return commit != nullptr ? commit->path() : "";
}

// Returns the total bytes that the ranks restore; 0 if they start from the seed.
double RestoredBytes(const Job& job, const v1::CheckpointRecord* commit) {
  const bool from_images = ContinuesFromImages(job);
  const bool from_commit = commit != nullptr && !from_images;
  const double committed = from_commit ? static_cast<double>(commit->bytes()) : 0;
  // A commit lacks what is frozen; that is read from the base.
  const bool reads_model = from_images || !job.spec.checkpoint().initial_load().empty();
  if (from_commit ? !job.plan.has_trained_parameters() : !reads_model) return committed;
  int64_t most = 0;
  for (const v1::RankMemory& memory : job.plan.memory()) {
    most = std::max(most, memory.parameter_bytes() + memory.optimizer_bytes());
  }
  return committed + static_cast<double>(most) * job.plan.ranks_size();
}

v1::CoordinatorMessage AddressBookOf(const Job& job) {
  v1::CoordinatorMessage message;
  v1::AddressBook* const book = message.mutable_address_book();
  book->set_job(job.id());
  book->set_group_epoch(job.group->epoch);
  for (size_t rank = 0; rank < job.group->ranks.size(); ++rank) {
    v1::RankAddress* const address = book->add_addresses();
    address->set_job(job.id());
    address->set_group_epoch(job.group->epoch);
    address->set_rank(static_cast<int32_t>(rank));
    address->set_pid(job.group->ranks[rank].pid);
    address->set_address(job.group->ranks[rank].address);
    address->set_folder_token(job.group->ranks[rank].folder_token);
  }
  // If the job has an identity, each rank has compared its data with that.
  if (!job.data && job.group->data) *book->mutable_addresses(0)->mutable_data() = *job.group->data;
  return message;
}

bool AllHaveDevices(const Group& group) {
  return std::all_of(group.ranks.begin(), group.ranks.end(),
                     [](const RankState& rank) { return rank.device.has_value(); });
}

// REQUIRES: AllHaveDevices.
v1::CoordinatorMessage DeviceBookOf(const Job& job) {
  v1::CoordinatorMessage message;
  v1::DeviceBook* const book = message.mutable_device_book();
  book->set_job(job.id());
  book->set_group_epoch(job.group->epoch);
  for (const RankState& rank : job.group->ranks) *book->add_devices() = *rank.device;
  return message;
}

// Returns the summed peak of all ranks' devices in the job's compute dtype; 0 if one is unknown.
// CPU ranks on a host share its cores, which count once regardless of the number of ranks.
double PeakFlops(const Job& job, const Fleet& fleet) {
  const bool bfloat16 = ChoicesOf(job.spec).compute_dtype == model::DType::kBFloat16;
  struct HostShare {
    double used = 0;
    double whole = 0;
  };
  std::map<std::string, HostShare> hosts;
  double sum = 0;
  for (const v1::RankPlacement& placement : job.plan.ranks()) {
    const Worker* const worker = FindWorker(placement.worker(), fleet);
    if (worker == nullptr) return 0;
    const v1::Device* found = nullptr;
    for (const v1::Device& device : worker->hello.devices()) {
      if (device.index() == placement.device()) found = &device;
    }
    if (found == nullptr) return 0;
    const double peak = bfloat16 ? found->peak_flops_bfloat16() : found->peak_flops_float32();
    if (!(peak > 0) || !std::isfinite(peak)) return 0;
    const DeviceTraits* const traits = FindDeviceTraits(found->kind());
    if (traits == nullptr || !traits->shares_host_cores || found->cores() <= 0) {
      sum += peak;
      continue;
    }
    HostShare& host = hosts[worker->hello.host()];
    host.used +=
        peak * std::min(1.0, static_cast<double>(job.plan.threads_per_rank()) / found->cores());
    host.whole = std::max(host.whole, peak);
  }
  for (const auto& [name, host] : hosts) sum += std::min(host.used, host.whole);
  return sum;
}

Transition BeginRunning(Job& job, Turn& turn) {
  Group& group = *job.group;
  const int64_t step = group.ranks[0].ready_step;
  for (size_t rank = 0; rank < group.ranks.size(); ++rank) {
    if (group.ranks[rank].ready_step == step) continue;
    return Breakdown{MakeFailure(cause::kRestoreMismatch,
                                 fmt::format("rank {} is ready at step {}, rank 0 at step {}", rank,
                                             group.ranks[rank].ready_step, step),
                                 static_cast<int32_t>(rank))};
  }
  group.phase = GroupPhase::kRunning;
  group.last_progress = turn.now;
  group.peak_flops = PeakFlops(job, turn.fleet);
  // A rank is ready once it has seen the others' tokens in the folder with this identity.
  if (job.record.folder_id().empty()) job.record.set_folder_id(group.folder_id);
  if (!job.data && group.data) {
    job.data = group.data;
    turn.effects.writes.PutData(job.id(), *job.data);
  }
  for (RankState& rank : group.ranks) rank.reported_step = step;
  job.durable_step = step;
  job.record.set_step(step);
  job.record.set_state(v1::JOB_STATE_RUNNING);
  const bool grew = StopsFor(StopPurpose::kGrow, job.record) && !job.smaller;
  const bool moved = StopsFor(StopPurpose::kMove, job.record);
  const bool recovers = job.record.recovering();
  SetStop(std::nullopt, &job.record);
  job.record.set_recovering(false);
  turn.reschedule |= job.smaller.has_value() || AnyDrains(turn.fleet);
  RecordEvent(job,
              moved      ? event::kMoved
              : grew     ? event::kGrew
              : recovers ? event::kRecovered
                         : event::kStarted,
              fmt::format("{} from step {}",
                          CountText(group.ranks.size(), "rank runs", "ranks run"), step + 1),
              turn);
  if (IsFinished(job)) return Success(job);
  if (step >= job.steps() && ContinuesFromImages(job)) {
    // All steps are done; only the state in the images remains to be saved.
    group.save_again_time = turn.now;
  } else if (step >= job.steps()) {
    return Breakdown{
        .failure = MakeFailure(
            cause::kNothingToDo,
            fmt::format("the ranks begin at step {}, but training.steps is {}", step, job.steps())),
        .fatal = true};
  }
  CountOnCheckpointTime(job, turn);
  GrantTicket(job, turn);
  SendDeletions(job, turn);
  SendVerifications(job, Occasion::kOther, turn);
  return {};
}

bool AllReady(const Group& group) {
  return std::all_of(group.ranks.begin(), group.ranks.end(),
                     [](const RankState& rank) { return rank.ready; });
}

bool AllHeld(const Group& group) {
  return std::all_of(group.ranks.begin(), group.ranks.end(),
                     [](const RankState& rank) { return rank.held; });
}

void SendRunningState(const Job& job, const std::string& worker, Turn& turn) {
  SendToWorker(worker, TicketOf(job, turn.limits()), turn);
  for (const auto& [number, attempt] : job.attempts) {
    if (attempt.asked) SendToWorker(worker, RequestOf(job, attempt), turn);
    AskForManifest(job, attempt, turn);
  }
  // A rank that has its image must not write it again, because the job may have ended by then.
  if (job.group->image_taking && AwaitsImageOf(job, worker))
    SendToWorker(worker, ImageOrderOf(job), turn);
}

void Adopt(Job& job, Turn& turn) {
  Group& group = *job.group;
  group.phase = GroupPhase::kRunning;
  group.last_progress = turn.now;
  group.peak_flops = PeakFlops(job, turn.fleet);
  CountOnCheckpointTime(job, turn);
  GrantTicket(job, turn);
  for (const auto& [number, attempt] : job.attempts) {
    if (attempt.asked) SendToGroup(job, RequestOf(job, attempt), turn);
  }
  SaveAgainIfUnsaved(job, turn);
}

}  // namespace

void StartGroup(Job& job, v1::Plan plan, Turn& turn) {
  TROUPE_CHECK(IsQueued(job), "job {} is {}", job.id(), StateName(job.record.state()));
  const uint64_t epoch = job.record.group_epoch() + 1;
  job.record.set_group_epoch(epoch);
  job.record.set_state(v1::JOB_STATE_STARTING);
  turn.effects.measurements.push_back(StartMeasured{job.id()});
  const bool frozen_now = plan.digest() != job.plan.digest() || !job.plan.has_device();
  job.plan = std::move(plan);
  if (frozen_now) turn.effects.writes.PutPlan(job.id(), job.plan);
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  job.last_group.Clear();
  job.last_group.set_group_epoch(epoch);
  *job.last_group.mutable_ranks() = job.plan.ranks();
  const v1::Namespace* const space = FindNamespaceOf(turn.options.namespaces.get(), job.id());
  if (space != nullptr) *job.last_group.mutable_roots() = space->roots();
  const bool from_images = ContinuesFromImages(job);
  job.last_group.set_restore_attempt(commit != nullptr && !from_images ? commit->attempt() : 0);
  turn.effects.writes.PutGroup(job.id(), job.last_group);
  SaveRecord(job, turn);
  LeaseDevices(job.plan, job.id(), epoch, &turn.fleet, &turn.effects.writes);
  turn.effects.failpoints_after.push_back("catalog.epoch.recorded");

  job.waiting_for.clear();
  job.place_not_before.reset();
  job.choose_time.reset();
  job.shrink_time.reset();
  job.may_shrink = false;
  job.grow_time.reset();
  Group& group = job.group.emplace();
  group.epoch = epoch;
  group.ranks.resize(static_cast<size_t>(job.plan.ranks_size()));
  group.start_limit = StartLimit({.restored_bytes = RestoredBytes(job, commit),
                                  .compiled_blocks = CompiledBlocks(job.spec, job.plan),
                                  .stated_seconds = job.spec.fault_tolerance().hang_seconds()},
                                 turn.limits());
  group.deadline = turn.now + group.start_limit;

  v1::CoordinatorMessage message;
  v1::StartRanks* const start = message.mutable_start_ranks();
  start->set_job(job.id());
  start->set_group_epoch(epoch);
  *start->mutable_spec() = RunningSpec(job);
  *start->mutable_plan() = job.plan;
  start->set_start_seconds(ToSeconds(group.start_limit));
  start->set_restore_path(commit != nullptr ? CheckpointPath(commit)
                                            : job.spec.checkpoint().initial_load());
  start->set_folder_id(job.record.folder_id());
  if (job.data) *start->mutable_data() = *job.data;
  *start->mutable_roots() = job.last_group.roots();
  if (from_images) {
    start->clear_restore_path();
    *start->mutable_restore_images() = job.images;
  } else if (commit != nullptr) {
    start->set_restore_digest(commit->digest());
    start->set_restore_folder_id(commit->folder_id());
  }
  std::map<std::string, std::vector<int32_t>> ranks_of;
  for (const v1::RankPlacement& placement : job.plan.ranks()) {
    ranks_of[placement.worker()].push_back(placement.rank());
  }
  for (const auto& [worker, ranks] : ranks_of) {
    start->mutable_ranks()->Assign(ranks.begin(), ranks.end());
    SendToWorker(worker, message, turn);
  }
}

bool IsCurrent(const Job& job, uint64_t epoch, int32_t rank, const std::string& worker,
               const Turn& turn) {
  if (!job.group || rank < 0 || rank >= job.plan.ranks_size()) return false;
  if (epoch != job.group->epoch && !turn.options.bugs.accept_stale_epochs) return false;
  return job.plan.ranks(rank).worker() == worker;
}

void OnRankDevice(Job& job, const v1::RankDevice& message, Turn& turn) {
  Group& group = *job.group;
  // A rank has one device in a group epoch; a repeated message changes nothing.
  std::optional<v1::RankDevice>& device = group.ranks[static_cast<size_t>(message.rank())].device;
  if (group.phase != GroupPhase::kStarting || device.has_value()) return;
  device = message;
  if (AllHaveDevices(group)) SendToGroup(job, DeviceBookOf(job), turn);
}

void OnRankAddress(Job& job, const v1::RankAddress& message, Turn& turn) {
  Group& group = *job.group;
  if (group.phase != GroupPhase::kStarting || message.address().empty()) return;
  RankState& rank = group.ranks[static_cast<size_t>(message.rank())];
  rank.address = message.address();
  rank.folder_token = message.folder_token();
  rank.pid = message.pid();
  if (message.rank() == 0) {
    group.folder_id = message.folder_id();
    if (message.has_data()) group.data = message.data();
  }
  if (std::any_of(group.ranks.begin(), group.ranks.end(),
                  [](const RankState& state) { return state.address.empty(); })) {
    return;
  }
  group.phase = GroupPhase::kBooked;
  job.last_group.clear_pids();
  for (const RankState& state : group.ranks) job.last_group.add_pids(state.pid);
  turn.effects.writes.PutGroup(job.id(), job.last_group);
  SendToGroup(job, AddressBookOf(job), turn);
}

void OnRankCores(Job& job, const v1::RankCores& message, Turn&) {
  job.group->ranks[static_cast<size_t>(message.rank())].cores = message.cores();
}

Transition OnRankReady(Job& job, const v1::RankReady& message, Turn& turn) {
  Group& group = *job.group;
  if (group.phase != GroupPhase::kBooked) return {};
  RankState& rank = group.ranks[static_cast<size_t>(message.rank())];
  rank.ready = true;
  rank.ready_step = message.step();
  if (message.has_environment()) {
    TallyReady(group.epoch, message.rank(), message.environment(), &job.tally);
  }
  return AllReady(group) ? BeginRunning(job, turn) : Transition();
}

Transition ResendTo(Job& job, const std::string& worker, const v1::Hello& hello, Turn& turn) {
  if (!job.group) return {};
  Group& group = *job.group;
  const v1::HeldGroup* held = nullptr;
  for (const v1::HeldGroup& candidate : hello.held()) {
    if (candidate.job() == job.id() && candidate.group_epoch() == group.epoch) held = &candidate;
  }
  for (const v1::RankPlacement& placement : job.plan.ranks()) {
    if (placement.worker() != worker) continue;
    const bool lives = held != nullptr && std::find(held->ranks().begin(), held->ranks().end(),
                                                    placement.rank()) != held->ranks().end();
    if (!lives) {
      return Breakdown{MakeFailure(cause::kRankLost, "its worker reconnected without it",
                                   placement.rank(), worker)};
    }
    group.ranks[static_cast<size_t>(placement.rank())].held = true;
  }
  if (held == nullptr) return {};  // the worker has no rank of this job
  switch (group.phase) {
    case GroupPhase::kAdopting:
      group.ticket_end = std::max(group.ticket_end, std::min(held->ticket_end_step(), job.steps()));
      if (AllHeld(group)) Adopt(job, turn);
      return {};
    case GroupPhase::kStarting:
      if (AllHaveDevices(group)) SendToWorker(worker, DeviceBookOf(job), turn);
      return {};
    case GroupPhase::kBooked:
      SendToWorker(worker, AddressBookOf(job), turn);
      return {};
    case GroupPhase::kRunning:
      SendRunningState(job, worker, turn);
      return {};
    case GroupPhase::kDraining: {
      v1::CoordinatorMessage stop;
      stop.mutable_stop_ranks()->set_job(job.id());
      stop.mutable_stop_ranks()->set_group_epoch(group.epoch);
      stop.mutable_stop_ranks()->set_reason("the group epoch has failed");
      SendToWorker(worker, stop, turn);
      return {};
    }
  }
  return {};
}

}  // namespace troupe
