// The text of an error, as the commands print it. Pure.
#ifndef TROUPE_CLI_OUTPUT_ERROR_LINES_H_
#define TROUPE_CLI_OUTPUT_ERROR_LINES_H_

#include <string>

#include "base/status.h"

namespace troupe {

// Returns the message of `status`: a line for each of the first 20 violations of a request, and one
// with the number of the others; else one line. What others chose of it, such as a worker's reason,
// is shown as PrintableLine does and begins no line.
std::string ErrorLines(const Status& status);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_ERROR_LINES_H_
