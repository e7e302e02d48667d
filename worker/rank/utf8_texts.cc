#include "worker/rank/utf8_texts.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <utility>

#include "base/text/utf8.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

void MakeTextUtf8(const Reflection& reflection, const FieldDescriptor* field, int i,
                  google::protobuf::Message* message) {
  const bool is_repeated = field->is_repeated();
  std::string scratch;
  const std::string& known =
      is_repeated ? reflection.GetRepeatedStringReference(*message, field, i, &scratch)
                  : reflection.GetStringReference(*message, field, &scratch);
  if (WellFormedPrefix(known) == known.size()) return;
  std::string text = known;
  ReplaceIllFormed(text);
  if (is_repeated) {
    reflection.SetRepeatedString(message, field, i, std::move(text));
  } else {
    reflection.SetString(message, field, std::move(text));
  }
}

// Does so for the field's texts, or for those of the messages that it has.
void MakeFieldUtf8(const Reflection& reflection, const FieldDescriptor* field,
                   google::protobuf::Message* message) {
  const bool is_text = field->type() == FieldDescriptor::TYPE_STRING;
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (field->is_map() || (!is_text && !is_message)) return;
  const int count = field->is_repeated() ? reflection.FieldSize(*message, field)
                                         : static_cast<int>(reflection.HasField(*message, field));
  for (int i = 0; i < count; ++i) {
    if (is_text) {
      MakeTextUtf8(reflection, field, i, message);
    } else {
      MakeTextsUtf8(field->is_repeated() ? reflection.MutableRepeatedMessage(message, field, i)
                                         : reflection.MutableMessage(message, field));
    }
  }
}

}  // namespace

void MakeTextsUtf8(google::protobuf::Message* message) {
  const Descriptor& descriptor = *message->GetDescriptor();
  const Reflection& reflection = *message->GetReflection();
  // A stream has dozens of kinds of messages, and a message of it has one.
  for (int i = 0; i < descriptor.real_oneof_decl_count(); ++i) {
    const FieldDescriptor* const field =
        reflection.GetOneofFieldDescriptor(*message, descriptor.oneof_decl(i));
    if (field != nullptr) MakeFieldUtf8(reflection, field, message);
  }
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor* const field = descriptor.field(i);
    if (field->real_containing_oneof() == nullptr) MakeFieldUtf8(reflection, field, message);
  }
}

}  // namespace troupe
