#include "coordinator/job/images.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/failure_cause.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/running_layout.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_failure.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/stop.h"
#include "coordinator/state/transition.h"
#include "plan/cost/checkpoint_write.h"
#include "plan/cost/fault_cost.h"
#include "plan/job/job_name.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr std::string_view kElse =
    "discard them (--discard-images) to continue from the newest commit";

// A readable list such as "worker-0:/data/images/a/step-…, …".
std::string PlacesOf(const v1::JobImages& images) {
  std::vector<std::string> places;
  for (const v1::RankImage& image : images.images()) {
    places.push_back(fmt::format("{}:{}", image.worker(), image.path()));
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

// The workers with images of the job on which nothing can be placed, each with the reason.
std::set<std::string> MissingImageWorkers(const Job& job, const Fleet& fleet) {
  std::set<std::string> missing;
  for (const v1::RankImage& image : job.images.images()) {
    const Worker* const worker = FindWorker(image.worker(), fleet);
    if (worker == nullptr || worker->session == 0) {
      missing.insert(fmt::format("{} (not connected)", image.worker()));
    } else if (IsDraining(*worker, fleet)) {
      missing.insert(fmt::format("{} (draining)", image.worker()));
    }
  }
  return missing;
}

Transition EndWithImages(Job& job, Turn& turn) {
  const ImageTaking taking = *std::exchange(job.group->image_taking, std::nullopt);
  DropImages(job, turn);  // the images that it was restored from
  // A rank's image of an earlier try has the same path.
  job.group->left_images.clear();
  job.images.set_step(taking.step);
  for (const auto& [rank, saved] : taking.saved) {
    v1::RankImage& image = *job.images.add_images();
    image.set_rank(rank);
    image.set_worker(job.plan.ranks(rank).worker());
    image.set_path(saved.path());
    image.set_digest(saved.digest());
  }
  turn.effects.writes.PutImages(job.id(), job.images);
  if (StopsFor(StopPurpose::kGrow, job.record) || StopsFor(StopPurpose::kMove, job.record))
    return StopUnsaved{};
  if (StopsFor(StopPurpose::kCancelAnyway, job.record)) {
    return CancelWithoutCommit(
        job, fmt::format("{}; each worker keeps the state of its ranks, and `troupe resume` "
                         "continues from there: {}",
                         job.group->save_failure, PlacesOf(job.images)));
  }
  const v1::Failure failure =
      MakeFailure(cause::kFinalCheckpointUnwritable,
                  fmt::format("the last checkpoint, of step {}, could not be written for {:.0f} s "
                              "(checkpoint.final_save_seconds): {}; each worker keeps the state of "
                              "its ranks, and `troupe resume` continues from there: {}; {}",
                              taking.step, FinalSaveSeconds(job.spec), job.group->save_failure,
                              PlacesOf(job.images), UnwritableFolderAdvice(job)));
  return JobEnd{v1::JOB_STATE_FAILED, failure, FailureText(failure)};
}

}  // namespace

std::optional<MonotonicTime> FinalSaveDeadline(const Job& job) {
  if (!job.group || !job.group->unsaved_since) return std::nullopt;
  return *job.group->unsaved_since + FromSeconds(FinalSaveSeconds(job.spec));
}

void RequestImages(Job& job, Turn& turn) {
  job.group->save_again_time.reset();
  ImageTaking& taking = job.group->image_taking.emplace();
  taking.step = job.record.step();
  taking.deadline = turn.now + turn.limits().checkpoint_attempt +
                    FromSeconds(CheckpointWriteSeconds(job.spec, job.plan));
  job.group->last_progress = turn.now;
  RecordEvent(job, event::kSavingImages,
              fmt::format("step {} could not be saved: {}", taking.step, job.group->save_failure),
              turn);
  SendToGroup(job, ImageOrderOf(job), turn);
}

v1::CoordinatorMessage ImageOrderOf(const Job& job) {
  v1::CoordinatorMessage message;
  v1::SaveImages& order = *message.mutable_save_images();
  order.set_job(job.id());
  order.set_group_epoch(job.group->epoch);
  order.set_step(job.group->image_taking->step);
  return message;
}

Transition OnImageSaved(Job& job, const v1::ImageSaved& message, Turn& turn) {
  if (!job.group->image_taking || message.step() != job.group->image_taking->step) {
    if (message.error().empty())
      job.group->left_images[message.path()] = job.plan.ranks(message.rank()).worker();
    return {};
  }
  ImageTaking& taking = *job.group->image_taking;
  if (!message.error().empty()) {
    taking.failure = fmt::format("rank {} on {}: {}", message.rank(),
                                 job.plan.ranks(message.rank()).worker(), message.error());
    // While ranks hang, the checkpoint cannot be tried again: they have until the images' deadline.
    if (job.group->hung_ranks.empty()) AbandonImages(job, taking.failure, turn);
    return {};
  }
  taking.saved[message.rank()] = message;
  if (taking.saved.size() < static_cast<size_t>(job.plan.ranks_size())) return {};
  return EndWithImages(job, turn);
}

bool AwaitsImageOf(const Job& job, const std::string& worker) {
  const auto& ranks = job.plan.ranks();
  return std::any_of(ranks.begin(), ranks.end(), [&](const v1::RankPlacement& placement) {
    return placement.worker() == worker &&
           !job.group->image_taking->saved.contains(placement.rank());
  });
}

void DropLeftImages(Job& job, Turn& turn) {
  std::map<std::string, std::string> left = std::exchange(job.group->left_images, {});
  if (job.group->image_taking) {
    for (const auto& [rank, saved] : job.group->image_taking->saved)
      left[saved.path()] = job.plan.ranks(rank).worker();
  }
  for (const auto& [path, worker] : left) {
    v1::CoordinatorMessage order;
    order.mutable_delete_images()->set_job(job.id());
    order.mutable_delete_images()->add_paths(path);
    SendToWorker(worker, std::move(order), turn);
  }
}

void AbandonImages(Job& job, std::string reason, Turn& turn) {
  for (const auto& [rank, saved] : job.group->image_taking->saved)
    job.group->left_images[saved.path()] = job.plan.ranks(rank).worker();
  job.group->image_taking.reset();
  job.group->unsaved_since = turn.now;
  job.group->save_again_time = turn.now;
  job.group->last_progress = turn.now;
  RecordEvent(job, event::kImagesFailed,
              fmt::format("{}; the ranks keep their state, and the checkpoint is retried", reason),
              turn);
}

bool ContinuesFromImages(const Job& job) {
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  return job.images.step() > 0 && (commit == nullptr || commit->step() < job.images.step());
}

std::string UnwritableFolderAdvice(const Job& job) {
  if (!ContinuesFromImages(job)) return "";
  std::set<std::string> workers;
  for (const v1::RankImage& image : job.images.images()) workers.insert(image.worker());
  return fmt::format(
      "the job can run only on {}, because each rank reads its image on its own worker: make {} "
      "writable there, or resume the job with another folder (--set checkpoint.folder=DIR)",
      fmt::join(workers, ", "), job.spec.checkpoint().folder());
}

bool FindsImageDamaged(const Job& job, const v1::RankFailed& message) {
  const auto code = static_cast<StatusCode>(message.code());
  return ContinuesFromImages(job) && message.cause().empty() && !message.secondary() &&
         (code == StatusCode::kDataLoss || code == StatusCode::kNotFound);
}

std::string DamagedImageText(const Job& job, const v1::RankFailed& message) {
  return fmt::format(
      "the image of step {} from which rank {} would continue is damaged: {}; resume the job when "
      "the file is intact again, or {}",
      job.images.step(), message.rank(), message.message(), kElse);
}

Status CheckImages(const Job& job, const v1::JobSpec& spec, const Turn& turn) {
  if (!ContinuesFromImages(job)) return OkStatus();
  // A job resumed on its submitted layout continues on the smaller layout of its images.
  const std::string asked = spec.parallelism().SerializeAsString();
  const bool same_layout = asked == RunningSpec(job).parallelism().SerializeAsString() ||
                           asked == job.spec.parallelism().SerializeAsString();
  if (!same_layout || spec.devices() != job.spec.devices()) {
    return RefuseField(StatusCode::kFailedPrecondition, "parallelism",
                       "differs from the layout of the images of step {}, from which job {} "
                       "continues: resume it on the same layout, or {}",
                       job.images.step(), job.id(), kElse);
  }
  std::set<std::string> missing;
  for (const v1::RankImage& image : job.images.images()) {
    const Worker* const worker = FindWorker(image.worker(), turn.fleet);
    if (worker == nullptr || worker->session == 0) missing.insert(image.worker());
  }
  if (missing.empty()) return OkStatus();
  return FailedPrecondition(
      "job {} continues from the images of step {} that its ranks left on their workers, but {} {} "
      "not connected: start {}, or {}",
      job.id(), job.images.step(), fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are",
      missing.size() == 1 ? "it" : "them", kElse);
}

StatusOr<v1::Plan> PlaceAtImages(const Job& job, const ClusterView& free) {
  std::map<std::string, std::vector<const ClusterDevice*>> devices;
  for (const ClusterDevice& device : free.free_devices) devices[device.worker].push_back(&device);
  v1::Plan plan = job.plan;
  for (const v1::RankImage& image : job.images.images()) {
    std::vector<const ClusterDevice*>& there = devices[image.worker()];
    if (image.rank() >= plan.ranks_size() || there.empty()) {
      return ResourceExhausted(
          "rank {} continues from its image on worker {}, which has no free device", image.rank(),
          image.worker());
    }
    const ClusterDevice& device = *there.front();
    there.erase(there.begin());
    v1::RankPlacement& placement = *plan.mutable_ranks(image.rank());
    placement.set_worker(device.worker);
    placement.set_device(device.device.index());
    placement.set_island(device.island);
    placement.set_host(device.host);
  }
  return plan;
}

Transition LookForImages(Job& job, Turn& turn) {
  job.image_look_time.reset();
  if (!IsQueued(job) || !ContinuesFromImages(job)) {
    job.image_missing_since.reset();
    return {};
  }
  const std::set<std::string> missing = MissingImageWorkers(job, turn.fleet);
  if (missing.empty()) job.image_missing_since.reset();
  if (!missing.empty() && !job.image_missing_since) job.image_missing_since = turn.now;
  const Duration limit = turn.limits().forget_worker;
  if (missing.empty() || turn.now < *job.image_missing_since + limit) {
    job.image_look_time = turn.now + turn.limits().lease;
    return {};
  }
  job.image_missing_since.reset();
  const v1::Failure failure = MakeFailure(
      cause::kBadImage,
      fmt::format("the job continues from the images of step {} that its ranks left on their "
                  "workers, and these were not there for {:.0f} s: {}; resume the job when they "
                  "are back, or {}",
                  job.images.step(), ToSeconds(limit), fmt::join(missing, ", "), kElse));
  return JobEnd{v1::JOB_STATE_FAILED, failure, FailureText(failure)};
}

void BeginToLookForImages(Job& job, MonotonicTime now) {
  if (!job.image_look_time && IsQueued(job) && ContinuesFromImages(job)) job.image_look_time = now;
}

void DropImages(Job& job, Turn& turn) {
  if (job.images.step() == 0) return;
  std::map<std::string, v1::CoordinatorMessage> orders;
  for (const v1::RankImage& image : job.images.images()) {
    v1::DeleteImages& order = *orders[image.worker()].mutable_delete_images();
    order.set_job(job.id());
    order.add_paths(image.path());
  }
  for (auto& [worker, order] : orders) SendToWorker(worker, std::move(order), turn);
  turn.effects.writes.DeleteImages(job.id());
  job.images.Clear();
}

void DropNeedlessImages(const v1::Hello& hello, std::map<std::string, Job>* jobs, Turn& turn) {
  std::map<std::string, v1::CoordinatorMessage> orders;  // by job
  std::vector<std::string> unknown;
  for (const v1::HeldImage& held : hello.images()) {
    const auto found = jobs->find(JobId(held.job()));
    if (found == jobs->end()) {
      unknown.push_back(held.path());
      continue;
    }
    Job& job = found->second;
    const auto& images = job.images.images();
    const bool needed = std::any_of(images.begin(), images.end(), [&](const v1::RankImage& image) {
      return image.worker() == hello.name() && image.path() == held.path();
    });
    if (needed && !turn.options.bugs.drop_needed_images) continue;
    if (job.group && job.group->epoch == held.group_epoch()) {
      // It may be rewritten, or be one of the awaited images.
      job.group->left_images[held.path()] = hello.name();
      continue;
    }
    v1::DeleteImages& order = *orders[job.id()].mutable_delete_images();
    order.set_job(job.id());
    order.add_paths(held.path());
  }
  for (auto& [job, order] : orders) SendToWorker(hello.name(), std::move(order), turn);
  if (unknown.empty()) return;
  turn.effects.notes.push_back(fmt::format(
      "{} has {} images of ranks of jobs that this catalog does not have; they are kept: {}",
      hello.name(), unknown.size(), Shortened(fmt::format("{}", fmt::join(unknown, ", ")))));
}

}  // namespace troupe
