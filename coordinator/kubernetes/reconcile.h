// Decides what the coordinator does next for one TroupeJob. Pure: a function of the object and of
// the job that the catalog has for it, so that it may be called anew after any crash.
//
// Exactly once: a job is created with the object's uid as its request id, which the catalog keeps
// with the job and after the job's removal. An object whose status has a job's name, or whose job
// was removed before the status had the name, never gets another one.
//
// An object has the finalizer only while its deletion must wait for something: for a job to stop.
// One without, whose job has not begun or has ended, goes at once, also where nobody reconciles it
// any more; the job leaves the catalog when the deletion is seen.
#ifndef TROUPE_COORDINATOR_KUBERNETES_RECONCILE_H_
#define TROUPE_COORDINATOR_KUBERNETES_RECONCILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/kubernetes/troupe_job.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// The job that the catalog has for the uid of an object.
struct JobFacts {
  std::string name;                                // id
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;  // as shown to users
  bool is_removed = false;  // the catalog has it no more, and only the name is set
  bool has_ranks = false;
  bool has_folder = false;   // it can make checkpoints
  bool is_stopping = false;  // cancelled: it ends as soon as its checkpoint is written
  int64_t step = 0;
  int64_t steps = 0;
  int64_t restarts = 0;
  int64_t moves = 0;           // times that it left workers that were draining
  bool is_moving = false;      // it leaves such workers now
  std::string move_reason;     // the reason for which it does, or last did
  std::optional<double> loss;  // that of `step`; absent: not read
  std::optional<double> mfu;
  std::optional<double> remaining_seconds;
  std::string last_checkpoint;
  std::string waiting_for;
  std::string failure;
};

enum class Act { kNone, kAddFinalizer, kCreate, kCancel, kResume, kDelete, kRemoveFinalizer };

// The error of the last act for the object.
struct Refusal {
  std::string message;
  bool is_final = false;  // the same call will hardly ever succeed: the job is invalid
  bool waits = false;     // the call is not repeated yet
};

struct Decision {
  Act act = Act::kNone;
  bool checkpoint = false;    // kCancel: after a checkpoint
  bool record_first = false;  // the act requires that `status` is written
  // As it should be, without the times of its conditions; texts of others are shown as
  // PrintableLine does.
  TroupeJobStatus status;
};

// `job` is null if the catalog has none for the object's uid, `refusal` if there was no error.
Decision Reconcile(const TroupeJob& object, const JobFacts* job, const Refusal* refusal);

// Whether the two differ in more than figures and messages, which may change every second.
// `recorded` may have conditions of other types than `wanted`, which others have written.
bool DiffersInState(const TroupeJobStatus& wanted, const TroupeJobStatus& recorded);
// Whether the two differ in anything but those conditions and the times of conditions.
bool Differs(const TroupeJobStatus& wanted, const TroupeJobStatus& recorded);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_RECONCILE_H_
