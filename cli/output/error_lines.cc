#include "cli/output/error_lines.h"

#include "base/text/printable.h"
#include "plan/job/violation.h"

namespace troupe {

std::string ErrorLines(const Status& status) {
  // Violations have shown their values already.
  return ViolationsOf(status).empty() ? PrintableLine(Message(status))
                                      : PrintableLines(Message(status));
}

}  // namespace troupe
