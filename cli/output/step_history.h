// The scrolling history that `watch` and `submit --wait` print on a terminal, above the line that
// they redraw: some of the steps as rows of a table, and every event. Pure, apart from its state;
// not thread-safe.
#ifndef TROUPE_CLI_OUTPUT_STEP_HISTORY_H_
#define TROUPE_CLI_OUTPUT_STEP_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

class StepHistory {
 public:
  // `steps`: those of the job. `directory`: paths of events below it are relative to it.
  StepHistory(int64_t steps, bool colours, std::string directory = "");

  // Returns the row of a step that arrives at `now`, or nothing: the first and the last step, every
  // stride()-th one, each one with a validation loss, and the next one after a minute without a row
  // have a row. Where it is wider than `columns`, MFU, tokens/s, gradient norm, learning rate and
  // validation loss are left out in this order. The titles precede the first row and each one with
  // other columns, and are repeated now and then.
  std::string StepText(const v1::StepEvent& step, MonotonicTime now, size_t columns);

  // Returns the line of an event, with its step under those of the rows, broken into lines of
  // `columns`.
  std::string EventText(const v1::JobEvent& event, size_t columns) const;

  // A step of a job has a row if its number is a multiple of this: 1, 2 or 5 times a power of ten,
  // such that at most 40 of all steps are.
  int64_t stride() const { return stride_; }

 private:
  bool IsShown(const v1::StepEvent& step, MonotonicTime now) const;
  // Returns the indices of the figures that have room in a row.
  std::vector<size_t> FiguresWithin(size_t columns) const;

  const int64_t steps_;
  const int64_t stride_;
  const size_t step_columns_;
  const bool colours_;
  const std::string directory_;
  int64_t rows_ = 0;
  std::vector<size_t> figures_;  // those of the last row
  MonotonicTime last_row_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_STEP_HISTORY_H_
