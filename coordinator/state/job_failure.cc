#include "coordinator/state/job_failure.h"

#include <fmt/format.h>

namespace troupe {

v1::Failure MakeFailure(const std::string& cause, const std::string& message, int32_t rank,
                        const std::string& worker) {
  v1::Failure failure;
  failure.set_cause(cause);
  failure.set_message(message);
  failure.set_rank(rank);
  failure.set_worker(worker);
  return failure;
}

std::string FailureText(const v1::Failure& failure) {
  std::string text = failure.cause();
  if (failure.rank() >= 0) text += fmt::format(": rank {}", failure.rank());
  if (!failure.worker().empty()) text += fmt::format(" on {}", failure.worker());
  if (failure.signal() != 0) text += fmt::format(", signal {}", failure.signal());
  if (failure.exit_code() != 0) text += fmt::format(", exit code {}", failure.exit_code());
  if (!failure.last_operation().empty()) text += fmt::format(", in {}", failure.last_operation());
  if (!failure.message().empty()) text += ": " + failure.message();
  return text;
}

}  // namespace troupe
