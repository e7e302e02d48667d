// The thread on which the coordinator marks the pods of its workers as busy or idle. It waits for
// the API server of Kubernetes and for the engine, and blocks nobody else.
#ifndef TROUPE_COORDINATOR_KUBERNETES_KUBERNETES_PODS_H_
#define TROUPE_COORDINATOR_KUBERNETES_KUBERNETES_PODS_H_

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "coordinator/engine/engine.h"
#include "coordinator/kubernetes/api_client.h"
#include "coordinator/kubernetes/kubernetes_options.h"
#include "coordinator/kubernetes/pod_marker.h"

namespace troupe {

class KubernetesPods {
 public:
  // The thread runs until the destructor, which ends the request in flight. REQUIRES: the options
  // are complete. `engine` and `clock` outlive the object.
  KubernetesPods(const KubernetesOptions& options, Engine& engine, const Clock& clock);
  ~KubernetesPods();
  KubernetesPods(const KubernetesPods&) = delete;
  KubernetesPods& operator=(const KubernetesPods&) = delete;

 private:
  std::atomic<bool> stops_ = false;
  ApiClient api_;
  PodMarker marker_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_KUBERNETES_PODS_H_
