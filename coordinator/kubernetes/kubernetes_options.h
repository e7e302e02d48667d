// The way in which the coordinator reaches the API server of Kubernetes, and its purposes there.
#ifndef TROUPE_COORDINATOR_KUBERNETES_KUBERNETES_OPTIONS_H_
#define TROUPE_COORDINATOR_KUBERNETES_KUBERNETES_OPTIONS_H_

#include <string>

#include "base/status.h"
#include "coordinator/kubernetes/api_client.h"

namespace troupe {

struct KubernetesOptions {
  bool jobs = false;  // TroupeJobs are reconciled
  bool pods = false;  // pods of workers are marked as busy or idle
  // Empty: https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT.
  std::string url;
  std::string directory = kServiceAccountDirectory;
  std::string space;  // namespace of Kubernetes; empty: that of the service account
};

// Fills in what is empty. INVALID_ARGUMENT names the flag, variable or file that is missing.
// REQUIRES: there is a purpose.
StatusOr<KubernetesOptions> CompleteKubernetesOptions(KubernetesOptions options);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_KUBERNETES_OPTIONS_H_
