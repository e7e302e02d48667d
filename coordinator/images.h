// Where a job's end cannot be saved: after checkpoint.final_save_seconds of trying, each rank keeps
// an image of its state on its worker, the job FAILS, and ResumeJob goes on from the images on the
// same workers. A job that had stopped to grow goes on from them by itself, on the layout that it
// had. Images count while they are newer than every commit. All pure.
#ifndef TROUPE_COORDINATOR_IMAGES_H_
#define TROUPE_COORDINATOR_IMAGES_H_

#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "coordinator/job.h"
#include "coordinator/turn.h"
#include "plan/placement.h"

namespace troupe {

// When images are taken instead of another attempt; absent: no attempt has failed.
std::optional<MonotonicTime> FinalSaveDeadline(const Job& job);

// Asks every rank for its image. REQUIRES: the group is running and its ranks have stopped.
void TakeImages(Job& job, Turn& turn);
// What asks them.
v1::CoordinatorMessage ImageOrderOf(const Job& job);
// A rank's answer. Once all have one the job FAILS with it, or goes on from it where it was to
// grow; where one has none, it is GiveUpImages.
void OnImageSaved(Job& job, const v1::ImageSaved& message, Turn& turn);
// The ranks hold the state on: the final checkpoint is tried again, for as long as before.
void GiveUpImages(Job& job, const std::string& reason, Turn& turn);

// Whether a rank on `worker` has not answered yet. REQUIRES: images are being taken.
bool AwaitsImageOf(const Job& job, const std::string& worker);
// The group ends: what ranks wrote in tries that were given up, or that are under way, is removed.
// REQUIRES: a group.
void DropLeftImages(Job& job, Turn& turn);

// Whether the job would be restored from its images.
bool GoesOnFromImages(const Job& job);
// A rank that starts says that its image is not there, or not what was written. Nobody else has it:
// every other try would find the same.
bool FindsImageDamaged(const Job& job, const v1::RankFailed& message);
std::string DamagedImageText(const Job& job, const v1::RankFailed& message);
// FAILED_PRECONDITION naming what is missing where the job would go on from images and cannot: a
// worker that has one is not connected, or `spec` has another layout than they.
Status CheckImages(const Job& job, const v1::JobSpec& spec, const Turn& turn);
// The job's plan with each rank on the worker that has its image; RESOURCE_EXHAUSTED naming a
// worker without a free device.
StatusOr<v1::Plan> PlaceAtImages(const Job& job, const ClusterView& free);

// The images are of no more use: forgotten, and their workers told to remove them. One that is away
// is told when it says hello.
void DropImages(Job& job, Turn& turn);

// A worker says which images it has: it is told to remove those that its jobs do not go on from.
// Those of a group that lives wait for its end (DropLeftImages). What is of no job in the catalog
// stays, and is noted: it may be all that another catalog's job has left.
void DropNeedlessImages(const v1::Hello& hello, std::map<std::string, Job>* jobs, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_IMAGES_H_
