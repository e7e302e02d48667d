// The actor that adds the engine's measurements to the coordinator's metrics.
//
// Overload: if its mailbox is full, the engine drops measurements and counts them
// (metric::kMeasurementsDropped), and sends all jobs' figures again once there is room.
#ifndef TROUPE_COORDINATOR_SERVICE_MEASURE_H_
#define TROUPE_COORDINATOR_SERVICE_MEASURE_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actor/actor.h"
#include "base/metrics/metrics.h"
#include "coordinator/engine/measured.h"
#include "coordinator/service/job_phases.h"
#include "coordinator/service/rank_fold.h"
#include "coordinator/service/series_lifetime.h"

namespace troupe {

// The most groups of measurements that wait.
inline constexpr size_t kMostWaitingMeasured = 4096;

class MetricsActor final : public Actor {
 public:
  // `metrics` outlives the actor.
  explicit MetricsActor(Metrics& metrics);

  // Records which build of the coordinator runs.
  Status Start(Context& context) override;
  // Records a Measured.
  Status Handle(AnyMessage message, Context& context) override;

 private:
  // The figures of single ranks, by job. `is_new`: not all of them are in the metrics.
  struct RankFigures {
    RankFold bubble;
    RankFold imbalance;
    RankFold busy;     // seconds
    RankFold exposed;  // seconds, of the steps that `busy` has
    bool has_bubble = false;
    bool has_imbalance = false;
    bool has_busy = false;  // since the last fold
    bool is_new = false;
  };

  void NoteRank(const Measurement& measurement);
  // Records the folded figures, at most once a second.
  void RecordRanks(MonotonicTime now);
  // Adds to the phases what the measurement shows of a job's time.
  void RecordTime(const Measurement& measurement, MonotonicTime now);
  void RecordJob(const JobFigures& figures, MonotonicTime now);
  // Removes the series of a job.
  void DropSeries(const std::string& job);
  // Records what concerns all jobs: their number in each state, the time that they have spent, and
  // the end of series; at most once a second.
  void RecordAllJobs(MonotonicTime now);
  void RecordWorkers(const std::vector<WorkerFigures>& workers);
  void RecordControl(const ControlFigures& figures);

  Metrics& metrics_;
  SeriesLifetime lifetime_;
  std::map<std::string, RankFigures> ranks_;
  MonotonicTime ranks_due_, jobs_due_;
  JobPhases phases_;
  std::map<std::string, JobShape> shapes_;      // those that have a series, by job
  std::map<std::string, v1::JobState> states_;  // every job that the coordinator keeps
  std::set<std::string> worker_series_;         // names of workers that have a series
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_MEASURE_H_
