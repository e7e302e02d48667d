// The summary that `troupe describe` prints above the details of a job. Pure.
#ifndef TROUPE_CLI_OUTPUT_DESCRIBE_TEXT_H_
#define TROUPE_CLI_OUTPUT_DESCRIBE_TEXT_H_

#include <optional>
#include <string>

#include "troupe/v1/service.pb.h"

namespace troupe {

// Returns some lines, each with a newline: state and progress, layout, speed and loss, last
// checkpoint, restarts, and what the job waits for or failed of. A line is left out if nothing is
// known of its subject. `last_step`: the figures of the job's last step, if they are known.
std::string DescribeText(const v1::Job& job, const std::optional<v1::StepEvent>& last_step);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_DESCRIBE_TEXT_H_
