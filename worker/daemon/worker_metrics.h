// The metrics that a worker exports for its ranks. Metrics that the coordinator exports for a
// worker (metric::kWorkerUp, metric::kWorkerMemory) are not exported here, so that a sum over all
// scraped targets counts everything once.
//
// A worker of up to eight GPUs has at most kMostSeries series, whatever its ranks report: what has
// no room is added up under the label values "other".
#ifndef TROUPE_WORKER_DAEMON_WORKER_METRICS_H_
#define TROUPE_WORKER_DAEMON_WORKER_METRICS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/metrics/metric_list.h"
#include "base/metrics/metrics.h"
#include "troupe/v1/rank.pb.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/session_actor.h"

namespace troupe {

// Not thread-safe, except `metrics`, to which others add too.
class WorkerMetrics final : public RankTotals {
 public:
  static constexpr int kMostSeries = 300;  // with those of the process and of DeviceMetrics

  explicit WorkerMetrics(const v1::Hello& identity);

  void Restart(int device, const std::string& job) override;
  void Add(int device, const v1::RankMetrics& totals) override;
  // Drops the series of a job 15 minutes after its last rank ended here.
  void KeepJobs(const std::set<std::string>& jobs, MonotonicTime now) override;

  const Metrics& metrics() const { return metrics_; }
  Metrics& metrics() { return metrics_; }

 private:
  // Operation, axis, scope and purpose.
  using Key = std::tuple<std::string, std::string, std::string, std::string>;

  // Decides which collectives of which jobs have series of their own.
  class Room {
   public:
    explicit Room(size_t most) : most_(most) {}
    bool Admit(const std::string& job, const Key& key);
    void Drop(const std::string& job);

   private:
    const size_t most_;
    std::set<std::pair<std::string, Key>> admitted_;
  };
  // The values of the labels of a collective.
  struct Labels {
    label::JobName job;
    label::Operation operation;
    label::Axis axis;
    label::Scope scope;
    label::Purpose purpose;
  };
  static Labels LabelsOf(const std::string& job, const Key& key, Room* room);

  struct DeviceTotals {
    std::string job;
    std::map<Key, v1::CollectiveHistogram> collectives;
    std::map<Key, v1::DeviceCollectiveTotals> device_collectives;
    std::map<std::string, int64_t> fallbacks;
  };

  void AddCollective(const v1::CollectiveHistogram& now, DeviceTotals* before);
  void AddDeviceCollective(const v1::DeviceCollectiveTotals& now, DeviceTotals* before);

  Metrics metrics_;
  Room collectives_, device_collectives_;
  std::set<std::string> fallbacks_;  // operations that have a series
  std::map<int, DeviceTotals> reported_;
  // The jobs that have series, each with the last time at which it had a rank here.
  std::map<std::string, MonotonicTime> jobs_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_WORKER_METRICS_H_
