#include "tests/simulation/worker_process.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;

struct WorkerAlarm {
  static constexpr std::string_view kMessageName = "worker.alarm";
};
struct ProcessUp {
  static constexpr std::string_view kMessageName = "worker.process_up";
  int device = 0;
  uint64_t life = 0;
};
struct ProcessGone {
  static constexpr std::string_view kMessageName = "worker.process_gone";
  int device = 0;
  uint64_t life = 0;
  int signal = 0;
};
struct ToRank {
  static constexpr std::string_view kMessageName = "rank.command";
  int device = 0;
  uint64_t life = 0;
  v1::RankCommand command;
};
struct Removed {
  static constexpr std::string_view kMessageName = "worker.removed";
  v1::DeleteCheckpoint request;
};
struct BurntIn {
  static constexpr std::string_view kMessageName = "worker.burnt_in";
  uint64_t request = 0;
  bool in_folders = false;  // it tried to write in folders
};
struct ReadBack {
  static constexpr std::string_view kMessageName = "worker.read_back";
  v1::VerifyCheckpoint request;
};

}  // namespace

Status WorkerProcess::Start(Context& context) {
  session::Config config;
  v1::Hello& identity = config.identity;
  identity.set_protocol_version(session::kProtocolVersion);
  identity.set_name(name_);
  TROUPE_ASSIGN_OR_RETURN(const uint64_t incarnation, NextIncarnation(context));
  identity.set_incarnation(incarnation);
  for (int i = 0; i < devices_; ++i) {
    v1::Device& device = *identity.add_devices();
    device.set_index(i);
    device.mutable_kind()->set_kind("cpu");
    device.mutable_kind()->set_model("simulated");
    device.mutable_kind()->set_kernel_level("portable");
    device.mutable_kind()->set_versions("1");
    device.set_memory_bytes(int64_t{1} << 34);
    device.set_cores(1);
  }
  identity.set_host(name_);
  identity.set_pid(1);
  processes_.resize(static_cast<size_t>(devices_));
  state_ = session::MakeState(std::move(config), context.Now());
  return Run(session::Tick{}, context);
}

// As worker/daemon/incarnation.h: the clock, or the last life's number plus one if the clock went
// back.
StatusOr<uint64_t> WorkerProcess::NextIncarnation(Context& context) {
  constexpr std::string_view kKey = "incarnation";
  auto next = static_cast<uint64_t>(context.WallNanoseconds());
  const StatusOr<std::string> last = store_.Get(kKey);
  if (last.ok()) {
    const uint64_t least = std::strtoull(last->c_str(), nullptr, 10) + 1;
    world_.clocks_set_back += next < least;
    if (!world_.bugs.number_lives_by_clock) next = std::max(next, least);
  }
  WriteBatch batch;
  batch.Put(std::string(kKey), fmt::format("{}", next));
  TROUPE_RETURN_IF_ERROR(store_.Write(batch, Durability::kSynced));
  return next;
}

Status WorkerProcess::Handle(AnyMessage message, Context& context) {
  if (message.As<WorkerAlarm>()) {
    alarm_time_ = MonotonicTime::max();
    return Run(session::Tick{}, context);
  }
  if (message.As<StopDaemon>()) return Run(session::Leave{}, context);
  if (const auto* opened = message.As<StreamOpened>()) {
    if (opened->stream == stream_) {
      // UNAVAILABLE: the stream is over and StreamClosed is in flight.
      world_.system.network()
          .Write(stream_, context.self(), hello_.SerializeAsString())
          .IgnoreError();
    }
    return OkStatus();
  }
  if (const auto* data = message.As<StreamData>()) {
    if (data->stream != stream_) return OkStatus();
    session::StreamMessage said{stream_number_, {}};
    if (!said.message.ParseFromString(data->bytes))
      return Internal("the coordinator's message does not parse");
    return Run(std::move(said), context);
  }
  if (const auto* closed = message.As<StreamClosed>()) {
    if (closed->stream != stream_) return OkStatus();
    return Run(session::StreamClosed{stream_number_, ToString(closed->cause)}, context);
  }
  if (const auto* removed = message.As<Removed>()) return Remove(removed->request, context);
  if (const auto* read = message.As<ReadBack>()) return ReadCheckpoint(read->request, context);
  if (const auto* burnt_in = message.As<BurntIn>()) {
    session::BurnInEnded ended;
    ended.done.set_request(burnt_in->request);
    const bool writes = !burnt_in->in_folders || world_.BlockedFor(name_) == Duration::zero();
    ended.done.set_sound(world_.FaultOf(name_) == HostFault::kNone && writes);
    return Run(std::move(ended), context);
  }
  return HandleRank(std::move(message), context);
}

Status WorkerProcess::Remove(const v1::DeleteCheckpoint& request, Context& context) {
  if (const Duration left = world_.BlockedFor(name_); left > Duration::zero()) {
    if (left != Duration::max())
      context.SetTimer(left + milliseconds(1), AnyMessage(Removed{request}));
    return OkStatus();
  }
  // If the mount is missing nothing is removed, and the coordinator asks again.
  const std::string& path = request.path();
  const std::string folder = path.substr(0, path.rfind('/', path.rfind('/') - 1));
  const Status here = world_.storage.CheckFolderId(name_, folder, request.folder_id());
  if (!here.ok()) return OkStatus();
  world_.storage.Delete(name_, path);
  session::CheckpointGone gone;
  gone.deleted.set_job(request.job());
  gone.deleted.set_attempt(request.attempt());
  gone.deleted.set_path(path);
  gone.deleted.set_none_writes(request.none_writes());
  return Run(std::move(gone), context);
}

Status WorkerProcess::ReadCheckpoint(const v1::VerifyCheckpoint& request, Context& context) {
  session::CheckpointReadBack back;
  back.verified.set_job(request.job());
  back.verified.set_attempt(request.attempt());
  back.verified.set_path(request.path());
  const bool wrongly = world_.FaultOf(name_) == HostFault::kReadsWrongly;
  const Status found = world_.random.Chance(world_.faults.unreadable_commit)
                           ? Unavailable("cannot be read")
                       : wrongly ? DataLoss("its host reads other bytes")
                                 : world_.storage.Verify(name_, request.path(), request.digest());
  back.verified.set_ok(found.ok());
  back.verified.set_damaged(found.code() == StatusCode::kDataLoss);
  back.verified.set_reason(std::string(Message(found)));
  return Run(std::move(back), context);
}

Status WorkerProcess::HandleRank(AnyMessage message, Context& context) {
  if (const auto* up = message.As<ProcessUp>()) {
    Process& process = processes_[static_cast<size_t>(up->device)];
    if (process.life != up->life) return OkStatus();
    process.rank = std::make_unique<RankModel>(world_, node_, name_, up->device, up->life);
    v1::RankReport idle;
    idle.mutable_idle();
    return Run(session::RankSaid{up->device, std::move(idle)}, context);
  }
  if (const auto* gone = message.As<ProcessGone>()) {
    Process& process = processes_[static_cast<size_t>(gone->device)];
    if (process.life != gone->life) return OkStatus();
    if (process.rank != nullptr) process.rank->Gone();
    process.rank.reset();
    return Run(session::RankExited{.device = gone->device, .signal = gone->signal}, context);
  }
  if (auto* to = message.As<ToRank>()) {
    RankModel* const rank = FindProcess(to->device, to->life);
    if (rank != nullptr) rank->OnCommand(to->command, context);
    return OkStatus();
  }
  if (auto* reported = message.As<RankReported>()) {
    if (FindProcess(reported->device, reported->life) == nullptr) return OkStatus();
    return Run(session::RankSaid{reported->device, std::move(reported->report)}, context);
  }
  if (const auto* crashed = message.As<RankCrashed>()) {
    Process& process = processes_[static_cast<size_t>(crashed->device)];
    if (process.life != crashed->life) return OkStatus();
    process.rank.reset();
    return Run(session::RankExited{.device = crashed->device, .signal = 11}, context);
  }
  if (const auto* failed = message.As<DeviceFailed>()) {
    if (FindProcess(failed->device, failed->life) == nullptr) return OkStatus();
    return Run(session::DeviceFault{.device = failed->device, .cause = "Xid 94 (contained error)"},
               context);
  }
  // The remaining messages are for one rank: its alarms, and messages about its group.
  for (Process& process : processes_) {
    if (process.rank != nullptr && process.rank->OnMessage(message, context)) break;
  }
  return OkStatus();
}

template <typename What>
Status WorkerProcess::Run(What what, Context& context) {
  session::Effects effects = session::Step(state_, session::Event{context.Now(), std::move(what)});
  for (session::Effect& effect : effects) TROUPE_RETURN_IF_ERROR(Perform(effect, context));
  world_.truth.Check(state_.unsent.size() <= 1024, 15,
                     fmt::format("{} keeps {} ends of ranks", name_, state_.unsent.size()));
  SetAlarm(context);
  return OkStatus();
}

Status WorkerProcess::Perform(session::Effect& effect, Context& context) {
  SimulatedNetwork& network = world_.system.network();
  if (auto* dial = std::get_if<session::Dial>(&effect)) {
    stream_number_ = dial->stream;
    hello_ = std::move(dial->hello);
    stream_ = network.Dial(node_, context.self(), coordinator_);
  } else if (std::get_if<session::HangUp>(&effect)) {
    network.Close(stream_, context.self(), Cancelled("hung up"));
  } else if (auto* send = std::get_if<session::SendToCoordinator>(&effect)) {
    // UNAVAILABLE, here and below: the stream is over and StreamClosed is in flight.
    network.Write(stream_, context.self(), send->message.SerializeAsString()).IgnoreError();
  } else if (const auto* beat = std::get_if<session::SendHeartbeat>(&effect)) {
    v1::WorkerMessage message;
    message.mutable_heartbeat()->set_memory_bytes(1 << 20);
    message.set_leader_epoch(beat->leader_epoch);
    network.Write(stream_, context.self(), message.SerializeAsString()).IgnoreError();
  } else if (const auto* start = std::get_if<session::StartProcess>(&effect)) {
    const uint64_t life = ++processes_[static_cast<size_t>(start->device)].life;
    context.SetTimer(DrawDuration(context, milliseconds(5), milliseconds(100)),
                     AnyMessage(ProcessUp{start->device, life}));
  } else if (const auto* kill = std::get_if<session::KillProcess>(&effect)) {
    Process& process = processes_[static_cast<size_t>(kill->device)];
    const Duration outlives = process.rank != nullptr ? process.rank->Killed() : Duration::zero();
    context.SetTimer(outlives + DrawDuration(context, milliseconds(1), milliseconds(20)),
                     AnyMessage(ProcessGone{kill->device, process.life, 9}));
  } else if (auto* to = std::get_if<session::SendToRank>(&effect)) {
    return context.Send(
        context.self(),
        AnyMessage(ToRank{to->device, processes_[static_cast<size_t>(to->device)].life,
                          std::move(to->command)}));
  } else if (const auto* remove = std::get_if<session::RemoveCheckpoint>(&effect)) {
    context.SetTimer(DrawDuration(context, milliseconds(1), milliseconds(50)),
                     AnyMessage(Removed{remove->request}));
  } else if (const auto* images = std::get_if<session::RemoveImages>(&effect)) {
    for (const std::string& path : images->request.paths()) world_.images.erase(path);
  } else if (const auto* read = std::get_if<session::ReadCheckpointBack>(&effect)) {
    context.SetTimer(DrawDuration(context, milliseconds(10), milliseconds(2000)),
                     AnyMessage(ReadBack{read->request}));
  } else if (const auto* burn = std::get_if<session::BeginBurnIn>(&effect)) {
    context.SetTimer(
        FromSeconds(burn->request.seconds()),
        AnyMessage(BurntIn{burn->request.request(), burn->request.folders_size() > 0}));
  } else if (const auto* end = std::get_if<session::EndDaemon>(&effect)) {
    if (end->exit_code != 0) return Internal("the daemon ends itself: {}", end->message);
    context.Stop();
  }
  return OkStatus();
}

RankModel* WorkerProcess::FindProcess(int device, uint64_t life) {
  Process& process = processes_[static_cast<size_t>(device)];
  return process.life == life ? process.rank.get() : nullptr;
}

void WorkerProcess::SetAlarm(Context& context) {
  const MonotonicTime time = session::NextDeadline(state_);
  if (time == alarm_time_) return;
  // An alarm that comes too early is a Tick without effect, which is cheaper than a new timer for
  // every message that postpones the deadline.
  if (alarm_time_ != MonotonicTime::max() && alarm_time_ < time) return;
  context.CancelTimer(alarm_);
  alarm_time_ = time;
  if (time != MonotonicTime::max())
    alarm_ = context.SetTimer(time - context.Now(), AnyMessage(WorkerAlarm{}));
}

}  // namespace troupe::simulation
