#include "worker/session/session.h"

#include <algorithm>
#include <utility>

#include "base/failure_cause.h"
#include "base/status.h"
#include "worker/session/cores.h"
#include "worker/session/device_fault.h"
#include "worker/session/drain.h"
#include "worker/session/lost_link.h"
#include "worker/session/outbox.h"
#include "worker/session/rank_lives.h"
#include "worker/session/session_timers.h"

namespace troupe::session {
namespace {

using v1::CoordinatorMessage;
using v1::WorkerMessage;

// Number of failed starts of its device's process after which a waiting rank counts as crashed.
constexpr int kStartTries = 3;

void Forward(State& state, const Group& group, const CoordinatorMessage& message, Effects& effects,
             std::optional<int> only_rank = {}) {
  for (const auto& [rank, record] : group.ranks) {
    if (only_rank && rank != *only_rank) continue;
    const Device& device = state.devices[record.device];
    if (device.process != ProcessState::kBusy || device.rank != rank) continue;
    v1::RankCommand command;
    *command.mutable_coordinator() = message;
    effects.push_back(SendToRank{record.device, std::move(command)});
  }
}

void OnTicket(State& state, const CoordinatorMessage& message, Effects& effects) {
  const v1::Ticket& ticket = message.ticket();
  Group* const group = FindGroup(state, ticket.job(), ticket.group_epoch());
  if (group == nullptr) return;
  group->ticket_end_step = std::max(group->ticket_end_step, ticket.end_step());
  Forward(state, *group, message, effects);
}

// If the manifest is already written, reports it again.
void OnWriteManifest(State& state, const CoordinatorMessage& message, Effects& effects) {
  const v1::WriteManifest& request = message.write_manifest();
  Group* const group = FindGroup(state, request.job(), request.group_epoch());
  if (group == nullptr) return;
  const auto done = group->manifests.find(request.manifest().attempt());
  if (done != group->manifests.end()) return Send(state, effects, done->second);
  Forward(state, *group, message, effects, 0);
}

void OnCheckpointFinalized(State& state, const CoordinatorMessage& message, Effects& effects) {
  const v1::CheckpointFinalized& finalized = message.checkpoint_finalized();
  Group* const group = FindGroup(state, finalized.job(), finalized.group_epoch());
  if (group == nullptr) return;
  std::erase_if(group->votes,
                [&](const auto& vote) { return vote.first.first == finalized.attempt(); });
  group->manifests.erase(finalized.attempt());
  Forward(state, *group, message, effects);
}

void OnReportsDurable(State& state, const v1::ReportsDurable& durable, Effects& effects) {
  Group* const group = FindGroup(state, durable.job(), durable.group_epoch());
  if (group == nullptr) return;
  group->reports.erase(group->reports.begin(), group->reports.upper_bound(durable.step()));
  if (group->sent_step && durable.step() >= *group->sent_step) SendReports(state, *group, effects);
}

// Running ranks answer themselves; the traces of ended ranks are read from their files.
void OnTraceRequest(State& state, const CoordinatorMessage& message, Effects& effects) {
  const v1::TraceRequest& request = message.trace_request();
  Group* const group = FindGroup(state, request.job(), request.group_epoch());
  for (const int rank : request.ranks()) {
    if (group != nullptr && group->ranks.contains(rank)) {
      Forward(state, *group, message, effects, rank);
    } else {
      effects.push_back(ReadRankTrace{request, rank});
    }
  }
}

void OnReadLogs(const State& state, const v1::ReadLogs& request, Effects& effects) {
  ReadRankLogs read{request, {}};
  for (const Device& device : state.devices) {
    if (device.job == request.job()) read.running.insert(device.rank);
  }
  effects.push_back(std::move(read));
}

bool HasRankOf(const State& state, const std::string& job) {
  return state.groups.contains(job) ||
         std::any_of(state.devices.begin(), state.devices.end(), [&](const Device& device) {
           return device.job == job || (device.next && device.next->start().job() == job);
         });
}

// Forgets the highest epochs of the jobs that `forgets` selects and that have no rank here.
template <typename Forgets>
void ForgetEpochs(State& state, const Forgets& forgets) {
  std::erase_if(state.highest_epoch, [&](const auto& entry) {
    return forgets(entry.first) && !HasRankOf(state, entry.first);
  });
}

// Forwards `message` to all ranks of the job's group epoch that `body`, a part of it, names.
template <typename Body>
void ForwardToGroup(State& state, const Body& body, const CoordinatorMessage& message,
                    Effects& effects) {
  Group* const group = FindGroup(state, body.job(), body.group_epoch());
  if (group != nullptr) Forward(state, *group, message, effects);
}

void OnCoordinatorMessage(State& state, const CoordinatorMessage& message, MonotonicTime now,
                          Effects& effects) {
  switch (message.message_case()) {
    case CoordinatorMessage::kStartRanks:
      if (std::exchange(state.burn_in, 0) != 0) effects.push_back(StopBurnIn{});
      return OnStartRanks(state, message.start_ranks(), now, effects);
    case CoordinatorMessage::kBurnIn:
      state.burn_in = message.burn_in().request();
      effects.push_back(BeginBurnIn{message.burn_in()});
      return;
    case CoordinatorMessage::kStopRanks:
      return OnStopRanks(state, message.stop_ranks(), message, now, effects);
    case CoordinatorMessage::kAddressBook:
      return ForwardToGroup(state, message.address_book(), message, effects);
    case CoordinatorMessage::kDeviceBook:
      return ForwardToGroup(state, message.device_book(), message, effects);
    case CoordinatorMessage::kTicket:
      return OnTicket(state, message, effects);
    case CoordinatorMessage::kCheckpointRequest:
      return ForwardToGroup(state, message.checkpoint_request(), message, effects);
    case CoordinatorMessage::kWriteManifest:
      return OnWriteManifest(state, message, effects);
    case CoordinatorMessage::kCheckpointFinalized:
      return OnCheckpointFinalized(state, message, effects);
    case CoordinatorMessage::kReportsDurable:
      return OnReportsDurable(state, message.reports_durable(), effects);
    case CoordinatorMessage::kDeleteCheckpoint:
      effects.push_back(RemoveCheckpoint{message.delete_checkpoint()});
      return;
    case CoordinatorMessage::kSaveImages:
      return ForwardToGroup(state, message.save_images(), message, effects);
    case CoordinatorMessage::kDeleteImages:
      for (const std::string& path : message.delete_images().paths()) state.images.erase(path);
      effects.push_back(RemoveImages{message.delete_images()});
      return;
    case CoordinatorMessage::kForgetJob:
      ForgetEpochs(state,
                   [&](const std::string& job) { return job == message.forget_job().job(); });
      effects.push_back(RemoveRankLogs{message.forget_job()});
      return;
    case CoordinatorMessage::kVerifyCheckpoint:
      effects.push_back(ReadCheckpointBack{message.verify_checkpoint()});
      return;
    case CoordinatorMessage::kReadLogs:
      return OnReadLogs(state, message.read_logs(), effects);
    case CoordinatorMessage::kTraceRequest:
      return OnTraceRequest(state, message, effects);
    case CoordinatorMessage::kHeartbeatAck:
    case CoordinatorMessage::kWelcome:
    case CoordinatorMessage::kRefused:
    case CoordinatorMessage::MESSAGE_NOT_SET:
      return;
  }
}

void OnWelcome(State& state, const v1::Welcome& welcome, MonotonicTime now, Effects& effects) {
  if (welcome.leader_epoch() < state.leader_epoch || !(welcome.lease_seconds() > 0)) {
    effects.push_back(HangUp{state.stream});
    return GoDown(state, now);
  }
  state.leader_epoch = welcome.leader_epoch();
  // The lease is the detection time; the other time limits follow from it.
  state.limits = MakeTimeLimits(welcome.lease_seconds());
  state.link = Link::kUp;
  state.failed_dials = 0;
  ForgetEpochs(state, [](const std::string&) { return true; });
  NoteReason(state,
             fmt::format("accepted by the coordinator of leader epoch {}", state.leader_epoch), now,
             effects);
  state.heartbeat_at = now + state.limits.heartbeat;
  ReportDrain(state, now, effects);  // it may have begun after the Hello
  SendAgain(state, effects);
}

void OnStreamMessage(State& state, const StreamMessage& event, MonotonicTime now,
                     Effects& effects) {
  if (event.stream != state.stream || state.link == Link::kDown) return;
  const CoordinatorMessage& message = event.message;
  if (message.has_refused()) {
    const v1::Refused& refused = message.refused();
    effects.push_back(HangUp{state.stream});
    GoDown(state, now, kLongestRefusedBackoff);
    std::string text = fmt::format("refused by the coordinator: {}", refused.message());
    if (refused.retry()) return NoteReason(state, text + "; it tries again", now, effects);
    state.ended = true;
    effects.push_back(EndDaemon{1, std::move(text)});
    return;
  }
  state.heard_at = now;
  if (state.link == Link::kDialled) {
    if (message.has_welcome()) OnWelcome(state, message.welcome(), now, effects);
    return;
  }
  if (message.leader_epoch() < state.leader_epoch) return;
  OnCoordinatorMessage(state, message, now, effects);
}

// The job, group epoch and rank that a rank's message is about; absent for messages that a rank
// must not send.
struct About {
  std::string job;
  uint64_t epoch = 0;
  int rank = -1;
};
std::optional<About> AboutOf(const WorkerMessage& message) {
  const auto of = [](const auto& body) {
    return About{body.job(), body.group_epoch(), body.rank()};
  };
  switch (message.message_case()) {
    case WorkerMessage::kRankDevice:
      return of(message.rank_device());
    case WorkerMessage::kRankAddress:
      return of(message.rank_address());
    case WorkerMessage::kRankReady:
      return of(message.rank_ready());
    case WorkerMessage::kStepReport:
      return of(message.step_report());
    case WorkerMessage::kShardDone:
      return of(message.shard_done());
    case WorkerMessage::kShardFailed:
      return of(message.shard_failed());
    case WorkerMessage::kRankFailed:
      return of(message.rank_failed());
    case WorkerMessage::kRankTrace:
      return of(message.rank_trace());
    case WorkerMessage::kImageSaved:
      return of(message.image_saved());
    case WorkerMessage::kRankFlight:
      return of(message.rank_flight());
    case WorkerMessage::kRankStopped:
      return of(message.rank_stopped());
    case WorkerMessage::kManifestDone:
      return About{message.manifest_done().job(), message.manifest_done().group_epoch(), 0};
    default:
      return std::nullopt;
  }
}

void OnRankMessage(State& state, int index, const WorkerMessage& message, Effects& effects) {
  const Device& device = state.devices[index];
  const std::optional<About> about = AboutOf(message);
  if (!about || about->job != device.job || about->epoch != device.group_epoch ||
      about->rank != device.rank)
    return;
  if (message.has_rank_stopped()) return EndRank(state, index, message.rank_stopped(), effects);
  Group* const group = FindGroup(state, device.job, device.group_epoch);
  if (group == nullptr) return;  // a newer epoch has begun
  RankRecord& record = group->ranks[device.rank];
  switch (message.message_case()) {
    case WorkerMessage::kRankDevice:
      record.slice_device = message;
      break;
    case WorkerMessage::kRankAddress:
      record.address = message;
      break;
    case WorkerMessage::kRankReady:
      record.ready = message;
      record.slice_device.reset();
      record.address.reset();
      group->step = std::max(group->step, message.rank_ready().step());
      break;
    case WorkerMessage::kRankFailed:
      record.failed = message;
      break;
    case WorkerMessage::kStepReport:
      group->step = std::max(group->step, message.step_report().step());
      if (device.rank != 0) break;
      group->reports[message.step_report().step()] = message;
      if (group->sent_step) return;  // sent after the reports before it
      break;
    case WorkerMessage::kShardDone:
      group->votes[{message.shard_done().attempt(), device.rank}] = message;
      break;
    case WorkerMessage::kShardFailed:
      group->votes[{message.shard_failed().attempt(), device.rank}] = message;
      break;
    case WorkerMessage::kManifestDone:
      group->manifests[message.manifest_done().attempt()] = message;
      if (group->sent_step) return;
      break;
    case WorkerMessage::kImageSaved: {
      // The entry is made even if the image could not be written completely, because a partial file
      // may exist.
      v1::HeldImage& image = state.images[message.image_saved().path()];
      image.set_job(message.image_saved().job());
      image.set_group_epoch(message.image_saved().group_epoch());
      image.set_path(message.image_saved().path());
      break;
    }
    default:
      break;
  }
  Send(state, effects, message);
}

void OnRankReported(State& state, const RankReported& reported, Effects& effects) {
  Device& device = state.devices[reported.device];
  if (reported.report.has_worker())
    return OnRankMessage(state, reported.device, reported.report.worker(), effects);
  if (!reported.report.has_idle() || device.process == ProcessState::kKilled || !device.job.empty())
    return;
  device.process = ProcessState::kIdle;
  device.failed_starts = 0;
  BeginNext(state, reported.device, effects);
}

void OnRankExited(State& state, const RankExited& exited, MonotonicTime now, Effects& effects) {
  Device& device = state.devices[exited.device];
  const ProcessState was = device.process;
  device.process = ProcessState::kNone;
  // A process killed because it did not start in time was counted when it was killed.
  if (was == ProcessState::kStarting) ++device.failed_starts;
  if (!device.job.empty()) {
    v1::RankStopped stopped;
    stopped.set_crashed(was == ProcessState::kBusy || !device.fault.empty());
    stopped.set_exit_code(exited.exit_code);
    stopped.set_signal(exited.signal);
    stopped.set_last_operation(exited.last_operation);
    stopped.set_message(exited.message);
    if (!device.fault.empty()) {
      stopped.set_cause(std::string(cause::kDeviceFault));
      stopped.set_message(device.fault);
    }
    EndRank(state, exited.device, std::move(stopped), effects);
  }
  device.fault.clear();
  if (device.next && device.failed_starts >= kStartTries) {
    RefuseNext(state, exited.device,
               fmt::format("device {} could not start a process {} times in a row: {}",
                           exited.device, device.failed_starts,
                           exited.message.empty() ? fmt::format("exit code {}, signal {}",
                                                                exited.exit_code, exited.signal)
                                                  : exited.message),
               effects);
  }
  device.start_at = now + Backoff(device.failed_starts, state.limits.restart_backoff_limit);
  if (MayStart(device) && device.start_at <= now) StartDevice(state, exited.device, now, effects);
}

}  // namespace

State MakeState(Config config, MonotonicTime now) {
  State state;
  state.config = std::move(config);
  for (const v1::HeldImage& image : state.config.identity.images())
    state.images[image.path()] = image;
  state.config.identity.clear_images();
  state.dial_at = now;
  state.devices.resize(state.config.identity.devices_size());
  for (Device& device : state.devices) device.start_at = now;
  return state;
}

Effects Step(State& state, const Event& event) {
  Effects effects;
  if (state.ended) return effects;
  if (state.leave_by) {
    const auto* const closed = std::get_if<StreamClosed>(&event.what);
    if ((closed != nullptr && closed->stream == state.stream) || event.now >= *state.leave_by)
      EndOnRequest(state, effects);
    return effects;
  }
  if (std::holds_alternative<Leave>(event.what)) {
    OnLeave(state, event.now, effects);
    return effects;
  }
  if (const auto* message = std::get_if<StreamMessage>(&event.what)) {
    OnStreamMessage(state, *message, event.now, effects);
  } else if (const auto* closed = std::get_if<StreamClosed>(&event.what)) {
    if (closed->stream == state.stream && state.link != Link::kDown) {
      if (closed->access_refused) {
        GoDownWithoutAccess(state, event.now);
      } else {
        GoDown(state, event.now);
      }
      NoteReason(state, fmt::format("there is no stream to the coordinator: {}", closed->reason),
                 event.now, effects);
    }
  } else if (const auto* reported = std::get_if<RankReported>(&event.what)) {
    OnRankReported(state, *reported, effects);
  } else if (const auto* exited = std::get_if<RankExited>(&event.what)) {
    OnRankExited(state, *exited, event.now, effects);
  } else if (const auto* fault = std::get_if<DeviceFault>(&event.what)) {
    OnDeviceFault(state, *fault, effects);
  } else if (const auto* gone = std::get_if<CheckpointGone>(&event.what)) {
    WorkerMessage message;
    *message.mutable_checkpoint_deleted() = gone->deleted;
    SendOrKeep(state, effects, std::move(message));
  } else if (const auto* read = std::get_if<CheckpointReadBack>(&event.what)) {
    WorkerMessage message;
    *message.mutable_checkpoint_verified() = read->verified;
    SendOrKeep(state, effects, std::move(message));
  } else if (const auto* burnt_in = std::get_if<BurnInEnded>(&event.what)) {
    if (state.burn_in == burnt_in->done.request()) state.burn_in = 0;
    WorkerMessage message;
    *message.mutable_burn_in_done() = burnt_in->done;
    SendOrKeep(state, effects, std::move(message));
  } else if (const auto* drain = std::get_if<Drain>(&event.what)) {
    OnDrain(state, *drain, event.now, effects);
  } else if (const auto* claimed = std::get_if<OthersClaim>(&event.what)) {
    state.other_claims = claimed->claims;
    state.cores_stale = true;
  } else if (const auto* table = std::get_if<CoreTableFault>(&event.what)) {
    state.core_table_fault = table->reason;
  }
  if (!state.ended) OnSessionTime(state, event.now, effects);
  return effects;
}

MonotonicTime NextDeadline(const State& state) {
  return state.leave_by ? *state.leave_by : NextSessionTime(state);
}

}  // namespace troupe::session
