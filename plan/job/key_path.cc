#include "plan/job/key_path.h"

#include <google/protobuf/text_format.h>

#include <vector>

#include "base/check.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;

struct Step {
  const FieldDescriptor* field;
  std::string_view rest;  // remaining path; empty at its end
};

Step FirstStep(const ProtoMessage& message, std::string_view path) {
  const size_t dot = path.find('.');
  const std::string name(path.substr(0, dot));
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
  TROUPE_CHECK(field != nullptr, "{} has no field {}", message.GetDescriptor()->name(), name);
  return {field, dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1)};
}

}  // namespace

bool HasKey(const ProtoMessage& message, std::string_view path) {
  const auto [field, rest] = FirstStep(message, path);
  const auto* const reflection = message.GetReflection();
  if (field->is_repeated()) {
    const int size = reflection->FieldSize(message, field);
    if (rest.empty()) return size > 0;
    for (int i = 0; i < size; ++i) {
      if (HasKey(reflection->GetRepeatedMessage(message, field, i), rest)) return true;
    }
    return false;
  }
  if (!reflection->HasField(message, field)) return false;
  return rest.empty() || HasKey(reflection->GetMessage(message, field), rest);
}

void ClearKey(std::string_view path, ProtoMessage* message) {
  const auto [field, rest] = FirstStep(*message, path);
  const auto* const reflection = message->GetReflection();
  if (rest.empty()) {
    reflection->ClearField(message, field);
  } else if (field->is_repeated()) {
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      ClearKey(rest, reflection->MutableRepeatedMessage(message, field, i));
    }
  } else if (reflection->HasField(*message, field)) {
    ClearKey(rest, reflection->MutableMessage(message, field));
  }
}

void ClearEmptyMessages(ProtoMessage* message) {
  const auto* const reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
        ClearEmptyMessages(reflection->MutableRepeatedMessage(message, field, i));
      }
      continue;
    }
    ProtoMessage* const inner = reflection->MutableMessage(message, field);
    ClearEmptyMessages(inner);
    if (inner->ByteSizeLong() == 0) reflection->ClearField(message, field);
  }
}

std::string KeyText(const ProtoMessage& message, std::string_view path) {
  const auto [field, rest] = FirstStep(message, path);
  const auto* const reflection = message.GetReflection();
  using google::protobuf::TextFormat;
  std::string text;
  if (!rest.empty() && field->is_repeated()) {
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      text += i == 0 ? "" : ", ";
      text += KeyText(reflection->GetRepeatedMessage(message, field, i), rest);
    }
    return text;
  }
  if (!rest.empty()) return KeyText(reflection->GetMessage(message, field), rest);
  if (field->is_repeated()) {
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      std::string element;
      TextFormat::PrintFieldValueToString(message, field, i, &element);
      for (char& c : element) c = c == '\n' ? ' ' : c;
      text += (i == 0 ? "" : ", ") + element;
    }
    return "[" + text + "]";
  }
  if (!reflection->HasField(message, field)) return "absent";
  TextFormat::PrintFieldValueToString(message, field, -1, &text);
  return text;
}

std::string PlainKeyText(const ProtoMessage& message, std::string_view path) {
  const auto [field, rest] = FirstStep(message, path);
  const auto* const reflection = message.GetReflection();
  if (!rest.empty()) return PlainKeyText(reflection->GetMessage(message, field), rest);
  const bool is_text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  return is_text ? reflection->GetString(message, field) : KeyText(message, field->name());
}

}  // namespace troupe
