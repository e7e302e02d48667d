#include "coordinator/kubernetes/kubernetes_pods.h"

#include "base/log.h"
#include "coordinator/kubernetes/ask_engine.h"

namespace troupe {

KubernetesPods::KubernetesPods(const KubernetesOptions& options, Engine& engine, const Clock& clock)
    : api_({options.url, options.directory}, clock),
      marker_(
          options.space, api_, [&engine] { return AskEngine(engine, WorkerUses); }, clock) {
  LogInfo("kubernetes", "marks the pods of workers in namespace {} at {}", options.space,
          options.url);
  thread_ = std::thread([this] {
    while (!stops_) marker_.Turn();
  });
}

KubernetesPods::~KubernetesPods() {
  stops_ = true;
  api_.Stop();
  thread_.join();
}

}  // namespace troupe
