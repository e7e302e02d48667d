// The checkpoint part of the rank model.
#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/simulation/rank_model.h"

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;

}  // namespace

void RankModel::Proceed(Context& context) {
  while (!to_write_.empty()) {
    phase_ = Phase::kWriting;
    // One save is in flight at a time: its end calls this again.
    if (save_) {
      ++world_.waiting_saves;
      return;
    }
    const v1::CheckpointIntent& intent = to_write_.front();
    then_stop_ = then_stop_ || intent.then_stop();
    save_ = {intent, step_, training_state_};
    to_write_.pop_front();
    const Duration longest =
        IsAsync() ? world_.natures.at(group_.job).longest_save : Duration(milliseconds(500));
    context.SetTimer(DrawDuration(context, milliseconds(10), longest),
                     AnyMessage(SaveOver{number_, ++save_number_}));
    if (!IsAsync()) return;
  }
  BeginStep(context);
}

bool RankModel::Blocks(AnyMessage again, Context& context) {
  const Duration left = world_.BlockedFor(worker_);
  if (left == Duration::zero()) return false;
  world_.failed_writers.insert(worker_);
  // The node's clock may run a little faster than the system's.
  if (left != Duration::max()) context.SetTimer(left + milliseconds(1), std::move(again));
  return true;
}

void RankModel::EndSave(Context& context) {
  const bool was_blocked = is_blocked_;
  is_blocked_ = Blocks(AnyMessage(SaveOver{number_, save_number_}), context);
  world_.hung_saves += is_blocked_ && !was_blocked;
  if (is_blocked_) return;
  v1::WorkerMessage message;
  v1::ShardDone done;
  const Status written = WriteShard(done);
  if (written.ok()) {
    *message.mutable_shard_done() = std::move(done);
  } else {
    world_.failed_writers.insert(worker_);
    v1::ShardFailed& failed = Sign(*message.mutable_shard_failed());
    failed.set_attempt(save_->intent.attempt());
    failed.set_reason(std::string(Message(written)));
  }
  save_.reset();
  ReportToDaemon(std::move(message), context);
  if (phase_ == Phase::kWriting) Proceed(context);
  if (image_order_ && to_write_.empty()) {
    const v1::SaveImages order = *std::exchange(image_order_, std::nullopt);
    SaveImage(order, context);
  }
}

Status RankModel::WriteShard(v1::ShardDone& done) {
  const v1::CheckpointIntent& intent = save_->intent;
  if (intent.path().empty()) return Internal("its intent never came");
  if (world_.FaultOf(worker_) == HostFault::kCannotWrite ||
      world_.random.Chance(world_.faults.shard_failure)) {
    return ResourceExhausted("No space left on device");
  }
  TROUPE_RETURN_IF_ERROR(CheckFolder(intent.path(), intent.folder_id()));
  Sign(done);
  done.set_attempt(intent.attempt());
  done.set_step(save_->step);
  done.set_incarnation(begin_.incarnation());
  v1::ShardFile& file = *done.add_shards();
  file.set_name(ShardName(rank_));
  file.set_rank(rank_);
  file.set_bytes(8);
  TROUPE_ASSIGN_OR_RETURN(
      *file.mutable_digest(),
      world_.storage.WriteShard(
          worker_, intent.path(), intent.folder_id(), rank_,
          {.step = save_->step, .state = save_->state, .group_epoch = group_.epoch}));
  done.mutable_state()->set_step(save_->step);
  done.mutable_state()->set_consumed_samples(save_->step * kSlots);
  done.mutable_state()->set_seed(begin_.start().spec().training().seed());
  return OkStatus();
}

void RankModel::WriteManifest(const v1::WriteManifest& write, Context& context) {
  if (rank_ != 0 || write.group_epoch() != group_.epoch) return;
  if (Blocks(AnyMessage(ManifestAgain{number_, write}), context)) return;
  // Rank 0 must see every shard before it reports the manifest.
  const Status seen = world_.storage.SeesShards(worker_, write.path(), write.manifest());
  const StatusOr<std::string> digest =
      seen.ok() || world_.bugs.trust_folders
          ? world_.storage.WriteManifest(worker_, write.path(), folder_id_, write.manifest())
          : StatusOr<std::string>(seen);
  v1::WorkerMessage message;
  if (!digest.ok()) {
    world_.failed_writers.insert(worker_);
    v1::ShardFailed& failed = Sign(*message.mutable_shard_failed());
    failed.set_attempt(write.manifest().attempt());
    failed.set_reason(fmt::format("manifest: {}", Message(digest.status())));
  } else {
    v1::ManifestDone& done = *message.mutable_manifest_done();
    done.set_job(group_.job);
    done.set_group_epoch(group_.epoch);
    done.set_attempt(write.manifest().attempt());
    done.set_digest(*digest);
    done.set_bytes(8 * ranks_);
  }
  ReportToDaemon(std::move(message), context);
}

void RankModel::SaveImage(const v1::SaveImages& order, Context& context) {
  v1::WorkerMessage message;
  v1::ImageSaved& saved = Sign(*message.mutable_image_saved());
  saved.set_step(order.step());
  if (order.step() == step_) {
    saved.set_path(fmt::format("{}:{}/epoch-{}/step-{}/rank-{}", worker_, group_.job, group_.epoch,
                               step_, rank_));
    saved.set_digest(saved.path());
    SavedImage& image = world_.images[saved.path()];
    image.state = {step_, training_state_};
    image.held.set_job(group_.job);
    image.held.set_group_epoch(group_.epoch);
    image.held.set_path(saved.path());
  } else {
    saved.set_error(fmt::format("it holds step {}", step_));
  }
  ReportToDaemon(std::move(message), context);
}

StatusOr<Restored> RankModel::ReadImage() const {
  for (const v1::RankImage& image : begin_.start().restore_images().images()) {
    if (image.rank() != rank_) continue;
    const auto found = world_.images.find(image.path());
    const bool here = image.worker() == worker_ && found != world_.images.end();
    world_.truth.Check(here, 11,
                       fmt::format("{} rank {} is to go on from the image {} on {}", group_.job,
                                   rank_, image.path(), worker_));
    if (here) return found->second.state;
  }
  return NotFound("{} has no image of rank {}", worker_, rank_);
}

}  // namespace troupe::simulation
