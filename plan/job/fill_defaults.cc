#include "plan/job/fill_defaults.h"

#include <charconv>
#include <string>

#include "base/check.h"
#include "plan/job/key_path.h"
#include "plan/job/key_schema.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;

template <typename T>
T ParseNumber(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  TROUPE_CHECK(error == std::errc() && end == text.data() + text.size(), "{} is not a number",
               text);
  return value;
}

// Sets a scalar to `text`, a value as in a job file. REQUIRES: `text` has the type of `field`.
void SetFromText(const std::string& text, const FieldDescriptor* field, ProtoMessage* message) {
  const auto* const reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->SetString(message, field, text);
    case FieldDescriptor::CPPTYPE_BOOL:
      TROUPE_CHECK(text == "true" || text == "false", "{} is not a boolean", text);
      return reflection->SetBool(message, field, text == "true");
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->SetDouble(message, field, ParseNumber<double>(text));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->SetInt32(message, field, ParseNumber<int32_t>(text));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->SetInt64(message, field, ParseNumber<int64_t>(text));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->SetUInt64(message, field, ParseNumber<uint64_t>(text));
    default:
      TROUPE_CHECK(false, "{} has a default of a type without text", field->full_name());
  }
}

// Calls `fill(field, message)` for each singular field below `message` to which defaults apply,
// before it descends into the field.
template <typename Fill>
void VisitFields(const AppliesTo& applies, ProtoMessage* message, const Fill& fill) {
  const auto* const reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = message->GetDescriptor()->field(i);
    if (!applies(*field)) continue;
    if (!field->is_repeated()) fill(field, message);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (field->is_repeated()) {
      for (int k = 0; k < reflection->FieldSize(*message, field); ++k) {
        VisitFields(applies, reflection->MutableRepeatedMessage(message, field, k), fill);
      }
    } else if (reflection->HasField(*message, field)) {
      VisitFields(applies, reflection->MutableMessage(message, field), fill);
    }
  }
}

}  // namespace

void FillDefaults(const AppliesTo& applies, ProtoMessage* message) {
  VisitFields(applies, message, [](const FieldDescriptor* field, ProtoMessage* holder) {
    const v1::KeyOptions& options = KeyOptionsOf(*field);
    const auto* const reflection = holder->GetReflection();
    if (!options.has_default_() || reflection->HasField(*holder, field)) return;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      reflection->MutableMessage(holder, field);
    } else {
      SetFromText(options.default_(), field, holder);
    }
  });
}

void CopyDefaults(const AppliesTo& applies, ProtoMessage* root) {
  VisitFields(applies, root, [root](const FieldDescriptor* field, ProtoMessage* holder) {
    const std::string& source = KeyOptionsOf(*field).default_key();
    if (source.empty() || holder->GetReflection()->HasField(*holder, field)) return;
    if (HasKey(*root, source)) SetFromText(PlainKeyText(*root, source), field, holder);
  });
}

}  // namespace troupe
