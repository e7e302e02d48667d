// Marks the pods of one namespace of Kubernetes as their workers are used (pod_marks.h). It has no
// thread of its own: its owner calls Turn again and again.
//
// Overload: at most kMostPodWrites requests are sent in a turn, one at a time; the other marks wait
// for the next turns.
#ifndef TROUPE_COORDINATOR_KUBERNETES_POD_MARKER_H_
#define TROUPE_COORDINATOR_KUBERNETES_POD_MARKER_H_

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "coordinator/kubernetes/api_server.h"
#include "coordinator/kubernetes/backoff.h"
#include "coordinator/kubernetes/pod_marks.h"

namespace troupe {

class PodMarker {
 public:
  static constexpr size_t kMostPodWrites = 20;

  using ReadUses = std::function<StatusOr<std::vector<WorkerUse>>()>;

  // `space` is the namespace. `api` and `clock` outlive the marker.
  PodMarker(std::string space, ApiServer& api, ReadUses read_uses, const Clock& clock);

  // Waits for a second, and then writes the marks that are due.
  void Turn();

 private:
  // Returns false if the API server asks for a pause.
  bool Write(const PodWrite& write);
  void Complain(const std::string& text);

  const std::string space_;
  ApiServer& api_;
  const ReadUses read_uses_;
  const Clock& clock_;
  PodMarks marks_;
  Backoff pause_;          // after errors that concern all requests
  std::string complaint_;  // the last one in the log; empty: all is well
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_POD_MARKER_H_
