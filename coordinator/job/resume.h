// Resumes a job that has ended.
#ifndef TROUPE_COORDINATOR_JOB_RESUME_H_
#define TROUPE_COORDINATOR_JOB_RESUME_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "coordinator/state/job_state.h"
#include "coordinator/state/planner.h"
#include "coordinator/state/turn.h"
#include "troupe/v1/catalog.pb.h"

namespace troupe {

// The inputs of planning a resume, copied so that another thread can plan it.
struct ResumeInputs {
  uint64_t last_event = 0;  // the job's last event
  v1::JobSpec spec;         // the job's
  v1::JobSpec overrides;
  std::optional<v1::StatedKeys> stated;  // the keys that were stated so far; absent: not known
  v1::Plan submitted;                    // the plan of the submitted layout
  v1::Plan running;                      // the plan of the layout that ran last
  // The layout of the images that the job is restored from, if it is smaller than the submitted
  // one.
  std::optional<v1::ParallelismSpec> images_layout;
};

// The slow part of ResumeJob, which needs no state.
struct PreparedResume {
  uint64_t last_event = 0;  // the job's when it was planned; a later one means that it changed
  StatusOr<v1::JobSpec> spec;
  StatusOr<v1::Plan> plan;  // for the layout that runs next; the same error if the spec is wrong
  std::optional<v1::SmallerLayout> smaller;  // set if `plan` is of images_layout
};

// OK; FAILED_PRECONDITION if the job has not ended or is being deleted; INVALID_ARGUMENT if the
// overrides would rename it.
Status CheckResumable(const Job& job, const v1::JobSpec& overrides);

ResumeInputs InputsOfResume(const Job& job, const v1::ResumeJobRequest& request);
// Pure; callable from any thread.
PreparedResume PrepareResume(const Planner& planner, const ResumeInputs& inputs);

// Queues an ended job again, with the overrides merged into its spec, on the layout that the merged
// spec asks for even if it ran on a smaller one. A job that is restored from images of a smaller
// layout keeps that layout until it grows. Keys stored by checkpoint/ and the data order must not
// change (plan/job/kept_keys.h). If `prepared` is null or of a former state of the job, it is made
// here.
Status ResumeJob(Job& job, const v1::ResumeJobRequest& request,
                 std::shared_ptr<const PreparedResume> prepared, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_RESUME_H_
