#include "plan/job/violation.h"

#include "google/rpc/error_details.pb.h"
#include "plan/job/foreign_words.h"
#include "plan/job/path_hints.h"

namespace troupe {
namespace {

constexpr size_t kShownWordBytes = 200;  // at most, of an unknown word

}  // namespace

void Violations::AddUnknownWord(std::string field, std::string_view word, std::string_view words) {
  const std::string hint = ForeignWordText(field, word, words);
  Add(std::move(field), "is \"{}\", not one of {}{}", word.substr(0, kShownWordBytes), words, hint);
}

void Violations::AddProductTooLarge(std::string field, int64_t value, std::string_view factor,
                                    std::string_view limit) {
  Add(std::move(field), "is {}, and its product with {} is above {}", value, factor, limit);
}

void Violations::AddNotMultiple(std::string field, int64_t value, std::string_view unit) {
  Add(std::move(field), "is {}, not a multiple of {}", value, unit);
}

void Violations::AddNotDivisor(std::string field, int64_t value, std::string_view multiple) {
  Add(std::move(field), "is {}, which does not divide {}", value, multiple);
}

Status Violations::ToStatus(StatusCode code) const {
  if (list_.empty()) return OkStatus();
  std::string message;
  for (const Violation& violation : list_) {
    if (!message.empty()) message += '\n';
    message += fmt::format("{} {}", violation.field, violation.description);
  }
  Status status = MakeStatus(code, message);
  SetViolations(list_, &status);
  return status;
}

Status RefuseData(const v1::JobSpec& spec, const std::string& field, const Status& why) {
  std::string value = field == "data.train"        ? spec.data().train()
                      : field == "data.validation" ? spec.data().validation()
                      : field == "model.vocab_size"
                          ? std::to_string(spec.model().vocab_size())
                          : std::to_string(spec.training().sequence_length());
  for (int i = 0; i < spec.data().blend_size(); ++i) {
    if (field == fmt::format("data.blend[{}].path", i)) value = spec.data().blend(i).path();
  }
  std::string_view reason = Message(why);
  const std::string repeated = fmt::format("{} {} ", field, value);
  if (!reason.starts_with(repeated)) {
    const bool is_missing = why.code() == StatusCode::kNotFound && field.starts_with("data.");
    return RefuseField(StatusCode::kInvalidArgument, field, "is {}: {}{}", value, reason,
                       is_missing ? DatasetHint(value) : "");
  }
  reason.remove_prefix(repeated.size());
  return RefuseField(StatusCode::kInvalidArgument, field, "is {}, which {}", value, reason);
}

std::vector<Violation> ViolationsOf(const Status& status) {
  const auto payload = status.GetPayload(kBadRequestTypeUrl);
  google::rpc::BadRequest details;
  if (!payload.has_value() || !details.ParseFromString(std::string(*payload))) return {};
  std::vector<Violation> violations;
  for (const auto& entry : details.field_violations()) {
    violations.push_back({entry.field(), entry.description()});
  }
  return violations;
}

void SetViolations(const std::vector<Violation>& violations, Status* status) {
  google::rpc::BadRequest details;
  for (const Violation& violation : violations) {
    auto* const entry = details.add_field_violations();
    entry->set_field(violation.field);
    entry->set_description(violation.description);
  }
  status->SetPayload(kBadRequestTypeUrl, absl::Cord(details.SerializeAsString()));
}

}  // namespace troupe
