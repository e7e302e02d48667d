// What a rank reports of a step, and of itself for metrics. Not thread-safe.
#ifndef TROUPE_WORKER_RANK_STEP_REPORT_H_
#define TROUPE_WORKER_RANK_STEP_REPORT_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "collective/statistics.h"
#include "troupe/v1/rank.pb.h"
#include "worker/executor/executor.h"

namespace troupe {

class StepReportMaker {
 public:
  // `model_flops`: of a step of the whole job.
  StepReportMaker(std::string job, uint64_t group_epoch, int rank, double model_flops)
      : job_(std::move(job)), group_epoch_(group_epoch), rank_(rank), model_flops_(model_flops) {}

  // `statistics`: the network's totals; the report carries what was added since the last one. Only
  // rank 0's has the job's numbers, and the checkpoint attempt that begins after the step (0: none);
  // the others' their own times.
  v1::StepReport Make(const StepResult& result, const std::vector<CollectiveStatistics>& statistics,
                      int64_t checkpoint_attempt = 0);

 private:
  struct Totals {
    uint64_t count = 0;
    uint64_t bytes = 0;
    double seconds = 0;
  };

  const std::string job_;
  const uint64_t group_epoch_;
  const int rank_;
  const double model_flops_;
  std::map<std::tuple<CollectiveOperation, std::string, Purpose>, Totals> reported_;
};

// Cumulative. `fallbacks`: lines "OPERATION WHERE: WHY", counted by their first word.
v1::RankMetrics MakeRankMetrics(const std::vector<CollectiveStatistics>& statistics,
                                const std::vector<std::string>& fallbacks);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_STEP_REPORT_H_
