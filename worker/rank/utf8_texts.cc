#include "worker/rank/utf8_texts.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "base/text/utf8.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// Calls `on_text(field, index)` for each text of `message` itself, where the index is -1 for a
// field that is not repeated, and `on_message(field, index)` for each message within it.
void ForEachField(const google::protobuf::Message& message, auto on_text, auto on_message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const bool is_text = field->type() == FieldDescriptor::TYPE_STRING;
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->is_map() || (!is_text && !is_message)) continue;
    const int begin = field->is_repeated() ? 0 : -1;
    const int end = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 0;
    for (int i = begin; i < end; ++i) {
      if (is_text) {
        on_text(field, i);
      } else {
        on_message(field, i);
      }
    }
  }
}

}  // namespace

void MakeTextsUtf8(google::protobuf::Message* message) {
  const Reflection& reflection = *message->GetReflection();
  const auto on_text = [&](const FieldDescriptor* field, int i) {
    std::string text = i < 0 ? reflection.GetString(*message, field)
                             : reflection.GetRepeatedString(*message, field, i);
    if (ReplaceIllFormed(text) == 0) return;
    if (i < 0) {
      reflection.SetString(message, field, std::move(text));
    } else {
      reflection.SetRepeatedString(message, field, i, std::move(text));
    }
  };
  ForEachField(*message, on_text, [&](const FieldDescriptor* field, int i) {
    MakeTextsUtf8(i < 0 ? reflection.MutableMessage(message, field)
                        : reflection.MutableRepeatedMessage(message, field, i));
  });
}

bool HasUtf8Texts(const google::protobuf::Message& message) {
  const Reflection& reflection = *message.GetReflection();
  bool all = true;
  std::string scratch;
  const auto on_text = [&](const FieldDescriptor* field, int i) {
    const std::string& text =
        i < 0 ? reflection.GetStringReference(message, field, &scratch)
              : reflection.GetRepeatedStringReference(message, field, i, &scratch);
    all = all && WellFormedPrefix(text) == text.size();
  };
  ForEachField(message, on_text, [&](const FieldDescriptor* field, int i) {
    all = all && HasUtf8Texts(i < 0 ? reflection.GetMessage(message, field)
                                    : reflection.GetRepeatedMessage(message, field, i));
  });
  return all;
}

}  // namespace troupe
