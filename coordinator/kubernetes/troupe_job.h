// A TroupeJob, the object of Kubernetes that states a job, as the API server sends it, and its
// status as the coordinator writes it. Pure.
#ifndef TROUPE_COORDINATOR_KUBERNETES_TROUPE_JOB_H_
#define TROUPE_COORDINATOR_KUBERNETES_TROUPE_JOB_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/job/message_json.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

inline constexpr std::string_view kTroupeJobVersion = "troupe.dev/v1alpha1";
inline constexpr std::string_view kTroupeJobKind = "TroupeJob";
// While an object has it, the API server keeps the deleted object.
inline constexpr std::string_view kFinalizer = "troupe.dev/job";

// States of an object without a job.
inline constexpr std::string_view kPending = "PENDING";
inline constexpr std::string_view kSuspended = "SUSPENDED";  // also with a job that was suspended
inline constexpr std::string_view kRejected = "REJECTED";
inline constexpr std::string_view kDeleted = "DELETED";  // the catalog has lost the job

// The state of a job that leaves workers that are draining.
inline constexpr std::string_view kMoving = "MOVING";

// Types of conditions, all of which every status has.
inline constexpr std::string_view kAcceptedCondition = "Accepted";
inline constexpr std::string_view kSuspendedCondition = "Suspended";
inline constexpr std::string_view kFinishedCondition = "Finished";

struct Condition {
  std::string type;
  std::string status;  // "True", "False" or "Unknown"
  std::string reason;
  std::string message;
  std::string since;  // RFC 3339; when `status` last changed

  // Compares all but message and time.
  bool SameAs(const Condition& other) const {
    return type == other.type && status == other.status && reason == other.reason;
  }
};

struct TroupeJobStatus {
  int64_t observed_generation = 0;
  std::string state;
  std::string job_name;
  std::optional<int64_t> step;
  std::optional<int64_t> steps;
  std::string loss;
  std::string mfu;
  std::optional<int64_t> restarts;
  std::optional<int64_t> remaining_seconds;
  std::string last_checkpoint;
  std::vector<Condition> conditions;

  const Condition* Find(std::string_view type) const;
  bool Holds(std::string_view type) const;
};

struct TroupeJob {
  std::string name;
  std::string space;  // namespace of Kubernetes
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  bool is_deleted = false;  // somebody deletes it
  std::vector<std::string> finalizers;
  std::string job;  // spec.job as JSON
  // Keys of spec that `kubectl apply` was given and the API server does not have, because the
  // definition does not declare them: the first ones, as "spec.job.trainig".
  std::vector<std::string> dropped;
  bool suspend = false;
  bool aborts = false;  // cancelPolicy is Abort
  TroupeJobStatus status;

  bool has_finalizer() const;
};

// INVALID_ARGUMENT names the field if `object` has no name, namespace, uid or resource version that
// can be a part of a path, or if spec.job has too many levels. Fields of other types than the
// definition states are as if absent.
StatusOr<TroupeJob> ParseTroupeJob(const Json& object);

// Returns the job that `object` states, which has the object's name if it states none.
// INVALID_ARGUMENT lists what is wrong with the keys.
StatusOr<v1::JobSpec> JobOf(const TroupeJob& object);

Json StatusToJson(const TroupeJobStatus& status);

// Returns the text or the whole number of a member; empty or absent if `object` has none.
std::string TextOf(const Json& object, const char* name);
std::optional<int64_t> WholeOf(const Json& object, const char* name);

// Whether the text can be a part of a URL's path as it is: a name of an object, or a version.
bool IsPartOfPath(std::string_view text);

// Returns "the API server has dropped spec.job.trainig, …"; empty if nothing was dropped.
std::string DroppedText(const TroupeJob& object);

// Returns at most `bytes` bytes of `text`, without a part of a character at the end.
std::string Shorten(std::string_view text, size_t bytes);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_TROUPE_JOB_H_
