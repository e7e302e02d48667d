// The actor that adds the engine's measurements to the coordinator's metrics.
//
// Overload: if its mailbox is full, the engine drops measurements and counts them
// (metric::kMeasurementsDropped), and sends all jobs' figures again once there is room.
#ifndef TROUPE_COORDINATOR_SERVICE_MEASURE_H_
#define TROUPE_COORDINATOR_SERVICE_MEASURE_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "actor/actor.h"
#include "base/metrics/metrics.h"
#include "coordinator/engine/measured.h"

namespace troupe {

// The most groups of measurements that wait.
inline constexpr size_t kMostWaitingMeasured = 4096;

class MetricsActor final : public Actor {
 public:
  // `metrics` outlives the actor.
  explicit MetricsActor(Metrics& metrics) : metrics_(metrics) {}

  // Records which build of the coordinator runs.
  Status Start(Context& context) override;
  // Records a Measured.
  Status Handle(AnyMessage message, Context& context) override;

 private:
  void RecordWorkers(const std::vector<WorkerFigures>& workers);

  Metrics& metrics_;
  std::set<std::string> worker_series_;  // names of workers that have a series
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_MEASURE_H_
