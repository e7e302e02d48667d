// Tests the reduction of gradients between ranks: the dtype in which they are sent, and when the
// reductions start.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <span>
#include <string>

#include "base/check.h"
#include "plan/job/job_defaults.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

v1::JobSpec Job(const Layout& layout, int64_t steps = 20) {
  return SmallJob(layout, SmallDataPrefix(), steps);
}

std::string LayoutName(const Layout& layout) {
  return fmt::format("Zero{}Shard{}Data{}Tensor{}Pipe{}", layout.zero_stage, layout.shard,
                     layout.data, layout.tensor, layout.pipe);
}

// --- Gradients sent as bfloat16.

class PackedGradients : public ::testing::TestWithParam<Layout> {};

TEST_P(PackedGradients, StayCloseToFloat32AndReplicasStayEqualBitForBit) {
  v1::JobSpec spec = Job(GetParam());
  spec.mutable_model()->set_tie_word_embeddings(GetParam().pipe > 1);
  const std::vector<StepResult> expected = RunOrDie(spec);
  spec.mutable_training()->mutable_mixed_precision()->set_reduce("bfloat16");
  ApplyDefaults(&spec);
  std::mutex mutex;
  std::map<std::string, std::string> first;  // for each slice of a parameter, its bytes on one rank
  TrainOptions options;
  options.after_steps = [&](int rank, Executor& executor) {
    const model::Program& program = executor.program();
    for (const model::ParameterEntry& entry : program.parameters) {
      std::string bytes(program.value(entry.value).bytes(), '\0');
      TROUPE_CHECK_OK(executor.executable().Read(
          entry.value, 0, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))));
      std::string slice;
      for (const model::ParameterPart& part : entry.parts) {
        slice += fmt::format("{} {} {},", part.name, fmt::join(part.global_offset, " "),
                             fmt::join(part.local_shape, " "));
      }
      std::lock_guard lock(mutex);
      const auto [found, added] = first.emplace(slice, bytes);
      EXPECT_TRUE(added || found->second == bytes) << "rank " << rank << ": " << slice;
    }
  };
  const std::vector<StepResult> packed = RunOrDie(spec, options);
  ASSERT_EQ(packed.size(), expected.size());
  bool differs = false;
  for (size_t i = 0; i < packed.size(); ++i) {
    EXPECT_NEAR(packed[i].event.loss(), expected[i].event.loss(), 1e-3 * expected[i].event.loss())
        << i;
    EXPECT_NEAR(packed[i].event.grad_norm(), expected[i].event.grad_norm(),
                1e-2 * expected[i].event.grad_norm())
        << i;
    differs |= packed[i].event.loss() != expected[i].event.loss();
  }
  EXPECT_TRUE(differs) << "nothing travelled as bfloat16: the comparison is idle";
}

INSTANTIATE_TEST_SUITE_P(Layouts, PackedGradients,
                         ::testing::Values(Layout{2, 1, 1}, Layout{3, 1, 2}, Layout{2, 2, 1},
                                           Layout{2, 1, 1, 2, 1}, Layout{2, 1, 1, 2, 2},
                                           Layout{2, 1, 1, 2, 3}, Layout{1, 1, 2, 2, 3}),
                         [](const auto& info) { return LayoutName(info.param); });

TEST(PackedGradients, AreWhatTheJobFileAsksFor) {
  v1::JobSpec spec = Job({});
  spec.mutable_training()->clear_compute_dtype();
  spec.mutable_training()->mutable_mixed_precision()->set_param("bfloat16");
  ApplyDefaults(&spec);
  EXPECT_EQ(spec.training().compute_dtype(), "bfloat16");
  EXPECT_EQ(spec.training().mixed_precision().reduce(), "float32");
  v1::JobSpec same = Job({});
  same.mutable_training()->set_compute_dtype("bfloat16");
  ExpectIdentical(RunOrDie(spec, {.steps = 2}), RunOrDie(same, {.steps = 2}));
}

// --- Reductions that start with the last microbatch; the first reader of a parameter waits for it.

class OverlappedEnds : public ::testing::TestWithParam<std::tuple<Layout, bool>> {};

TEST_P(OverlappedEnds, HaveTheBitsOfCollectivesThatAreWaitedForAtOnce) {
  const auto& [layout, in_bfloat16] = GetParam();
  v1::JobSpec spec = Job(layout, 5);
  if (in_bfloat16) {
    spec.mutable_model()->set_tie_word_embeddings(true);
    spec.mutable_training()->set_compute_dtype("bfloat16");
    spec.mutable_training()->mutable_mixed_precision()->set_reduce("bfloat16");
    ApplyDefaults(&spec);
  }
  spec.mutable_parallelism()->mutable_bucket()->set_elements(5000);
  spec.mutable_data()->set_validation_fraction(0.1);
  spec.mutable_training()->set_validation_interval(2);
  const std::vector<StepResult> apart = RunOrDie(spec, {.steps = 5, .overlap = false});
  const std::vector<StepResult> overlapped = RunOrDie(spec, {.steps = 5});
  ExpectIdentical(overlapped, apart);
  for (size_t i = 0; i < apart.size(); ++i) {
    EXPECT_EQ(overlapped[i].event.has_validation_loss(), apart[i].event.has_validation_loss());
    EXPECT_EQ(overlapped[i].event.validation_loss(), apart[i].event.validation_loss());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, OverlappedEnds,
    ::testing::Combine(
        ::testing::Values(Layout{2, 1, 1}, Layout{2, 1, 2}, Layout{1, 1, 1, 2, 1},
                          Layout{1, 1, 1, 3, 2}, Layout{2, 1, 1, 2, 1}, Layout{2, 1, 1, 2, 2},
                          Layout{2, 2, 1}, Layout{2, 1, 2, 1, 1, "GPipe"},
                          Layout{2, 1, 2, 1, 1, "ZBH1"}, Layout{2, 1, 2, 1, 1, "Interleaved1F1B"},
                          Layout{1, 1, 2, 2, 1, "Interleaved1F1B"}, Layout{2, 1, 2, 1, 1, "ZBV"},
                          Layout{1, 1, 2, 2, 1, "ZBV"}, Layout{2, 1, 2, 1, 1, "DualPipeV"}),
        ::testing::Bool()),
    [](const auto& info) {
      const Layout& layout = std::get<0>(info.param);
      return LayoutName(layout) + layout.schedule +
             (std::get<1>(info.param) ? "TiedInBfloat16" : "");
    });

}  // namespace
}  // namespace troupe
