#include "coordinator/machine/message_authority.h"

#include <algorithm>

#include "coordinator/state/job_state.h"
#include "plan/device/tpu_slice.h"

namespace troupe {
namespace {

using Verdict = Authority::Verdict;

template <typename... Args>
Authority Deny(fmt::format_string<Args...> format, Args&&... args) {
  return {Verdict::kDenied, fmt::format(format, std::forward<Args>(args)...)};
}

constexpr Verdict kStale = Verdict::kStale;

const Job* JobOf(const AuthorityView& view, const std::string& id) {
  const auto job = view.jobs.find(id);
  return job == view.jobs.end() ? nullptr : &job->second;
}

// Whether the lease of `sender` for this rank is of another incarnation than its present one.
bool LeasedToAnotherLife(const Worker& sender, const std::string& job, uint64_t epoch, int32_t rank,
                         const Fleet& fleet) {
  for (auto lease = fleet.leases.lower_bound({sender.name, 0});
       lease != fleet.leases.end() && lease->first.first == sender.name; ++lease) {
    const v1::LeaseRecord& record = lease->second;
    if (record.job() == job && record.group_epoch() == epoch && record.rank() == rank) {
      return record.incarnation() != sender.incarnation;
    }
  }
  return false;
}

Authority JudgeMember(const std::string& id, uint64_t epoch, int32_t rank, const Worker& sender,
                      const AuthorityView& view) {
  const Job* const job = JobOf(view, id);
  if (job == nullptr) return {kStale, {}};
  if (epoch > job->record.group_epoch()) {
    return Deny("it names group epoch {} of job {}, whose newest is {}", epoch, id,
                job->record.group_epoch());
  }
  if (!job->group) return {kStale, {}};
  if (epoch != job->group->epoch && !view.bugs.accept_stale_epochs) return {kStale, {}};
  if (rank < 0 || rank >= job->plan.ranks_size()) {
    return Deny("it names rank {} of job {}, which has {} ranks", rank, id, job->plan.ranks_size());
  }
  const std::string& owner = job->plan.ranks(rank).worker();
  if (owner != sender.name) return Deny("rank {} of job {} runs on {}", rank, id, owner);
  if (LeasedToAnotherLife(sender, id, epoch, rank, view.fleet)) {
    return Deny("rank {} of job {} was not started by incarnation {}", rank, id,
                sender.incarnation);
  }
  return {};
}

Authority JudgeDevice(const v1::RankDevice& device, const Worker& sender,
                      const AuthorityView& view) {
  if (device.coordinates_size() > kTpuAxes) {
    return Deny("the device of rank {} of job {} has {} coordinates, and a chip has at most {}",
                device.rank(), Shortened(device.job()), device.coordinates_size(), kTpuAxes);
  }
  return JudgeMember(device.job(), device.group_epoch(), device.rank(), sender, view);
}

// The end of a rank frees its device at any time, even after its epoch has ended.
Authority JudgeEnd(const v1::RankStopped& stopped, const Worker& sender,
                   const AuthorityView& view) {
  for (auto lease = view.fleet.leases.lower_bound({sender.name, 0});
       lease != view.fleet.leases.end() && lease->first.first == sender.name; ++lease) {
    const v1::LeaseRecord& record = lease->second;
    if (record.job() == stopped.job() && record.group_epoch() == stopped.group_epoch() &&
        record.rank() == stopped.rank()) {
      if (record.incarnation() == sender.incarnation) return {};
      return Deny("the lease of rank {} of job {} belongs to incarnation {}, not {}",
                  stopped.rank(), stopped.job(), record.incarnation(), sender.incarnation);
    }
  }
  return JudgeMember(stopped.job(), stopped.group_epoch(), stopped.rank(), sender, view);
}

Authority JudgeDeleted(const v1::CheckpointDeleted& answer, const Worker& sender,
                       const AuthorityView& view) {
  const Job* const job = JobOf(view, answer.job());
  if (job == nullptr) return {kStale, {}};
  const auto record = job->checkpoints.find(answer.attempt());
  if (record == job->checkpoints.end()) return {kStale, {}};  // answered before
  if (view.bugs.accept_unasked_answers) return {};
  const auto asked = job->deletions.find(answer.attempt());
  if (asked == job->deletions.end() || !asked->second.asked.contains(LifeOf(sender))) {
    return Deny("it was not asked to delete attempt {} of job {}", answer.attempt(), job->id());
  }
  if (answer.path() != record->second.path()) {
    return Deny("attempt {} of job {} is at {}, not at {}", answer.attempt(), job->id(),
                record->second.path(), Shortened(answer.path()));
  }
  return {};
}

Authority JudgeVerified(const v1::CheckpointVerified& answer, const Worker& sender,
                        const AuthorityView& view) {
  const Job* const job = JobOf(view, answer.job());
  if (job == nullptr) return {kStale, {}};
  const auto record = job->checkpoints.find(answer.attempt());
  if (record == job->checkpoints.end()) return {kStale, {}};
  if (view.bugs.accept_unasked_answers) return {};
  const auto asked = job->verifications.find(answer.attempt());
  const auto doubt = job->doubt_readings.find(answer.attempt());
  const bool was_asked =
      (asked != job->verifications.end() && asked->second.asked == LifeOf(sender)) ||
      (doubt != job->doubt_readings.end() && doubt->second.reader == LifeOf(sender));
  if (!was_asked) {
    return Deny("it was not asked to verify attempt {} of job {}", answer.attempt(), job->id());
  }
  if (answer.path() != record->second.path()) {
    return Deny("attempt {} of job {} is at {}, not at {}", answer.attempt(), job->id(),
                record->second.path(), Shortened(answer.path()));
  }
  return {};
}

Authority JudgeLogs(const v1::LogLines& answer, const Worker& sender, const AuthorityView& view) {
  const auto pending = view.log_reads.pending.find(answer.request());
  if (pending == view.log_reads.pending.end()) {
    // its deadline has passed
    if (answer.request() <= view.log_reads.last_request) return {kStale, {}};
    return Deny("there is no request {} for log lines", answer.request());
  }
  if (pending->second.outstanding.contains(LifeOf(sender))) return {};
  return Deny("it was not asked for log lines by request {}, or has already sent its last",
              answer.request());
}

Authority JudgeTrace(const v1::RankTrace& answer, const Worker& sender, const AuthorityView& view) {
  const auto pending = view.traces.pending.find(answer.request());
  if (pending == view.traces.pending.end()) {
    if (answer.request() <= view.traces.last_request) return {kStale, {}};
    return Deny("there is no request {} for a trace", answer.request());
  }
  const v1::TraceRequest& request = pending->second.request;
  if (answer.job() != request.job() || answer.group_epoch() != request.group_epoch()) {
    return Deny("request {} is about job {} in group epoch {}", answer.request(), request.job(),
                request.group_epoch());
  }
  const auto asked = pending->second.outstanding.find(answer.rank());
  if (asked != pending->second.outstanding.end() && asked->second == sender.name) return {};
  return Deny("it was not asked for the trace of rank {} by request {}, or has already answered",
              answer.rank(), answer.request());
}

Authority JudgeBurnIn(const v1::BurnInDone& answer, const Worker& sender,
                      const AuthorityView& view) {
  const auto blame = view.fleet.blame.find(sender.name);
  const uint64_t asked = blame == view.fleet.blame.end() ? 0 : blame->second.burn_in;
  if (asked != 0 && answer.request() == asked) return {};
  // abandoned, or another worker's
  if (answer.request() <= view.fleet.last_burn_in) return {kStale, {}};
  return Deny("there is no burn-in {}", answer.request());
}

}  // namespace

std::string KindOf(const v1::WorkerMessage& message) {
  const auto* const field =
      message.GetDescriptor()->FindFieldByNumber(static_cast<int>(message.message_case()));
  return field == nullptr ? "none" : std::string(field->name());
}

Authority JudgeMessage(const v1::WorkerMessage& message, const Worker& sender,
                       const AuthorityView& view) {
  const auto of_rank = [&](const auto& body) {
    return JudgeMember(body.job(), body.group_epoch(), body.rank(), sender, view);
  };
  switch (message.message_case()) {
    case v1::WorkerMessage::kHeartbeat:
    case v1::WorkerMessage::kGoodbye:
    case v1::WorkerMessage::kDeviceCondemned:
    case v1::WorkerMessage::kDraining:
      return {};
    case v1::WorkerMessage::kRankDevice:
      return JudgeDevice(message.rank_device(), sender, view);
    case v1::WorkerMessage::kRankAddress:
      return of_rank(message.rank_address());
    case v1::WorkerMessage::kRankReady:
      return of_rank(message.rank_ready());
    case v1::WorkerMessage::kRankCores:
      return of_rank(message.rank_cores());
    case v1::WorkerMessage::kRankFlight:
      return of_rank(message.rank_flight());
    case v1::WorkerMessage::kStepReport:
      return of_rank(message.step_report());
    case v1::WorkerMessage::kShardDone: {
      // A vote sent by an earlier life of the worker does not count for this life.
      if (message.shard_done().incarnation() != sender.incarnation) return {kStale, {}};
      return of_rank(message.shard_done());
    }
    case v1::WorkerMessage::kShardFailed:
      return of_rank(message.shard_failed());
    case v1::WorkerMessage::kRankFailed:
      return of_rank(message.rank_failed());
    case v1::WorkerMessage::kImageSaved:
      return of_rank(message.image_saved());
    case v1::WorkerMessage::kManifestDone:
      return JudgeMember(message.manifest_done().job(), message.manifest_done().group_epoch(), 0,
                         sender, view);
    case v1::WorkerMessage::kRankStopped:
      return JudgeEnd(message.rank_stopped(), sender, view);
    case v1::WorkerMessage::kCheckpointDeleted:
      return JudgeDeleted(message.checkpoint_deleted(), sender, view);
    case v1::WorkerMessage::kCheckpointVerified:
      return JudgeVerified(message.checkpoint_verified(), sender, view);
    case v1::WorkerMessage::kLogLines:
      return JudgeLogs(message.log_lines(), sender, view);
    case v1::WorkerMessage::kRankTrace:
      return JudgeTrace(message.rank_trace(), sender, view);
    case v1::WorkerMessage::kBurnInDone:
      return JudgeBurnIn(message.burn_in_done(), sender, view);
    case v1::WorkerMessage::kHello:
    case v1::WorkerMessage::MESSAGE_NOT_SET:
      return {kStale, {}};
  }
  return {kStale, {}};
}

}  // namespace troupe
