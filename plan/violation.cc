#include "plan/violation.h"

#include <algorithm>

#include "google/rpc/error_details.pb.h"

namespace troupe {

Status Violations::ToStatus() const {
  if (list_.empty()) return OkStatus();
  std::string message;
  google::rpc::BadRequest details;
  for (const Violation& violation : list_) {
    if (!message.empty()) message += '\n';
    message += fmt::format("{} {}", violation.field, violation.description);
    auto* entry = details.add_field_violations();
    entry->set_field(violation.field);
    entry->set_description(violation.description);
  }
  const bool all_unimplemented =
      std::all_of(list_.begin(), list_.end(), [](const Violation& v) { return v.unimplemented; });
  Status status = MakeStatus(
      all_unimplemented ? StatusCode::kUnimplemented : StatusCode::kInvalidArgument, message);
  status.SetPayload(kBadRequestTypeUrl, absl::Cord(details.SerializeAsString()));
  return status;
}

std::vector<Violation> ViolationsOf(const Status& status) {
  const auto payload = status.GetPayload(kBadRequestTypeUrl);
  google::rpc::BadRequest details;
  if (!payload.has_value() || !details.ParseFromString(std::string(*payload))) return {};
  std::vector<Violation> violations;
  for (const auto& entry : details.field_violations()) {
    violations.push_back({entry.field(), entry.description(),
                          status.code() == StatusCode::kUnimplemented});
  }
  return violations;
}

}  // namespace troupe
