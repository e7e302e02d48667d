#include "plan/job/job_defaults.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "plan/cost/fault_cost.h"
#include "plan/cost/slowest_step.h"
#include "plan/job/key_effects.h"
#include "plan/job/key_path.h"
#include "plan/job/key_schema.h"
#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;

// Checks the default of a field of the message at `path` in `whole`.
void CheckDefault(const v1::JobSpec& whole, const ProtoMessage& message,
                  const FieldDescriptor* field, const std::string& path, int* compared) {
  SCOPED_TRACE(path);
  const v1::KeyOptions& options = KeyOptionsOf(*field);
  const bool present = message.GetReflection()->HasField(message, field);
  const bool has_value = options.has_default_() || !options.default_key().empty();
  const bool has_no_effect =
      !WhyWithoutEffect(whole, path).empty() || options.blocks() != v1::BLOCK_TRAIT_ANY;
  // A present key without a stated default has one that is computed; its text states how.
  EXPECT_TRUE(present ? has_value || !options.absent().empty() : !has_value || has_no_effect);
  if (!present || !has_value) return;
  ++*compared;
  if (!options.default_key().empty()) {
    EXPECT_EQ(PlainKeyText(whole, path), PlainKeyText(whole, options.default_key()));
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    EXPECT_EQ(std::strtod(options.default_().c_str(), nullptr),
              message.GetReflection()->GetDouble(message, field));
  } else {
    EXPECT_EQ(options.default_(), PlainKeyText(message, field->name()));
  }
}

// `prefix`: the path of `message` in `whole`, with a dot at its end.
void Compare(const v1::JobSpec& whole, const ProtoMessage& message, const std::string& prefix,
             int* compared) {
  const auto* const reflection = message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = message.GetDescriptor()->field(i);
    const std::string path = prefix + field->name();
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) CheckDefault(whole, message, field, path, compared);
      continue;
    }
    for (int k = 0; field->is_repeated() && k < reflection->FieldSize(message, field); ++k) {
      Compare(whole, reflection->GetRepeatedMessage(message, field, k), path + ".", compared);
    }
    if (!field->is_repeated() && reflection->HasField(message, field)) {
      Compare(whole, reflection->GetMessage(message, field), path + ".", compared);
    }
  }
}

TEST(JobDefaultsTest, TheSchemaStatesEveryDefaultAndNoOther) {
  v1::JobSpec spec;
  spec.mutable_model()->mutable_rope_scaling();
  spec.mutable_data()->add_blend();
  ApplyDefaults(&spec);
  int compared = 0;
  Compare(spec, spec, "", &compared);
  EXPECT_GT(compared, 50);
}

TEST(JobDefaultsTest, ConstantsForAnAbsentKeyAreItsDefault) {
  const double final_save_seconds = FinalSaveSeconds(v1::JobSpec());
  v1::JobSpec spec;
  ApplyDefaults(&spec);
  EXPECT_EQ(spec.fault_tolerance().hang_seconds(), DefaultHangSeconds());
  EXPECT_EQ(spec.checkpoint().final_save_seconds(), final_save_seconds);
}

TEST(JobDefaultsTest, AnImportedModelGetsNoDefaults) {
  v1::JobSpec spec;
  spec.mutable_model()->set_from("/model");
  ApplyDefaults(&spec);
  v1::ModelSpec expected;
  expected.set_from("/model");
  expected.set_export_dtype("float32");
  EXPECT_EQ(spec.model().SerializeAsString(), expected.SerializeAsString());
}

TEST(JobDefaultsTest, ExpertsHaveDefaultsOnlyWithTheirBlock) {
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
