#include "base/failure_cause.h"

#include "absl/strings/cord.h"

namespace troupe {
namespace {

constexpr char kUrl[] = "troupe/failure-cause";

}  // namespace

Status WithCause(Status status, std::string_view cause) {
  if (!status.ok() && !cause.empty())
    status.SetPayload(kUrl, absl::Cord({cause.data(), cause.size()}));
  return status;
}

std::string AttachedCause(const Status& status) {
  const auto cause = status.GetPayload(kUrl);
  return cause ? std::string(*cause) : "";
}

}  // namespace troupe
