// A rank's reports of its steps, and of itself for metrics. Not thread-safe.
#ifndef TROUPE_WORKER_RANK_STEP_REPORT_H_
#define TROUPE_WORKER_RANK_STEP_REPORT_H_

#include <array>
#include <string>
#include <vector>

#include "collective/device_statistics.h"
#include "collective/statistics.h"
#include "kernels/backend/backend.h"
#include "troupe/v1/rank.pb.h"
#include "worker/executor/executor.h"

namespace troupe {

// Adds the seconds of the device's collectives to the totals of the host's network.
std::array<PurposeSeconds, kPurposes> WithDevice(
    std::array<PurposeSeconds, kPurposes> of_host,
    const std::vector<DeviceCollectiveStatistics>& of_device);

// Seconds of collectives, by purpose, between two readings of their running totals.
class StepCommunication {
 public:
  std::array<PurposeSeconds, kPurposes> Advance(const std::array<PurposeSeconds, kPurposes>& now);

 private:
  std::array<PurposeSeconds, kPurposes> before_{};
};

class StepReportMaker {
 public:
  // Model FLOPs of a step of the whole job if each sample is one document.
  struct StepFlops {
    double all = 0;
    double attention = 0;  // part of these that depends on query-key pairs
  };
  StepReportMaker(std::string job, uint64_t group_epoch, int rank, const StepFlops& flops)
      : job_(std::move(job)), group_epoch_(group_epoch), rank_(rank), flops_(flops) {}

  // The conditions under which one step of this rank ran, in addition to its result.
  struct StepConditions {
    int64_t checkpoint_attempt = 0;  // attempt that begins after the step; 0: none
    int64_t writing_attempt = 0;     // still written in the background; 0: none
    int64_t epoch_step = 0;          // 1 for the first step of the group epoch
    bool saving = false;             // a checkpoint was copied or written while it ran
    std::array<PurposeSeconds, kPurposes> communication{};  // seconds in this step, by purpose
    double core_wait_seconds = 0;
  };

  // Only rank 0's report has the job's event and the checkpoint attempt that begins after the step;
  // the other ranks report their own figures.
  v1::StepReport Make(const StepResult& result, const StepConditions& conditions) const;

 private:
  // Adds to the figures of `result` those that only the rank knows.
  static v1::StepFigures FiguresOf(const StepResult& result, const StepConditions& conditions);

  const std::string job_;
  const uint64_t group_epoch_;
  const int rank_;
  const StepFlops flops_;
};

// Findings of a rank's first steps about its preparation, each reported once.
class PreparationReport {
 public:
  // The coordinator knows this number of the program's fall-backs, and of the programs that the
  // device's compiler has made.
  void Reported(size_t fallbacks, size_t programs) {
    reported_fallbacks_ = fallbacks;
    reported_programs_ = programs;
  }
  // Adds to `report` the graphs captured since the last report, and all fall-backs if the program
  // has new ones. Both lists have lines as below.
  void Add(const kernels::PreparationCounts& counts, const std::vector<std::string>& of_program,
           const std::vector<std::string>& of_links, v1::StepReport* report);
  // Adds the programs that the device's compiler has made since the last report.
  void AddPrograms(const kernels::Compilation& compilation, v1::StepReport* report);

 private:
  size_t reported_fallbacks_ = 0;
  int64_t reported_captures_ = 0;
  size_t reported_programs_ = 0;
};

// Cumulative. `fallbacks` are lines "OPERATION WHERE: WHY", counted by their first word.
v1::RankMetrics MakeRankMetrics(const std::vector<CollectiveStatistics>& statistics,
                                const std::vector<DeviceCollectiveStatistics>& of_device,
                                const std::vector<std::string>& fallbacks);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_STEP_REPORT_H_
