// The files of a rank's state: initial weights, checkpoints, images, manifests.
#include <algorithm>
#include <utility>

#include "base/failure_cause.h"
#include "base/log.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/shard_presence.h"
#include "checkpoint/write/rank_image.h"
#include "plan/job/kept_keys.h"
#include "plan/job/violation.h"
#include "worker/executor/folder_fault.h"
#include "worker/executor/frozen_weights.h"
#include "worker/executor/initial_weights.h"
#include "worker/executor/shards.h"
#include "worker/rank/rank_data.h"
#include "worker/rank/rank_run.h"

namespace troupe {
namespace {

// Whether the error is in the data read: neither a retry nor another host could restore the
// checkpoint.
bool SaysCheckpointIsBad(StatusCode code) {
  return code == StatusCode::kDataLoss || code == StatusCode::kInvalidArgument ||
         code == StatusCode::kOutOfRange || code == StatusCode::kFailedPrecondition;
}

bool RestoresInitialLoad(const v1::StartRanks& start) {
  return start.restore_path() == start.spec().checkpoint().initial_load();
}

// Whether this host sees where the checkpoint is, so that a file that it lacks is missing.
bool SeesCheckpoint(FileSystem& files, const v1::StartRanks& start) {
  const std::string& path = start.restore_path();
  // A checkpoint that another job owns may be on any disk, and no identity of its folder is known.
  if (RestoresInitialLoad(start)) return !FolderIsAway(files, path);
  // If the folder has no known identity and the job's own directory does not exist either, this
  // host does not see the folder, which proves nothing about the checkpoint.
  return !start.restore_folder_id().empty() ||
         files.Stat(ParentDirectory(path), SymbolicLinks::kFollow).ok();
}

// The pause between two attempts to read is this fraction of the time for which a rank waits for a
// folder.
constexpr int kPausesOfLimit = 10;

// Every slice of one rank, once.
std::vector<OwnedRows> WholeRows(const std::vector<GlobalSlice>& slices) {
  std::vector<OwnedRows> rows;
  for (size_t i = 0; i < slices.size(); ++i) {
    const auto first = std::find(slices.begin(), slices.end(), slices[i]);
    if (first != slices.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    const auto& shape = slices[i].box.shape;
    rows.push_back({i, 0, shape.empty() ? 1 : shape.front()});
  }
  return rows;
}

}  // namespace

StatusOr<int64_t> RankRun::Load() {
  const v1::StartRanks& start = begin_.start();
  TROUPE_ASSIGN_OR_RETURN(const auto slices, SlicesOfRanks(start.spec(), start.plan()));
  owned_ = AssignOwners(slices)[begin_.rank()];
  whole_ = WholeRows(slices[begin_.rank()]);
  if (start.has_restore_images() || !start.restore_path().empty()) {
    TROUPE_ASSIGN_OR_RETURN(const int64_t step, RestoreTrained());
    const Status frozen = LoadFrozenWeights(BaseFilesOf(job_files_), start.spec(),
                                            executor_->program(), executor_->executable());
    if (frozen.ok()) return step;
    load_failed_ = true;
    of_other_folder_ = true;
    return FaultOfBase(frozen, start, begin_.rank());
  }
  const Status filled = LoadInitialWeights(job_files_.imports(), start.spec(), executor_->program(),
                                           executor_->executable());
  if (filled.ok()) return 0;
  load_failed_ = true;
  of_other_folder_ = true;
  return Annotate(filled, "host " + start.plan().ranks(begin_.rank()).host());
}

StatusOr<int64_t> RankRun::RestoreTrained() {
  const v1::StartRanks& start = begin_.start();
  if (start.has_restore_images()) return RestoreImage();
  // If the folder is not mounted here, nothing is known about its contents.
  const Status folder = CheckFolderId(
      job_files_.checkpoints(), FolderOfAttempt(start.restore_path()), start.restore_folder_id());
  if (!folder.ok()) {
    load_failed_ = true;
    const Status failed = Annotate(folder, fmt::format("restore {}", start.restore_path()));
    return AttachedCause(failed).empty() ? WithCause(failed, cause::kStorage) : failed;
  }
  return RestoreOrDoubt();
}

StatusOr<int64_t> RankRun::RestoreOrDoubt() {
  StatusOr<int64_t> restored = Restore();
  if (restored.status().code() == StatusCode::kUnavailable && !directives_.stopped()) {
    LogWarning("rank", "restores again: {}", ToString(restored.status()));
    // A server or the kernel may refuse a read only temporarily.
    if (directives_.Pause(around_.folder_limit / kPausesOfLimit)) restored = Restore();
  }
  if (restored.ok()) return restored;
  load_failed_ = true;
  const v1::StartRanks& start = begin_.start();
  of_other_folder_ = RestoresInitialLoad(start);
  const std::string what = of_other_folder_ ? "checkpoint.initial_load" : start.restore_path();
  if (const Status away = FolderFault(restored.status(), what); !away.ok())
    return Annotate(away, "host " + start.plan().ranks(begin_.rank()).host());
  // Where a field of the job, this build, or a root is to blame, nothing is wrong with the
  // checkpoint.
  if (SaysCheckpointIsBad(restored.status().code()) && ViolationsOf(restored.status()).empty() &&
      AttachedCause(restored.status()).empty()) {
    bad_checkpoint_path_ = start.restore_path();
  }
  return restored;
}

StatusOr<int64_t> RankRun::Restore() {
  const v1::StartRanks& start = begin_.start();
  FileSystem& files = job_files_.checkpoints();
  const auto judge = [&](const Status& status) {
    const bool is_lost = status.code() == StatusCode::kNotFound && SeesCheckpoint(files, start);
    return is_lost ? DataLoss("{}", Message(status)) : status;
  };
  const StatusOr<v1::CheckpointManifest> manifest =
      ReadManifest(files, start.restore_path(), start.restore_digest());
  TROUPE_RETURN_IF_ERROR(judge(manifest.status()));
  // A checkpoint of another job may be one that this job cannot continue.
  if (RestoresInitialLoad(start)) {
    TROUPE_RETURN_IF_ERROR(CheckContinues(*manifest, start.spec()));
  } else {
    TROUPE_RETURN_IF_ERROR(CheckBaseOf(*manifest, data_->identity, start, begin_.rank()));
  }
  TROUPE_RETURN_IF_ERROR(judge(LoadState(files, start.restore_path(), *manifest,
                                         executor_->program(), executor_->executable())));
  return manifest->state().step();
}

StatusOr<int64_t> RankRun::RestoreImage() {
  load_failed_ = true;
  for (const v1::RankImage& image : begin_.start().restore_images().images()) {
    if (image.rank() != begin_.rank()) continue;
    TROUPE_ASSIGN_OR_RETURN(const v1::CheckpointManifest manifest,
                            ReadRankImage(*around_.files, image.path(), image.digest()));
    TROUPE_RETURN_IF_ERROR(LoadState(*around_.files, image.path(), manifest, executor_->program(),
                                     executor_->executable()));
    load_failed_ = false;
    return manifest.state().step();
  }
  return NotFound("there is no image of rank {}", begin_.rank());
}

StatusOr<std::string> RankRun::WriteImage(const std::string& directory, int64_t step) {
  const v1::StartRanks& start = begin_.start();
  v1::ImageManifest manifest;
  manifest.set_job(start.job());
  manifest.set_rank(begin_.rank());
  manifest.set_plan_digest(start.plan().digest());
  manifest.mutable_state()->set_step(step);
  manifest.mutable_state()->set_consumed_samples(step *
                                                 start.spec().training().global_batch_size());
  manifest.mutable_state()->set_seed(start.spec().training().seed());
  if (start.plan().has_samples()) *manifest.mutable_samples() = start.plan().samples();
  return WriteRankImage(*around_.files, directory, std::move(manifest),
                        OwnedTensors(whole_, executor_->program(), executor_->executable()));
}

void RankRun::SaveImage(int64_t step) {
  around_.progress->Enter(Phase::kCheckpoint);
  const std::string& job = begin_.start().job();
  const std::string directory =
      ImageDirectory(begin_.image_directory(), job.substr(job.rfind('/') + 1), step,
                     begin_.start().group_epoch(), begin_.rank());
  const StatusOr<std::string> digest = WriteImage(directory, step);
  v1::WorkerMessage message;
  v1::ImageSaved& saved = *message.mutable_image_saved();
  saved.set_job(job);
  saved.set_group_epoch(begin_.start().group_epoch());
  saved.set_rank(begin_.rank());
  saved.set_step(step);
  saved.set_path(directory);
  if (digest.ok()) {
    saved.set_digest(*digest);
  } else {
    saved.set_error(ToString(digest.status()));
  }
  Send(std::move(message));
}

Patience RankRun::patience() const {
  return {.clock = around_.clock,
          .limit = around_.folder_limit,
          .pause = [this](Duration duration) { return directives_.Pause(duration); }};
}

void RankRun::WriteManifestFile(const v1::WriteManifest& request) {
  const v1::Plan& plan = begin_.start().plan();
  const std::vector<UnseenShard> unseen =
      WaitForShards(job_files_.checkpoints(), request.path(), request.manifest(), patience());
  const std::optional<Status> stopped = directives_.stopped();
  if (!unseen.empty() && stopped) return;  // nobody waits for the answer
  StatusOr<WrittenManifest> written = WrittenManifest();
  v1::WorkerMessage message;
  v1::ShardFailed& failed = *message.mutable_shard_failed();
  if (unseen.empty()) {
    written = WriteManifest(job_files_.checkpoints(), request.path(), request.manifest());
  } else {
    const int rank = request.manifest().shards(unseen.front().shard).rank();
    const bool known = rank >= 0 && rank < plan.ranks_size();
    const std::string worker = known ? plan.ranks(rank).worker() : "";
    written = FailedPrecondition(
        "rank 0 does not see {} of {} shards; the first is that of rank {} on worker {} of host "
        "{}: {}",
        unseen.size(), request.manifest().shards_size(), rank, worker,
        known ? plan.ranks(rank).host() : "", Message(unseen.front().status));
    failed.set_blamed_worker(worker);
  }
  if (!written.ok()) {
    failed.set_job(request.job());
    failed.set_group_epoch(request.group_epoch());
    failed.set_rank(begin_.rank());
    failed.set_attempt(request.manifest().attempt());
    failed.set_reason(ToString(Annotate(written.status(), "manifest")));
    failed.set_cause(CauseOfFailedWrite(written.status()));
  } else {
    v1::ManifestDone& done = *message.mutable_manifest_done();
    done.set_job(request.job());
    done.set_group_epoch(request.group_epoch());
    done.set_attempt(request.manifest().attempt());
    done.set_digest(written->digest);
    done.set_bytes(written->bytes);
  }
  Send(std::move(message));
}

}  // namespace troupe
