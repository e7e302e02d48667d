// The metrics that a worker exports for its ranks. Metrics that the coordinator exports for a
// worker (metric::kWorkerUp, metric::kWorkerMemory) are not exported here, so that a sum over all
// scraped targets counts everything once.
#ifndef TROUPE_WORKER_DAEMON_WORKER_METRICS_H_
#define TROUPE_WORKER_DAEMON_WORKER_METRICS_H_

#include <map>
#include <string>
#include <tuple>

#include "base/metrics/metrics.h"
#include "troupe/v1/rank.pb.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/session_actor.h"

namespace troupe {

// Not thread-safe, except `metrics`, to which others add too.
class WorkerMetrics final : public RankTotals {
 public:
  explicit WorkerMetrics(const v1::Hello& identity);

  void Restart(int device) override { reported_.erase(device); }
  void Add(int device, const v1::RankMetrics& totals) override;

  const Metrics& metrics() const { return metrics_; }
  Metrics& metrics() { return metrics_; }

 private:
  struct DeviceTotals {
    using Key = std::tuple<std::string, std::string, std::string>;  // operation, axis, purpose
    std::map<Key, v1::CollectiveHistogram> collectives;
    std::map<Key, v1::DeviceCollectiveTotals> device_collectives;
    std::map<std::string, int64_t> fallbacks;
  };

  Metrics metrics_;
  std::map<int, DeviceTotals> reported_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_WORKER_METRICS_H_
