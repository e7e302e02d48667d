// Tests training.mixed_precision: the dtypes in which matrices are gathered and sines and cosines
// stored, separate from the compute dtype.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/manifest.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "plan/job/job_defaults.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = 5;

struct Dtypes {
  const char* compute = "float32";
  const char* param = "float32";
  const char* buffer = "float32";
  const char* reduce = "float32";
};

v1::JobSpec Job(const Layout& layout, const Dtypes& dtypes, int run = 0) {
  v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kSteps);
  spec.mutable_model()->set_tie_word_embeddings(true);
  spec.mutable_training()->set_compute_dtype(dtypes.compute);
  v1::MixedPrecision& mixed = *spec.mutable_training()->mutable_mixed_precision();
  mixed.set_param(dtypes.param);
  mixed.set_buffer(dtypes.buffer);
  mixed.set_reduce(dtypes.reduce);
  spec.mutable_data()->set_validation_fraction(0.1);
  spec.mutable_training()->set_validation_interval(2);
  spec.mutable_training()->set_validation_samples(4);
  if (run > 0) spec.mutable_parallelism()->set_reshard_after_forward(std::to_string(run));
  return spec;
}

std::vector<StepResult> StepsOf(const v1::JobSpec& spec, bool on_device = false) {
  TrainOptions options{.steps = kSteps};
  if (on_device) {
    options.control_lag_steps = 1;
    options.make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
      return std::make_unique<kernels::EmulatedBackend>();
    };
  }
  return RunOrDie(spec, options);
}

struct Case {
  Layout layout;
  int run = 0;
};
const Case kSharded[] = {{{.shard = 2, .zero_stage = 1}},
                         {{.shard = 2, .zero_stage = 2}},
                         {{.tensor = 2, .shard = 2, .zero_stage = 3}},
                         {{.pipe = 2, .shard = 2, .zero_stage = 3}},
                         {{.shard = 4, .zero_stage = 3}, 2}};

TEST(GatheredDtype, InFloat32WithBfloat16HasTheBitsOfBfloat16) {
  for (const auto& [layout, run] : kSharded) {
    SCOPED_TRACE(fmt::format("zero {} run {}", layout.zero_stage, run));
    ExpectIdentical(StepsOf(Job(layout, {"bfloat16", "float32"}, run)),
                    StepsOf(Job(layout, {"bfloat16", "bfloat16"}, run)));
  }
}

// Master weights that differ in their last bits may round to different bfloat16 neighbours, so only
// the first loss equals that of one rank.
void ExpectFollows(const std::vector<StepResult>& actual, const std::vector<StepResult>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  ExpectClose({actual[0]}, {expected[0]});
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i].event.loss(), expected[i].event.loss(), 1e-4 * expected[i].event.loss())
        << i;
    EXPECT_NEAR(actual[i].event.grad_norm(), expected[i].event.grad_norm(),
                2e-3 * expected[i].event.grad_norm())
        << i;
    ASSERT_EQ(actual[i].event.has_validation_loss(), expected[i].event.has_validation_loss());
    if (!actual[i].event.has_validation_loss()) continue;
    EXPECT_NEAR(actual[i].event.validation_loss(), expected[i].event.validation_loss(),
                1e-4 * expected[i].event.loss());
  }
}

TEST(GatheredDtype, InBfloat16WithFloat32RoundsWeightsTheSameUnderEveryLayout) {
  const Dtypes dtypes = {"float32", "bfloat16"};
  const std::vector<StepResult> single = StepsOf(Job({}, dtypes));
  const std::vector<StepResult> exact = StepsOf(Job({}, {"float32", "float32"}));
  EXPECT_NE(single[0].event.loss(), exact[0].event.loss());
  EXPECT_NEAR(single[0].event.loss(), exact[0].event.loss(), 1e-2 * exact[0].event.loss());
  for (const auto& [layout, run] : kSharded) {
    SCOPED_TRACE(fmt::format("zero {} run {}", layout.zero_stage, run));
    ExpectFollows(StepsOf(Job(layout, dtypes, run)), single);
  }
  for (const Layout& layout :
       {Layout{.data = 2}, Layout{.tensor = 2}, Layout{.pipe = 2, .schedule = "ZBV"}}) {
    ExpectFollows(StepsOf(Job(layout, dtypes)), single);
  }
}

TEST(GatheredDtype, IsThatOfTheProcessorOnADeviceToo) {
  for (const auto& [layout, run] :
       {Case{{}}, Case{{.shard = 2, .zero_stage = 1}}, Case{{.shard = 2, .zero_stage = 3}}}) {
    v1::JobSpec spec = Job(layout, {"float32", "bfloat16", "bfloat16"}, run);
    spec.mutable_model()->set_pattern("AD");
    spec.mutable_training()->set_global_batch_size(2);
    spec.mutable_training()->set_validation_samples(2);
    ExpectFollows(StepsOf(spec, true), StepsOf(spec));
  }
}

TEST(BufferDtype, RoundsSinesAndCosinesTheSameUnderEveryLayout) {
  const Dtypes dtypes = {"float32", "float32", "bfloat16"};
  const std::vector<StepResult> single = StepsOf(Job({}, dtypes));
  EXPECT_NE(single[0].event.loss(), StepsOf(Job({}, {}))[0].event.loss());
  for (const Layout& layout : {Layout{.tensor = 2}, Layout{.context = 2},
                               Layout{.pipe = 2, .shard = 2, .zero_stage = 3}}) {
    ExpectClose(StepsOf(Job(layout, dtypes)), single);
  }
}

TEST(Overlap, OfConvertedParametersChangesNoBit) {
  for (const auto& [layout, run] : kSharded) {
    for (const Dtypes& dtypes : {Dtypes{"float32", "bfloat16"}, Dtypes{"bfloat16", "float32"}}) {
      const v1::JobSpec spec = Job(layout, dtypes, run);
      ExpectIdentical(StepsOf(spec), RunOrDie(spec, {.steps = kSteps, .overlap = false}));
    }
  }
}

TEST(StoredDtype, IsFloat32WhateverIsGatheredAndComputedIn) {
  PosixFileSystem files;
  for (const Dtypes& dtypes :
       {Dtypes{"bfloat16", "float32", "bfloat16", "bfloat16"}, Dtypes{"float32", "bfloat16"}}) {
    const TemporaryDirectory folder;
    const std::string path = folder.Child("step-00000002-epoch-1-attempt-1");
    const Layout layout = {.shard = 2, .zero_stage = 3};
    RunOrDie(Job(layout, dtypes), {.steps = 2, .save_path = path});
    const v1::CheckpointManifest manifest = ReadManifest(files, path, "").value();
    int tensors = 0;
    for (const v1::ShardFile& shard : manifest.shards()) {
      for (const v1::TensorSlice& tensor : shard.tensors()) {
        EXPECT_EQ(tensor.dtype(), "F32") << tensor.name();
        ++tensors;
      }
    }
    EXPECT_GT(tensors, 0);
    // The same layout resumes bit-identically: the master weights are the whole state.
    const std::vector<StepResult> whole = RunOrDie(Job(layout, dtypes), {.steps = 4});
    ExpectIdentical(RunOrDie(Job(layout, dtypes), {.steps = 2, .restore_path = path}),
                    std::vector<StepResult>(whole.begin() + 2, whole.end()));
    RunOrDie(Job({.data = 2}, {}), {.steps = 1, .restore_path = path});
  }
}

}  // namespace
}  // namespace troupe
