// A job that has ended and goes on.
#ifndef TROUPE_COORDINATOR_RESUME_H_
#define TROUPE_COORDINATOR_RESUME_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "coordinator/job.h"
#include "coordinator/planner.h"
#include "coordinator/turn.h"

namespace troupe {

// What a resume is planned from: copies, so that it can be planned on another thread.
struct ResumeInputs {
  uint64_t last_event = 0;  // of the job
  v1::JobSpec spec;         // the job's
  v1::JobSpec overrides;
  v1::Plan submitted;  // of the submitted layout
  v1::Plan running;    // of the layout that ran last
  // The layout of the images from which the job goes on, where that is smaller than the submitted
  // one.
  std::optional<v1::ParallelismSpec> images_layout;
};

// What of ResumeJob takes long and needs no state.
struct PreparedResume {
  uint64_t last_event = 0;  // of the job that it was made from: with a later one, that has changed
  StatusOr<v1::JobSpec> spec;
  StatusOr<v1::Plan> plan;  // of the layout that runs next; where the spec is wrong: the same error
  std::optional<v1::SmallerLayout> smaller;  // set where `plan` is of images_layout
};

// OK, or FAILED_PRECONDITION: it has not ended or is being deleted; INVALID_ARGUMENT: it would be
// renamed.
Status CheckResumable(const Job& job, const v1::JobSpec& overrides);

ResumeInputs InputsOfResume(const Job& job, const v1::ResumeJobRequest& request);
// Pure, on any thread.
PreparedResume PrepareResume(const Planner& planner, const ResumeInputs& inputs);

// Queues a job that has ended again, with the overrides merged over its spec, on the layout that
// this asks for, whatever smaller one it ran on. A job that goes on from images of a smaller layout
// keeps that until it grows. Of what checkpoint/ keeps and the data order nothing may change
// (plan/kept_keys.h). `prepared` may be null or of a former state of the job: it is made here then.
Status ResumeJob(Job& job, const v1::ResumeJobRequest& request,
                 std::shared_ptr<const PreparedResume> prepared, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_RESUME_H_
