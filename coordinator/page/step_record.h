// The steps and events of a job that the page has read so far, in limited memory. Pure.
//
// A recovery repeats steps: of a step that several group epochs reported, the newest one counts.
#ifndef TROUPE_COORDINATOR_PAGE_STEP_RECORD_H_
#define TROUPE_COORDINATOR_PAGE_STEP_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "troupe/v1/service.pb.h"

namespace troupe {

struct StepSums {
  int64_t steps = 0;
  int64_t tokens = 0;

  bool operator==(const StepSums&) const = default;
};

// Not thread-safe.
class StepRecord {
 public:
  static constexpr size_t kMostSteps = 8192;
  static constexpr size_t kMostEvents = 2000;
  // A group that begins more steps than these before the end of the former one makes the sums of
  // the job unknown.
  static constexpr size_t kMostRepeatedSteps = 32'768;

  // For a job in this group epoch.
  explicit StepRecord(uint64_t group_epoch) : group_epoch_(group_epoch) {}

  // Adds what a stream of the history has. What arrived before changes nothing. Of a step the
  // figures are kept that the charts draw.
  void Add(v1::StepEvent step);
  void Add(const v1::JobEvent& event);

  // The step from which the history has to be read on, if the job is at `job_step`.
  int64_t NextStep(int64_t job_step) const;
  // The last step of the job that has arrived; 0: none.
  int64_t Through(int64_t job_step) const;
  // Whether steps before the job's may be stored that have not arrived.
  bool IsBehind(int64_t job_step) const;
  // To be called after a read for these steps had its time. `through` is the value of Through
  // before it. If it is the same after it, later steps of the job are not stored, as after a
  // catalog was rebuilt from checkpoints.
  void EndRead(int64_t through, int64_t job_step);
  // The reason why steps of the job are not there; empty: they are.
  std::string Shortfall(int64_t job_step) const;
  // The last step that the present group has reported; 0: none.
  int64_t LastOfGroup() const { return last_of_group_; }

  // The steps in ascending order, without those that the present group has yet to repeat.
  std::vector<v1::StepEvent> Steps(int64_t job_step) const;
  // The sums of the same steps before they were thinned, each counted once; absent: not known.
  std::optional<StepSums> Sums(int64_t job_step) const;
  // The newest events, in the order of their time.
  std::vector<v1::JobEvent> Events() const;

 private:
  void Count(const v1::StepEvent& step);

  const uint64_t group_epoch_;
  std::map<int64_t, v1::StepEvent> steps_;  // thinned
  std::map<std::tuple<int64_t, std::string, std::string>, v1::JobEvent> events_;
  int64_t last_of_group_ = 0;
  int64_t last_of_former_ = 0;          // the last step that a former group has reported
  std::optional<int64_t> last_stored_;  // steps behind it are not stored, or come with the tail
  int64_t first_of_group_ = 0;
  StepSums group_;
  // The steps of former groups through `last_counted_`, and the tokens of those behind it, which
  // the present group may repeat.
  StepSums former_;
  int64_t last_counted_ = 0;
  std::map<int64_t, int64_t> former_tokens_;
};

// Divides the step numbers into at most `runs` runs and returns at most 5 steps of each: those with
// the lowest and the highest loss, with the lowest and the highest validation loss, and one whose
// loss is not finite. The first and the last of all steps stay too. REQUIRES: `steps` ascend, and
// runs > 0.
std::vector<v1::StepEvent> ThinnedSteps(std::vector<v1::StepEvent> steps, int64_t runs);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_STEP_RECORD_H_
