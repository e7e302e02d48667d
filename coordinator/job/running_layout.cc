#include "coordinator/job/running_layout.h"

#include <utility>

#include "coordinator/state/job_state.h"

namespace troupe {

const v1::Plan& SubmittedPlan(const Job& job) {
  return job.smaller ? job.smaller->submitted_plan() : job.plan;
}

v1::JobSpec RunningSpec(const Job& job) {
  v1::JobSpec spec = job.spec;
  if (job.smaller) *spec.mutable_parallelism() = job.smaller->parallelism();
  return spec;
}

void UseSmallerLayout(const v1::JobSpec& smaller, Job& job, Turn& turn) {
  if (!job.smaller) *job.smaller.emplace().mutable_submitted_plan() = job.plan;
  *job.smaller->mutable_parallelism() = smaller.parallelism();
  turn.effects.writes.PutSmallerLayout(job.id(), *job.smaller);
}

void RecordSmallerLayout(v1::SmallerLayout smaller, Job& job, Turn& turn) {
  job.smaller = std::move(smaller);
  turn.effects.writes.PutSmallerLayout(job.id(), *job.smaller);
}

void ForgetSmallerLayout(Job& job, Turn& turn) {
  if (!job.smaller) return;
  job.smaller.reset();
  turn.effects.writes.DeleteSmallerLayout(job.id());
}

}  // namespace troupe
