#include "coordinator/state/job_failure.h"

#include <fmt/format.h>

namespace troupe {

v1::Failure MakeFailure(std::string_view cause, const std::string& message, int32_t rank,
                        const std::string& worker) {
  v1::Failure failure;
  failure.set_cause(std::string(cause));
  failure.set_message(message);
  failure.set_rank(rank);
  failure.set_worker(worker);
  return failure;
}

namespace {

// The text after the cause: ": rank 2 on worker-1, signal 9: …".
std::string AfterCause(const v1::Failure& failure) {
  std::string text;
  if (failure.rank() >= 0) text += fmt::format(": rank {}", failure.rank());
  if (!failure.worker().empty()) text += fmt::format(" on {}", failure.worker());
  if (failure.signal() != 0) text += fmt::format(", signal {}", failure.signal());
  if (failure.exit_code() != 0) text += fmt::format(", exit code {}", failure.exit_code());
  if (!failure.last_operation().empty()) text += fmt::format(", in {}", failure.last_operation());
  if (!failure.message().empty()) text += ": " + failure.message();
  return text;
}

}  // namespace

std::string FailureText(const v1::Failure& failure) {
  return failure.cause() + AfterCause(failure);
}

std::string FailureTextUnder(std::string_view event, const v1::Failure& failure) {
  if (failure.cause() != event) return FailureText(failure);
  const std::string text = AfterCause(failure);
  for (const std::string_view joint : {": ", " on ", ", "}) {
    if (text.starts_with(joint)) return text.substr(joint.size());
  }
  return text;
}

}  // namespace troupe
