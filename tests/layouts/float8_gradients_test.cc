// Compares each parameter's gradient of FP8 training with the float64 reference that quantises the
// same inputs. A lost, doubled or wrongly scaled part is visible here at once, while losses hardly
// differ even from a run without training.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/shard_reader.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "kernels/reference/reference_backend.h"
#include "plan/job/job_defaults.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

v1::JobSpec InFloat8(v1::JobSpec spec, const std::string& recipe) {
  spec.mutable_training()->set_compute_dtype("bfloat16");
  spec.mutable_training()->mutable_float8()->set_recipe(recipe);
  spec.mutable_training()->set_max_norm(0);  // the first moment is then (1 - beta1) × the gradient
  ApplyDefaults(&spec);
  return spec;
}

v1::JobSpec Job(const Layout& layout, const std::string& recipe) {
  return InFloat8(SmallJob(layout, SmallDataPrefix(), 3), recipe);
}

// First moments by parameter name: after one step the gradient times a common factor, after several
// a weighted mean of gradients.
using Gradients = std::map<std::string, std::vector<float>>;

Gradients GradientsOf(const v1::JobSpec& spec, int64_t steps, TrainOptions options = {}) {
  const TemporaryDirectory directory;
  options.steps = steps;
  options.save_path = directory.path() + "/attempt-1";
  RunOrDie(spec, options);
  PosixFileSystem files;
  const auto manifest = ReadManifest(files, options.save_path, "");
  TROUPE_CHECK_OK(manifest.status());
  constexpr std::string_view kMoment = "exp_avg.";
  Gradients gradients;
  std::vector<LoadTarget> targets;
  for (const v1::ShardFile& shard : manifest->shards()) {
    for (const v1::TensorSlice& tensor : shard.tensors()) {
      if (!tensor.name().starts_with(kMoment) || gradients.contains(tensor.name())) continue;
      const Extents shape(tensor.global_shape().begin(), tensor.global_shape().end());
      std::vector<float>& gradient = gradients[tensor.name()];
      gradient.resize(static_cast<size_t>(Elements(shape).value()));
      targets.push_back({{tensor.name(), tensor.dtype(), shape, {Extents(shape.size()), shape}},
                         std::as_writable_bytes(std::span(gradient))});
    }
  }
  TROUPE_CHECK_OK(LoadSlices(files, options.save_path, *manifest, targets));
  return gradients;
}

TrainOptions OnReference() {
  TrainOptions options;
  options.make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<kernels::ReferenceBackend>();
  };
  return options;
}

TrainOptions OnEmulatedDevices() {
  TrainOptions options;
  options.make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<kernels::EmulatedBackend>();
  };
  return options;
}

// Returns |a - b| / |b| of two vectors.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, length = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    length += double{b[i]} * b[i];
  }
  return std::sqrt(difference / length);
}

void ExpectGradients(const Gradients& actual, const Gradients& expected, double within) {
  ASSERT_EQ(actual.size(), expected.size());
  ASSERT_GT(expected.size(), 10u);
  for (const auto& [name, gradient] : expected) {
    ASSERT_TRUE(actual.contains(name)) << name;
    EXPECT_LT(Distance(actual.at(name), gradient), within) << name;
  }
}

double LargestDistance(const Gradients& actual, const Gradients& expected) {
  double largest = 0;
  for (const auto& [name, gradient] : expected) {
    largest = std::max(largest, Distance(actual.at(name), gradient));
  }
  return largest;
}

// Returns the share of the quantisation effect that `actual` contains: its difference from the
// unquantised reference, projected on the quantised reference's difference. 1 for equal gradients,
// about 0 for unquantised gradients, which differ only by rounding. The distance cannot distinguish
// the two: rounding to bfloat16 across an FP8 threshold moves a value as far as quantisation does.
double QuantisedShare(const Gradients& actual, const Gradients& quantised,
                      const Gradients& unquantised) {
  double common = 0, whole = 0;
  for (const auto& [name, plain] : unquantised) {
    const std::vector<float>&a = actual.at(name), &q = quantised.at(name);
    double product = 0, square = 0, length = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
      const double by_quantising = double{q[i]} - plain[i];
      product += (double{a[i]} - plain[i]) * by_quantising;
      square += by_quantising * by_quantising;
      length += double{plain[i]} * plain[i];
    }
    common += product / length;
    whole += square / length;
  }
  return common / whole;
}

// The tolerance for rounding: bfloat16 rounds values that the reference quantises unrounded, so
// some become the neighbouring value of the coarse FP8 format. A part that is lost or counted twice
// is about five times as far off.
constexpr double kOfRounding = 0.12;
// Bounds on QuantisedShare, which is 0.64 to 0.66 for backends that round to bfloat16.
constexpr double kQuantised = 0.4;
constexpr double kNotQuantised = 0.1;
// The tolerance for summation order: the reference reads and sums the same numbers under every
// layout.
constexpr double kOfSums = 1e-5;

class Recipes : public ::testing::TestWithParam<const char*> {};

TEST_P(Recipes, HaveTheGradientsOfTheReferenceParameterByParameter) {
  const Gradients reference = GradientsOf(Job({}, GetParam()), 1, OnReference());
  const Gradients cpu = GradientsOf(Job({}, GetParam()), 1);
  const Gradients emulated = GradientsOf(Job({}, GetParam()), 1, OnEmulatedDevices());
  ExpectGradients(cpu, reference, kOfRounding);
  ExpectGradients(emulated, reference, kOfRounding);
  // Without an FP8 recipe the reference and bfloat16 differ only by rounding.
  const Gradients unquantised = GradientsOf(Job({}, "none"), 1, OnReference());
  const Gradients plain = GradientsOf(Job({}, "none"), 1);
  EXPECT_LT(LargestDistance(plain, unquantised), 0.02);
  EXPECT_GT(LargestDistance(reference, unquantised), 0.05);
  EXPECT_GT(QuantisedShare(cpu, reference, unquantised), kQuantised);
  EXPECT_GT(QuantisedShare(emulated, reference, unquantised), kQuantised);
  EXPECT_LT(QuantisedShare(plain, reference, unquantised), kNotQuantised);
}

INSTANTIATE_TEST_SUITE_P(Float8, Recipes, ::testing::Values("current", "delayed", "blockwise"),
                         [](const auto& info) { return std::string(info.param); });

class Layouts : public ::testing::TestWithParam<std::tuple<const char*, Layout>> {};

// Runs three steps, so that the delayed recipe uses its amax history.
TEST_P(Layouts, OfTheReferenceHaveTheSingleRanksGradients) {
  const auto& [recipe, layout] = GetParam();
  static std::map<std::string, Gradients> of_single_rank;
  if (!of_single_rank.contains(recipe)) {
    of_single_rank[recipe] = GradientsOf(Job({}, recipe), 3, OnReference());
  }
  ExpectGradients(GradientsOf(Job(layout, recipe), 3, OnReference()), of_single_rank[recipe],
                  kOfSums);
}

// The test Recipes compares one rank with the reference.
TEST_P(Layouts, OfTheCpuHaveTheSingleRanksGradients) {
  const auto& [recipe, layout] = GetParam();
  const Gradients whole = GradientsOf(Job({}, recipe), 1);
  const Gradients actual = GradientsOf(Job(layout, recipe), 1);
  ExpectGradients(actual, whole, kOfRounding);
  EXPECT_GT(QuantisedShare(actual, whole, GradientsOf(Job({}, "none"), 1)), kQuantised);
}

INSTANTIATE_TEST_SUITE_P(
    Float8, Layouts,
    ::testing::Combine(
        ::testing::Values("current", "delayed", "blockwise"),
        ::testing::Values(Layout{.data = 3}, Layout{.tensor = 2, .by_rows = true},
                          Layout{.shard = 2, .zero_stage = 2},
                          Layout{.tensor = 2, .shard = 2, .zero_stage = 3, .by_rows = true},
                          Layout{.pipe = 2, .schedule = "ZBV"}, Layout{.context = 2})),
    [](const auto& info) {
      const Layout& layout = std::get<1>(info.param);
      return fmt::format("{}Data{}Tensor{}Shard{}Zero{}Pipe{}Context{}", std::get<0>(info.param),
                         layout.data, layout.tensor, layout.shard, layout.zero_stage, layout.pipe,
                         layout.context);
    });

class Mixtures : public ::testing::TestWithParam<Spread> {};

TEST_P(Mixtures, OfTheReferenceHaveTheSingleRanksGradients) {
  ExpectGradients(GradientsOf(InFloat8(Mixture(GetParam(), 1), "blockwise"), 1, OnReference()),
                  GradientsOf(InFloat8(Mixture({}, 1), "blockwise"), 1, OnReference()), kOfSums);
}

INSTANTIATE_TEST_SUITE_P(Float8, Mixtures,
                         ::testing::Values(Spread{.expert = 2},
                                           Spread{.expert = 2, .tensor = 2, .by_rows = true},
                                           Spread{.expert = 2, .shard = 2, .zero_stage = 3}),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace troupe
