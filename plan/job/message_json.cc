#include "plan/job/message_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string_view>

#include "base/check.h"

namespace troupe {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;

// One element of a repeated field.
Json ElementToJson(const ProtoMessage& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetRepeatedInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetRepeatedInt64(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetRepeatedUInt64(message, &field, index);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetRepeatedDouble(message, &field, index);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetRepeatedString(message, &field, index);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageToJson(reflection.GetRepeatedMessage(message, &field, index));
    default:
      TROUPE_CHECK(false, "{} cannot be printed as JSON", std::string_view(field.full_name()));
      return {};
  }
}

Json FieldToJson(const ProtoMessage& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) {
    Json list = Json::array();
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      list.push_back(ElementToJson(message, field, i));
    }
    return list;
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return MessageToJson(reflection.GetMessage(message, &field));
  }
  if (field.has_presence() && !reflection.HasField(message, &field)) return nullptr;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(*field.enum_type(), reflection.GetEnumValue(message, &field));
    default:
      TROUPE_CHECK(false, "{} cannot be printed as JSON", std::string_view(field.full_name()));
      return {};
  }
}

}  // namespace

Json MessageToJson(const ProtoMessage& message, std::initializer_list<const char*> fields) {
  Json json = Json::object();
  for (const char* name : fields) {
    const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
    TROUPE_CHECK(field != nullptr, "{} has no field {}",
                 std::string_view(message.GetDescriptor()->full_name()), name);
    json[name] = FieldToJson(message, *field);
  }
  return json;
}

Json MessageToJson(const ProtoMessage& message) {
  Json json = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    json[field.name()] = FieldToJson(message, field);
  }
  return json;
}

std::string EnumText(const EnumDescriptor& type, int value) {
  constexpr std::string_view kUnspecified = "UNSPECIFIED";
  const auto* const named = type.FindValueByNumber(value);
  if (named == nullptr) return "";
  const std::string_view zero = type.value(0)->name();
  if (!zero.ends_with(kUnspecified)) return named->name();
  const std::string_view prefix = zero.substr(0, zero.size() - kUnspecified.size());
  return named->name().substr(named->name().starts_with(prefix) ? prefix.size() : 0);
}

}  // namespace troupe
