#include "cli/output/state_line.h"

#include <fmt/format.h>

#include "base/text/display_width.h"
#include "base/text/printable.h"
#include "base/text/wrapped.h"

namespace troupe {

std::string StateLine(const JobProgress& job, size_t columns) {
  const std::string name = PrintableLine(job.name) + ":";
  const std::string rest = fmt::format(", step {} of {}", job.step, job.steps);
  const size_t width = DisplayColumns(name) + 1 + job.state.size() + rest.size();
  const std::string between =
      width <= columns ? name + " " : Wrapped(name, columns, "", LongWords::kBroken) + "\n  ";
  return between + InColour(job.colour, job.state) + rest + "\n";
}

}  // namespace troupe
