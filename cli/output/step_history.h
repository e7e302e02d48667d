// The scrolling history that `watch` and `submit --wait` print on a terminal, above the line that
// they redraw: some of the steps as rows of a table, and every event. Pure, apart from its state;
// not thread-safe.
#ifndef TROUPE_CLI_OUTPUT_STEP_HISTORY_H_
#define TROUPE_CLI_OUTPUT_STEP_HISTORY_H_

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

class StepHistory {
 public:
  // `steps`: those of the job.
  StepHistory(int64_t steps, bool colours);

  // Returns the row of a step that arrives at `now`, or nothing: the first and the last step, every
  // stride()-th one, each one with a validation loss, and the next one after a minute without a row
  // have a row. The titles precede the first row, and are repeated now and then.
  std::string StepText(const v1::StepEvent& step, MonotonicTime now);

  // Returns the line of an event, with its step under those of the rows.
  std::string EventText(const v1::JobEvent& event) const;

  // A step of a job has a row if its number is a multiple of this: 1, 2 or 5 times a power of ten,
  // such that at most 40 of all steps are.
  int64_t stride() const { return stride_; }

 private:
  bool IsShown(const v1::StepEvent& step, MonotonicTime now) const;

  const int64_t steps_;
  const int64_t stride_;
  const size_t step_columns_;
  const bool colours_;
  int64_t rows_ = 0;
  MonotonicTime last_row_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_STEP_HISTORY_H_
