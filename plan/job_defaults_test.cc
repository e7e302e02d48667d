#include "plan/job_defaults.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "plan/key_effects.h"
#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Tests run in the root of the source tree.
std::string Schema() {
  std::ifstream file("proto/troupe/v1/job.proto");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The text from `begin` up to the first character of `ends`.
std::string UpTo(const std::string& text, size_t begin, const char* ends) {
  return text.substr(begin, text.find_first_of(ends, begin) - begin);
}

// The word after "default" in the comment of `field`; none where the comment states no default.
std::optional<std::string> StatedDefault(const std::string& schema, const FieldDescriptor& field) {
  const size_t message = schema.find("message " + field.containing_type()->name() + " {");
  const size_t line = schema.find(" " + field.name() + " = ", message);
  const std::string text = UpTo(schema, line, "\n");
  const size_t at = text.find("default ");
  if (at == std::string::npos) return std::nullopt;
  return UpTo(text, at + 8, ":;, ");
}

std::string ValueText(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(reflection->GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(reflection->GetInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(reflection->GetUInt64(message, field));
    default:
      return "";
  }
}

// `prefix`: the path of `message` in `whole`, with a dot at its end.
void Compare(const std::string& schema, const v1::JobSpec& whole, const Message& message,
             const std::string& prefix, int* compared) {
  const Descriptor* const type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    SCOPED_TRACE(field->full_name());
    const std::string path = prefix + field->name();
    if (field->is_repeated()) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      for (int k = 0; k < message.GetReflection()->FieldSize(message, field); ++k) {
        Compare(schema, whole, message.GetReflection()->GetRepeatedMessage(message, field, k),
                path + ".", compared);
      }
      continue;
    }
    const bool present = message.GetReflection()->HasField(message, field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!present) continue;
      Compare(schema, whole, message.GetReflection()->GetMessage(message, field), path + ".",
              compared);
      continue;
    }
    const std::optional<std::string> stated = StatedDefault(schema, *field);
    const bool dropped = !present && !WhyWithoutEffect(whole, path).empty();
    EXPECT_EQ(stated.has_value(), present || (stated.has_value() && dropped));
    if (!stated || !present) continue;
    // Defaults that depend on another field are checked below by value.
    const std::string name = field->name();
    if (name == "num_key_value_heads" || name == "head_dim" || name == "intermediate_size" ||
        name == "decay_steps") {
      continue;
    }
    ++*compared;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      EXPECT_EQ(std::strtod(stated->c_str(), nullptr),
                message.GetReflection()->GetDouble(message, field));
    } else {
      EXPECT_EQ(*stated, ValueText(message, field));
    }
  }
}

TEST(JobDefaultsTest, TheSchemaStatesEveryDefaultAndNoOther) {
  v1::JobSpec spec;
  spec.mutable_model()->mutable_rope_scaling();
  spec.mutable_data()->add_blend();
  ApplyDefaults(&spec);
  int compared = 0;
  Compare(Schema(), spec, spec, "", &compared);
  EXPECT_GT(compared, 45);
}

TEST(JobDefaultsTest, ExpertsHaveDefaultsBesideTheirBlockAlone) {
  v1::JobSpec dense;
  ApplyDefaults(&dense);
  EXPECT_FALSE(dense.model().has_num_experts_per_tok());
  v1::JobSpec spec;
  spec.mutable_model()->set_pattern("(AE)x2");
  spec.mutable_model()->set_num_experts(8);
  ApplyDefaults(&spec);
  EXPECT_EQ(spec.model().num_experts_per_tok(), 2);
  EXPECT_EQ(spec.model().moe_intermediate_size(), spec.model().intermediate_size());
  EXPECT_EQ(spec.model().router_score(), "softmax");
  EXPECT_TRUE(spec.model().norm_topk_prob());
  EXPECT_FALSE(spec.model().has_capacity_factor());
}

TEST(JobDefaultsTest, SizesFollowFromThoseGiven) {
  v1::JobSpec spec;
  spec.mutable_model()->set_hidden_size(96);
  spec.mutable_model()->set_num_attention_heads(6);
  spec.mutable_training()->set_steps(7);
  ApplyDefaults(&spec);
  EXPECT_EQ(spec.model().num_key_value_heads(), 6);
  EXPECT_EQ(spec.model().head_dim(), 16);
  EXPECT_EQ(spec.model().intermediate_size(), 256);
  EXPECT_FALSE(spec.lr_schedule().has_decay_steps());  // the rate is constant
  spec.mutable_lr_schedule()->set_decay_type("cosine");
  ApplyDefaults(&spec);
  EXPECT_EQ(spec.lr_schedule().decay_steps(), 7);
}

}  // namespace
}  // namespace troupe
