#include "plan/job/kept_keys.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "plan/job/job_defaults.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

TEST(KeptKeysTest, EachChangedKeyIsNamedWithBothValues) {
  v1::JobSpec before;
  ApplyDefaults(&before);
  v1::JobSpec after = before;
  after.mutable_training()->set_steps(7);
  after.mutable_training()->set_micro_batch_size(4);
  after.mutable_training()->set_compute_dtype("bfloat16");
  after.mutable_optimizer()->set_lr(1);
  after.mutable_parallelism()->set_tensor_parallel_degree(4);
  after.mutable_checkpoint()->set_folder("/elsewhere");
  EXPECT_TRUE(CheckKeptKeys(before, after).ok());

  after.mutable_model()->set_hidden_size(512);
  after.mutable_model()->mutable_rope_scaling()->set_factor(4);
  after.mutable_data()->set_train("/other");
  after.mutable_data()->add_blend()->set_path("/more");
  after.mutable_training()->set_seed(3);
  after.mutable_training()->set_sequence_length(8);
  after.mutable_training()->set_global_batch_size(2);
  after.mutable_optimizer()->set_name("sgd");
  const Status status = CheckKeptKeys(before, after);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  const std::vector<Violation> violations = ViolationsOf(status);
  std::vector<std::string> fields;
  for (const Violation& violation : violations) fields.push_back(violation.field);
  EXPECT_THAT(fields,
              ::testing::ElementsAre("model.hidden_size", "model.rope_scaling.factor", "data.train",
                                     "data.blend", "training.seed", "training.sequence_length",
                                     "training.global_batch_size", "optimizer.name"))
      << status;
  EXPECT_THAT(violations[0].description, ::testing::HasSubstr("is 512, but"));
  EXPECT_THAT(violations[0].description, ::testing::HasSubstr("keeps its value 256"));
}

TEST(KeptKeysTest, MomentumMayChangeButNotBeginOrEnd) {
  const auto of = [](double momentum) {
    v1::JobSpec spec;
    spec.mutable_optimizer()->set_name("sgd");
    spec.mutable_optimizer()->set_momentum(momentum);
    ApplyDefaults(&spec);
    return spec;
  };
  EXPECT_TRUE(CheckKeptKeys(of(0.9), of(0.5)).ok());
  for (const auto& [before, after] : {std::pair(0.0, 0.9), std::pair(0.9, 0.0)}) {
    const std::vector<Violation> violations = ViolationsOf(CheckKeptKeys(of(before), of(after)));
    ASSERT_EQ(violations.size(), 1u);
    EXPECT_EQ(violations[0].field, "optimizer.momentum");
  }
}

v1::JobSpec SomeJob() {
  v1::JobSpec spec;
  ApplyDefaults(&spec);
  spec.mutable_training()->set_steps(100);
  spec.mutable_training()->set_seed(7);
  spec.mutable_training()->set_global_batch_size(8);
  return spec;
}

v1::CheckpointManifest CheckpointOf(const v1::JobSpec& spec, int64_t step) {
  v1::CheckpointManifest manifest;
  manifest.mutable_state()->set_step(step);
  manifest.mutable_state()->set_consumed_samples(step * spec.training().global_batch_size());
  manifest.mutable_state()->set_seed(spec.training().seed());
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(spec, &json).ok());
  manifest.set_job_spec_json(json);
  return manifest;
}

std::string OnlyField(const Status& status) {
  const std::vector<Violation> violations = ViolationsOf(status);
  return violations.size() == 1 ? violations[0].field : ToString(status);
}

TEST(ContinuesTest, ACheckpointGoesOnInAnotherLayoutFromOtherDataUnderAnotherPreset) {
  const v1::JobSpec made_with = SomeJob();
  v1::JobSpec spec = made_with;
  spec.mutable_parallelism()->set_tensor_parallel_degree(2);
  spec.mutable_data()->set_train("/moved");
  spec.mutable_model()->set_preset("tiny");
  EXPECT_TRUE(CheckContinues(CheckpointOf(made_with, 50), spec).ok());
}

TEST(ContinuesTest, WhatWouldRepeatOrSkipSamplesOrChangeTheModelIsNamed) {
  const v1::CheckpointManifest manifest = CheckpointOf(SomeJob(), 50);
  const auto field = [&](auto change) {
    v1::JobSpec spec = SomeJob();
    change(spec);
    return OnlyField(CheckContinues(manifest, spec));
  };
  EXPECT_EQ(field([](auto& s) { s.mutable_training()->set_steps(50); }), "training.steps");
  EXPECT_EQ(field([](auto& s) { s.mutable_training()->set_seed(8); }), "training.seed");
  EXPECT_EQ(field([](auto& s) { s.mutable_training()->set_global_batch_size(16); }),
            "training.global_batch_size");
  EXPECT_EQ(field([](auto& s) { s.mutable_training()->set_sequence_length(16); }),
            "training.sequence_length");
  EXPECT_EQ(field([](auto& s) { s.mutable_model()->set_rope_theta(5); }), "model.rope_theta");
  EXPECT_EQ(field([](auto& s) { s.mutable_optimizer()->set_name("sgd"); }), "optimizer.name");
  v1::CheckpointManifest vast = manifest;
  vast.mutable_state()->set_step(INT64_MAX - 1);
  v1::JobSpec spec = SomeJob();
  spec.mutable_training()->set_steps(INT64_MAX);
  EXPECT_EQ(OnlyField(CheckContinues(vast, spec)), "training.global_batch_size");
}

TEST(ContinuesTest, WeightsWithoutStepsGoWithEveryTraining) {
  v1::CheckpointManifest weights;
  weights.mutable_state()->set_seed(99);
  EXPECT_TRUE(CheckContinues(weights, SomeJob()).ok());
  // Weights still need their own model: another rope_theta would not show in a shape.
  weights.set_job_spec_json(CheckpointOf(SomeJob(), 0).job_spec_json());
  EXPECT_TRUE(CheckContinues(weights, SomeJob()).ok());
  v1::JobSpec other = SomeJob();
  other.mutable_training()->set_sequence_length(8);
  other.mutable_model()->set_export_dtype("bfloat16");
  other.mutable_model()->set_max_position_embeddings(8);
  EXPECT_TRUE(CheckContinues(weights, other).ok()) << CheckContinues(weights, other);
  other.mutable_model()->set_rope_theta(5);
  EXPECT_EQ(OnlyField(CheckContinues(weights, other)), "model.rope_theta");
}

TEST(ContinuesTest, ASpecThatIsNoJobIsRefused) {
  v1::CheckpointManifest manifest = CheckpointOf(SomeJob(), 50);
  manifest.set_job_spec_json("{");
  EXPECT_EQ(CheckContinues(manifest, SomeJob()).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
