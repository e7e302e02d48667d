#include "plan/kept_keys.h"

#include <google/protobuf/text_format.h>

#include <string>

#include "plan/violation.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;

std::string ValueText(const ProtoMessage& message, const FieldDescriptor* field) {
  if (!message.GetReflection()->HasField(message, field)) return "absent";
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, field, -1, &text);
  return text;
}

void CompareKey(const ProtoMessage& before, const ProtoMessage& after, const FieldDescriptor* field,
                const std::string& path, Violations* violations) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    const ProtoMessage& old_value = before.GetReflection()->GetMessage(before, field);
    const ProtoMessage& value = after.GetReflection()->GetMessage(after, field);
    for (int i = 0; i < field->message_type()->field_count(); ++i) {
      const FieldDescriptor* const inner = field->message_type()->field(i);
      CompareKey(old_value, value, inner, path + "." + inner->name(), violations);
    }
    return;
  }
  const std::string old_text = ValueText(before, field);
  const std::string text = ValueText(after, field);
  if (old_text == text) return;
  violations->Add(path, "is {}, and a resumed job keeps the {} that it had", text, old_text);
}

}  // namespace

Status CheckKeptKeys(const v1::JobSpec& before, const v1::JobSpec& after) {
  Violations violations;
  const auto* const spec = v1::JobSpec::descriptor();
  CompareKey(before, after, spec->FindFieldByName("model"), "model", &violations);
  const auto* const parallelism = v1::ParallelismSpec::descriptor();
  for (const char* degree :
       {"data_parallel_replicate_degree", "data_parallel_shard_degree", "tensor_parallel_degree",
        "pipeline_parallel_degree", "context_parallel_degree", "expert_parallel_degree"}) {
    CompareKey(before.parallelism(), after.parallelism(), parallelism->FindFieldByName(degree),
               std::string("parallelism.") + degree, &violations);
  }
  return violations.ToStatus();
}

}  // namespace troupe
