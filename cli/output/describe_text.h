// The page of a job that `troupe describe` prints. Pure.
#ifndef TROUPE_CLI_OUTPUT_DESCRIBE_TEXT_H_
#define TROUPE_CLI_OUTPUT_DESCRIBE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "cli/output/text_style.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

struct DescribeOptions {
  std::optional<v1::StepEvent> last_step;  // the figures of the job's last step, if they are known
  // The reason for which the state after the last step is not saved yet; empty if it is saved, or
  // the reason is not known.
  std::string save_failure;
  int64_t now_ns = 0;  // the present, in nanoseconds since the Unix epoch
  TextStyle style;
};

// Returns lines, each with a newline: state and progress, what the job waits for or failed of,
// data, layout, speed and loss, last checkpoint, restarts; then a table of its ranks and one of its
// checkpoints. It leaves out what is not known, and prints a cause once, where the failure of the
// job quotes the last failure of its ranks. Lines are broken to the width of the style.
std::string DescribeText(const v1::Job& job, const DescribeOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_DESCRIBE_TEXT_H_
