// The requests that the coordinator sends to the API server. Pure.
#ifndef TROUPE_COORDINATOR_KUBERNETES_REQUESTS_H_
#define TROUPE_COORDINATOR_KUBERNETES_REQUESTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "coordinator/kubernetes/api_server.h"
#include "coordinator/kubernetes/troupe_job.h"

namespace troupe {

ApiRequest ListRequest(const std::string& space);
ApiRequest GetRequest(const TroupeJob& object);
// The path of a watch that begins behind `resource_version`.
std::string WatchPath(const std::string& space, const std::string& resource_version);

// Writes the status of this object, and of no later one with the same name.
ApiRequest StatusRequest(const TroupeJob& object, const TroupeJobStatus& status);

// Adds the finalizer to the object, unless the object has changed since.
ApiRequest AddFinalizerRequest(const TroupeJob& object);
// Removes the finalizer from where the object has it. REQUIRES: it has it.
ApiRequest RemoveFinalizerRequest(const TroupeJob& object);

struct ObjectEvent {
  bool is_warning = false;
  std::string reason;  // one word
  std::string note;
};

// Records an event that `kubectl describe` shows, its note as PrintableLine does. `instance` names
// this coordinator.
ApiRequest EventRequest(const TroupeJob& object, const ObjectEvent& event,
                        const std::string& instance, int64_t wall_ns);

// Marks a pod, so that a smaller pool loses idle ones first and autoscalers leave the nodes of busy
// ones alone. REQUIRES: IsPodName(pod).
ApiRequest MarkPodRequest(const std::string& space, const std::string& pod, bool is_busy);

// Returns the message of an answer that is an error: that of the API server's Status if it has one.
std::string ErrorText(const ApiAnswer& answer);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_REQUESTS_H_
