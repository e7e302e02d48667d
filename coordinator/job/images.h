// Images: the fallback when a job's final checkpoint cannot be saved. After
// checkpoint.final_save_seconds of failed attempts each rank writes an image of its state to its
// worker, the job becomes FAILED, and ResumeJob restores it from the images on the same workers. A
// job that had stopped in order to grow is restored by itself, on its former layout. Images count
// while they are newer than every commit. All functions are pure.
#ifndef TROUPE_COORDINATOR_JOB_IMAGES_H_
#define TROUPE_COORDINATOR_JOB_IMAGES_H_

#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"
#include "plan/layout/placement.h"

namespace troupe {

// The time from which images are taken instead of another attempt; absent if no attempt has failed.
std::optional<MonotonicTime> FinalSaveDeadline(const Job& job);

// Asks every rank for its image. REQUIRES: the group is running and its ranks have stopped.
void RequestImages(Job& job, Turn& turn);
// The message that asks a rank for its image.
v1::CoordinatorMessage ImageOrderOf(const Job& job);
// Handles a rank's answer. When all ranks have an image, the job becomes FAILED, or is restored
// from the images if it was to grow. If a rank has none, calls AbandonImages, unless ranks hang in
// the save: then that waits until they have answered, or ends with CountHungSave.
[[nodiscard]] Transition OnImageSaved(Job& job, const v1::ImageSaved& message, Turn& turn);
// Abandons this try: the ranks keep their state, and the final checkpoint is retried for the same
// time again.
void AbandonImages(Job& job, std::string reason, Turn& turn);

// Whether a rank on `worker` has not answered yet. REQUIRES: images are being taken.
bool AwaitsImageOf(const Job& job, const std::string& worker);
// Called when the group ends: asks the workers to delete the images of abandoned tries and of the
// try in progress. REQUIRES: a group.
void DropLeftImages(Job& job, Turn& turn);

// Whether the job would be restored from its images.
bool ContinuesFromImages(const Job& job);
// The advice for a failure to write to checkpoint.folder while the job would be restored from its
// images: it can run only on the workers that have them. Empty if it is not restored from images.
std::string UnwritableFolderAdvice(const Job& job);
// Whether `message` reports that the rank's image is missing or damaged. No other copy exists, so
// every other try would fail in the same way.
bool FindsImageDamaged(const Job& job, const v1::RankFailed& message);
std::string DamagedImageText(const Job& job, const v1::RankFailed& message);
// FAILED_PRECONDITION if the job would be restored from images and cannot be: it names the worker
// with an image that is not connected, or states that `spec` has another layout than the images.
Status CheckImages(const Job& job, const v1::JobSpec& spec, const Turn& turn);
// Places each rank of the job's plan on the worker that has its image. RESOURCE_EXHAUSTED names a
// worker without a free device.
StatusOr<v1::Plan> PlaceAtImages(const Job& job, const ClusterView& free);

// Looks whether the workers are there from whose images the queued job would be restored, and ends
// the job with BAD_IMAGE if one has been away, or has drained, for TimeLimits.forget_worker. The
// images are kept. Call when job.image_look_time has come.
[[nodiscard]] Transition LookForImages(Job& job, Turn& turn);
// Begins to look if the job waits for such workers. Call when the job may have been queued.
void BeginToLookForImages(Job& job, MonotonicTime now);

// Forgets the images and asks their workers to delete them. A worker that is away is asked after
// its next Hello.
void DropImages(Job& job, Turn& turn);

// Handles the images that a worker lists in its Hello: asks it to delete those that its jobs are
// not restored from. Images of a live group wait for the group's end (DropLeftImages). Images of a
// job that is not in the catalog are kept and logged, because they may be all that is left of a job
// of another catalog.
void DropNeedlessImages(const v1::Hello& hello, std::map<std::string, Job>* jobs, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_IMAGES_H_
