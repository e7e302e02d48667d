// Tests jobs that freeze parameters: the trained ones get the numbers that they have where all are
// trained, under every layout; the frozen ones keep those of the base, are in no checkpoint, and
// cost neither gradients nor states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file_system.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/manifest.h"
#include "interop/base_weights.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "model/parameter_slices.h"
#include "model/program/trained_parameters.h"
#include "tests/layouts/axis_table.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::Not;

// A checkpoint of a job that trained all parameters for two steps.
class Base {
 public:
  explicit Base(v1::JobSpec spec) {
    TrainOptions options{.steps = 2, .save_path = path()};
    for (const Status& status : Train(std::move(spec), options).statuses) TROUPE_CHECK_OK(status);
  }
  std::string path() const { return folder_.Child("base"); }

 private:
  TemporaryDirectory folder_;
};

v1::JobSpec Dense(const Layout& layout = {}) { return SmallJob(layout, SmallDataPrefix(), 20); }

const Base& DenseBase() {
  static const Base base(Dense());
  return base;
}

const Base& MixtureBase() {
  static const Base base(Mixture({}));
  return base;
}

// `spec` as a job that begins with the checkpoint and trains what the globs match.
v1::JobSpec Frozen(v1::JobSpec spec, const Base& base, const std::vector<std::string>& globs) {
  spec.mutable_checkpoint()->set_initial_load(base.path());
  for (const std::string& glob : globs) spec.mutable_model()->add_trainable(glob);
  return spec;
}

TrainOptions From(const Base& base, int64_t steps) {
  return {.steps = steps, .restore_path = base.path()};
}

// The tensors of weights that a single rank has after its steps, by name.
std::map<std::string, std::vector<float>> WeightsAfter(const v1::JobSpec& spec,
                                                       TrainOptions options) {
  std::map<std::string, std::vector<float>> weights;
  options.after_steps = [&](int, Executor& executor) {
    const model::Program& program = executor.program();
    for (const model::State& state : program.states) {
      if (state.kind != model::StateKind::kWeight) continue;
      std::vector<float> numbers(static_cast<size_t>(program.value(state.value).elements()));
      TROUPE_CHECK_OK(
          executor.executable().Read(state.value, 0, std::as_writable_bytes(std::span(numbers))));
      for (const model::ParameterSlice& slice : SlicesOf(program, state)) {
        const auto begin = numbers.begin() + slice.element_offset;
        weights[slice.name] = {begin, begin + *Elements(slice.local_shape)};
      }
    }
  };
  (void)RunOrDie(spec, options);
  return weights;
}

// Expects the same losses to the last bit; norms count only what is trained.
void ExpectIdenticalLosses(const std::vector<StepResult>& actual,
                           const std::vector<StepResult>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_EQ(actual[i].event.loss(), expected[i].event.loss()) << "step " << actual[i].step;
}

// The shape of a tensor of SmallJob's model.
Extents ShapeOf(const std::string& name) {
  if (name.find("norm") != std::string::npos) return {64};
  if (name.find("embed") != std::string::npos || name.starts_with("lm_head")) return {259, 64};
  if (name.find("gate_proj") != std::string::npos || name.find("up_proj") != std::string::npos)
    return {96, 64};
  return name.find("down_proj") != std::string::npos ? Extents{64, 96} : Extents{64, 64};
}

// --- One rank: one step of SGD without clipping, in which no gradient depends on another one.

struct Selection {
  const char* name;
  bool mixture;
  std::vector<std::string> globs;
};

const Selection kSelections[] = {
    {"Embedding", false, {"model.embed_tokens.weight"}},
    {"Head", false, {"lm_head.weight"}},
    {"FinalNorm", false, {"model.norm.weight"}},
    {"Norms", false, {"*norm*"}},
    {"AllButNorms", false, {"*proj.weight", "model.embed_tokens.weight", "lm_head.weight"}},
    {"SecondLayer", false, {"model.layers.1.*"}},
    {"FirstLayer", false, {"model.layers.0.*"}},
    {"AttentionOutputs", false, {"*.o_proj.weight"}},
    {"Experts", true, {"*.experts.*"}},
    {"Routers", true, {"*.mlp.gate.weight"}},
    {"ShrinkingMixture", true, {"*self_attn*", "*layernorm.weight"}},
};

class FrozenSelections : public testing::TestWithParam<Selection> {};

TEST_P(FrozenSelections, TrainWhatTheyMatchAsIfAllWereTrainedAndNothingElse) {
  const auto& [name, is_mixture, globs] = GetParam();
  const Base& base = is_mixture ? MixtureBase() : DenseBase();
  v1::JobSpec spec = is_mixture ? Mixture({}) : Dense();
  spec.clear_optimizer();
  spec.mutable_optimizer()->set_name("sgd");
  spec.mutable_optimizer()->set_lr(0.1);
  spec.mutable_training()->set_max_norm(0);
  spec.mutable_checkpoint()->set_initial_load(base.path());
  // The checkpoint's states are those of AdamW.
  v1::JobSpec frozen = Frozen(spec, base, globs);
  const TrainOptions start = {.steps = 0, .restore_path = base.path()};
  const auto before = WeightsAfter(spec, start);
  const auto whole = WeightsAfter(spec, From(base, 1));
  const auto part = WeightsAfter(frozen, From(base, 1));
  ASSERT_EQ(part.size(), whole.size());
  const model::TrainedParameters trained{.globs = globs};
  int changed = 0;
  for (const auto& [tensor, numbers] : part) {
    if (!trained.Includes(tensor)) {
      EXPECT_EQ(numbers, before.at(tensor)) << tensor;
      continue;
    }
    EXPECT_EQ(numbers, whole.at(tensor)) << tensor;
    changed += numbers != before.at(tensor) ? 1 : 0;
  }
  EXPECT_GT(changed, 0);
}

INSTANTIATE_TEST_SUITE_P(All, FrozenSelections, testing::ValuesIn(kSelections),
                         [](const auto& info) { return info.param.name; });

// --- Layouts.

const std::vector<std::string> kUpper = {"model.layers.1.*", "model.norm.weight"};

class FrozenLayouts : public testing::TestWithParam<AxisUses> {};

TEST_P(FrozenLayouts, HaveTheSingleRanksLosses) {
  const v1::JobSpec single = Frozen(Dense(), DenseBase(), kUpper);
  static const std::vector<StepResult> expected = RunOrDie(single, From(DenseBase(), 12));
  v1::JobSpec spread = single;
  SetAxes(GetParam(), spread.mutable_parallelism());
  ExpectClose(RunOrDie(spread, From(DenseBase(), 12)), expected);
  EXPECT_LT(expected.back().event.loss(), expected.front().event.loss() - 0.02)
      << "nothing was learnt: the comparison is idle";
}

const auto kUsesName = [](const auto& info) { return NameOf(info.param); };
INSTANTIATE_TEST_SUITE_P(Alone, FrozenLayouts, testing::ValuesIn(Share(AxesAlone(), 2)), kUsesName);
INSTANTIATE_TEST_SUITE_P(Pairs, FrozenLayouts, testing::ValuesIn(Share(PairsOfAxes(), 5)),
                         kUsesName);
INSTANTIATE_TEST_SUITE_P(EightRanks, FrozenLayouts, testing::ValuesIn(Share(MixesOfEight(), 3)),
                         kUsesName);

// The globs freeze all of the first stage, so that no gradient is sent to it, or a part of both.
TEST(FrozenSchedules, HaveTheSingleRanksLosses) {
  for (const std::vector<std::string>& globs :
       {kUpper, {"lm_head.weight"}, {"*.0.*norm*", "*.1.mlp.*"}, {"*embed*"}}) {
    const v1::JobSpec single = Frozen(Dense(), DenseBase(), globs);
    const std::vector<StepResult> expected = RunOrDie(single, From(DenseBase(), 6));
    for (const char* const schedule : {"GPipe", "Interleaved1F1B", "ZBH1", "ZBV", "DualPipeV"}) {
      SCOPED_TRACE(fmt::format("{} {}", schedule, fmt::join(globs, " ")));
      const v1::JobSpec spread =
          Frozen(Dense({.pipe = 2, .schedule = schedule}), DenseBase(), globs);
      ExpectClose(RunOrDie(spread, From(DenseBase(), 6)), expected);
    }
  }
}

TEST(FrozenOnDevices, HaveTheSingleRanksLosses) {
  const v1::JobSpec single = Frozen(Dense(), DenseBase(), kUpper);
  TrainOptions options = From(DenseBase(), 4);
  const std::vector<StepResult> expected = RunOrDie(single, options);
  options.control_lag_steps = 1;
  options.make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<kernels::EmulatedBackend>();
  };
  for (const auto& [pipe, shard] : {std::pair{1, 1}, {2, 1}, {2, 2}}) {
    v1::JobSpec spread = single;
    spread.mutable_parallelism()->set_pipeline_parallel_degree(pipe);
    spread.mutable_parallelism()->set_data_parallel_shard_degree(shard);
    if (shard > 1) spread.mutable_parallelism()->set_zero_stage(2);
    ExpectClose(RunOrDie(spread, options), expected);
  }
}

TEST(FrozenMixtures, HaveTheSingleRanksLosses) {
  for (const std::vector<std::string>& globs :
       {std::vector<std::string>{"*.experts.*", "*.mlp.gate.weight"}, {"*self_attn*"}}) {
    const auto job = [&](const Spread& spread) {
      return Frozen(Mixture(spread), MixtureBase(), globs);
    };
    const std::vector<StepResult> expected = RunOrDie(job({}), From(MixtureBase(), 6));
    for (const Spread& spread :
         {Spread{.expert = 2},
          Spread{.expert = 2, .tensor = 2, .over_tensor = true, .by_rows = true},
          Spread{.expert = 2, .shard = 2}, Spread{.expert = 2, .pipe = 2}}) {
      SCOPED_TRACE(fmt::format("{} {}", NameOf(spread), fmt::join(globs, " ")));
      ExpectClose(RunOrDie(job(spread), From(MixtureBase(), 6)), expected);
    }
  }
}

// A tied table that is frozen has no gradient on either stage; one that is trained has both.
TEST(FrozenTiedTables, HaveTheSingleRanksLosses) {
  v1::JobSpec tied = Dense();
  tied.mutable_model()->set_tie_word_embeddings(true);
  const Base base(tied);
  for (const char* const glob : {"*.1.*", "*embed_tokens*"}) {
    const v1::JobSpec single = Frozen(tied, base, {glob});
    v1::JobSpec spread = single;
    spread.mutable_parallelism()->set_pipeline_parallel_degree(2);
    spread.mutable_parallelism()->set_data_parallel_shard_degree(2);
    spread.mutable_parallelism()->set_zero_stage(2);
    ExpectClose(RunOrDie(spread, From(base, 6)), RunOrDie(single, From(base, 6)));
  }
}

// --- Precision: a frozen matrix is kept as matmuls read it, rounded once.

struct Precision {
  const char* name;
  const char* recipe;  // float8
  const char* param;   // the dtype that is gathered
  int shard, zero_stage;
  bool on_device;
};

class FrozenPrecisions : public testing::TestWithParam<Precision> {};

TEST_P(FrozenPrecisions, HaveTheLossesOfTheSameNumbersThatAreTrainedAtARateOfZero) {
  const auto& [name, recipe, param, shard, zero_stage, on_device] = GetParam();
  v1::JobSpec spec = Dense();
  spec.mutable_training()->set_compute_dtype("bfloat16");
  spec.mutable_training()->mutable_mixed_precision()->set_param(param);
  spec.mutable_training()->mutable_float8()->set_recipe(recipe);
  spec.mutable_parallelism()->set_data_parallel_shard_degree(shard);
  if (shard > 1) spec.mutable_parallelism()->set_zero_stage(zero_stage);
  TrainOptions options = From(DenseBase(), 4);
  if (on_device) {
    options.control_lag_steps = 1;
    options.make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
      return std::make_unique<kernels::EmulatedBackend>();
    };
  }
  spec.mutable_checkpoint()->set_initial_load(DenseBase().path());
  spec.clear_optimizer();
  spec.mutable_optimizer()->set_name("sgd");
  spec.mutable_optimizer()->set_lr(1e-30);  // changes no number
  spec.mutable_optimizer()->set_weight_decay(0);
  const v1::JobSpec frozen = Frozen(spec, DenseBase(), kUpper);
  ExpectIdenticalLosses(RunOrDie(frozen, options), RunOrDie(spec, options));
}

constexpr Precision kPrecisions[] = {
    {"Bfloat16", "none", "bfloat16", 1, 0, false},
    {"Zero1", "none", "bfloat16", 2, 1, false},
    {"Zero2InFloat32", "none", "float32", 2, 2, false},
    {"Zero3", "none", "bfloat16", 2, 3, false},
    {"Float8", "current", "bfloat16", 1, 0, false},
    {"Float8Delayed", "delayed", "bfloat16", 2, 3, false},
    {"Float8Blocks", "blockwise", "bfloat16", 2, 1, false},
    {"Device", "none", "bfloat16", 1, 0, true},
    {"DeviceZero2", "current", "bfloat16", 2, 2, true},
};
INSTANTIATE_TEST_SUITE_P(All, FrozenPrecisions, testing::ValuesIn(kPrecisions),
                         [](const auto& info) { return info.param.name; });

// --- Checkpoints.

TEST(FrozenCheckpoints, HaveWhatIsTrainedAndServeEveryLayout) {
  const v1::JobSpec single = Frozen(Dense(), DenseBase(), kUpper);
  const std::vector<StepResult> expected = RunOrDie(single, From(DenseBase(), 8));
  v1::JobSpec spread = single;
  spread.mutable_parallelism()->set_pipeline_parallel_degree(2);
  spread.mutable_parallelism()->set_data_parallel_shard_degree(2);
  spread.mutable_parallelism()->set_zero_stage(3);
  TemporaryDirectory folder;
  TrainOptions first = From(DenseBase(), 4);
  first.save_path = folder.Child("saved");
  std::vector<StepResult> steps = RunOrDie(spread, first);
  PosixFileSystem files;
  const auto manifest = ReadManifest(files, first.save_path, "");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  std::vector<std::string> names;
  for (const v1::ShardFile& shard : manifest->shards()) {
    for (const v1::TensorSlice& tensor : shard.tensors()) names.push_back(tensor.name());
  }
  EXPECT_THAT(names, Contains("model.norm.weight"));
  EXPECT_THAT(names, Contains("exp_avg.model.layers.1.mlp.down_proj.weight"));
  EXPECT_THAT(names, Not(Contains(testing::HasSubstr("layers.0."))));
  EXPECT_THAT(names, Not(Contains(testing::HasSubstr("embed_tokens"))));
  EXPECT_EQ(manifest->base().path(), DenseBase().path());
  TrainOptions second = {.steps = 4, .restore_path = first.save_path};
  for (const StepResult& step : RunOrDie(single, second)) steps.push_back(step);
  ExpectClose(steps, expected);
  // The checkpoint gives the whole model, and is itself a base.
  const auto whole = WeightsAfter(single, {.steps = 0, .restore_path = first.save_path});
  const auto base = BaseWeights::Open({files, files}, kBaseCheckpoint, first.save_path);
  ASSERT_TRUE(base.ok()) << base.status();
  for (const auto& [name, numbers] : whole) {
    const Extents shape = ShapeOf(name);
    std::vector<float> read(numbers.size());
    const LoadTarget target = {{name, "F32", shape, {Extents(shape.size(), 0), shape}},
                               std::as_writable_bytes(std::span(read))};
    ASSERT_TRUE(base->Load({&target, 1}).ok()) << name;
    EXPECT_EQ(read, numbers) << name;
  }
}

TEST(FrozenCheckpoints, NameBothSidesOfABaseThatChanged) {
  PosixFileSystem files;
  const auto base = BaseWeights::Open({files, files}, kBaseCheckpoint, DenseBase().path());
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_TRUE(CheckSameBase(base->identity(), "a", base->identity(), "b").ok());
  v1::BaseIdentity damaged = base->identity();
  damaged.mutable_files(0)->set_digest("sha256:0");
  const Status status =
      CheckSameBase(damaged, "the job began with", base->identity(), "host a has");
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), testing::HasSubstr("is not the same model: the job began with"));
}

}  // namespace
}  // namespace troupe
