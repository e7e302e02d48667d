// Compares layouts of several ranks (threads) on the CUDA backend over emulated devices with the
// losses of one rank on the CPU. Each layout runs with one stream order;
// kernels/cuda/emulated/collectives_test.cc has every collective with both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/cuda/emulated/emulated_backend.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using kernels::EmulatedBackend;
using kernels::cuda::emulator::StreamOrder;

constexpr int64_t kSteps = 3;

// Runs `spec` on emulated devices; `fallbacks` receives those of rank 0.
std::vector<StepResult> RunOnDevices(const v1::JobSpec& spec, StreamOrder order,
                                     std::vector<std::string>* fallbacks) {
  EmulatedBackend* first = nullptr;
  TrainOptions options;
  options.steps = kSteps;
  options.control_lag_steps = 1;
  options.make_backend = [&](int rank) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    auto backend = std::make_unique<EmulatedBackend>(order);
    if (rank == 0) first = backend.get();
    return backend;
  };
  options.after_steps = [&](int rank, Executor&) {
    if (rank == 0) *fallbacks = first->fallbacks();
  };
  return RunOrDie(spec, options);
}

v1::JobSpec Job(const Layout& layout) {
  v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kSteps);
  spec.mutable_model()->set_pattern("AD");
  spec.mutable_training()->set_global_batch_size(4);
  return spec;
}

struct Case {
  const char* name;
  Layout layout;
};

class CudaLayouts : public testing::TestWithParam<std::tuple<Case, StreamOrder>> {};

TEST_P(CudaLayouts, HaveTheLossesOfOneRankOnTheCpu) {
  const auto& [test, order] = GetParam();
  std::vector<std::string> fallbacks;
  ExpectClose(RunOnDevices(Job(test.layout), order, &fallbacks),
              RunOrDie(Job({}), {.steps = kSteps}));
  EXPECT_EQ(fallbacks, std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(
    Table, CudaLayouts,
    testing::Values(
        std::tuple(Case{"Data2", {.data = 2}}, StreamOrder::kComputeFirst),
        std::tuple(Case{"Tensor2", {.tensor = 2}}, StreamOrder::kComputeLast),
        std::tuple(Case{"Tensor2Rows", {.tensor = 2, .by_rows = true}}, StreamOrder::kComputeFirst),
        std::tuple(Case{"Zero1Shard2", {.shard = 2, .zero_stage = 1}}, StreamOrder::kComputeLast),
        std::tuple(Case{"Zero2Shard2", {.shard = 2, .zero_stage = 2}}, StreamOrder::kComputeFirst),
        std::tuple(Case{"Zero3Shard2Tensor2", {.tensor = 2, .shard = 2, .zero_stage = 3}},
                   StreamOrder::kComputeLast),
        std::tuple(Case{"Ring2", {.context = 2}}, StreamOrder::kComputeFirst),
        std::tuple(Case{"Heads2", {.context = 2, .exchanges_heads = true}},
                   StreamOrder::kComputeLast)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) +
             (std::get<1>(info.param) == StreamOrder::kComputeFirst ? "ComputeFirst"
                                                                    : "ComputeLast");
    });

// Tests key-value heads that tensor ranks share.
TEST(CudaLayouts, SharedHeadsHaveTheLossesOfOneRankOnTheCpu) {
  for (const auto& [heads, layout] :
       {std::pair(1, Layout{.tensor = 2, .by_rows = true}), std::pair(2, Layout{.tensor = 4}),
        std::pair(1, Layout{.tensor = 2, .shard = 2, .zero_stage = 3}),
        std::pair(1, Layout{.tensor = 2, .context = 2})}) {
    const auto job = [heads = heads](const Layout& on) {
      v1::JobSpec spec = Job(on);
      spec.mutable_model()->set_num_key_value_heads(heads);
      return spec;
    };
    SCOPED_TRACE(testing::Message() << heads << " heads, tensor " << layout.tensor << ", shard "
                                    << layout.shard << ", context " << layout.context);
    std::vector<std::string> fallbacks;
    ExpectClose(RunOnDevices(job(layout), StreamOrder::kComputeLast, &fallbacks),
                RunOrDie(job({}), {.steps = kSteps}));
    EXPECT_EQ(fallbacks, std::vector<std::string>());
  }
}

v1::JobSpec MixtureJob(const Spread& spread) {
  v1::JobSpec spec = Mixture(spread, kSteps);
  spec.mutable_model()->set_pattern("AE");
  spec.mutable_training()->set_global_batch_size(4);
  return spec;
}

class CudaMixtures : public testing::TestWithParam<std::tuple<Spread, StreamOrder>> {};

TEST_P(CudaMixtures, HaveTheLossesOfOneRankOnTheCpu) {
  const auto& [spread, order] = GetParam();
  std::vector<std::string> fallbacks;
  ExpectClose(RunOnDevices(MixtureJob(spread), order, &fallbacks),
              RunOrDie(MixtureJob({}), {.steps = kSteps}));
  // With dispatch to experts of other ranks the host reads the row counts, which a graph cannot
  // contain.
  if (spread.expert == 1 || spread.gathers) {
    EXPECT_EQ(fallbacks, std::vector<std::string>());
  } else {
    ASSERT_EQ(fallbacks.size(), 1u);
    EXPECT_THAT(fallbacks[0], testing::HasSubstr("the host waits for counts of the device"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, CudaMixtures,
    testing::Values(std::tuple(Spread{}, StreamOrder::kComputeFirst),
                    std::tuple(Spread{.expert = 2}, StreamOrder::kComputeLast),
                    std::tuple(Spread{.expert = 2, .gathers = true}, StreamOrder::kComputeFirst),
                    std::tuple(Spread{.expert = 2, .tensor = 2, .by_rows = true},
                               StreamOrder::kComputeLast)),
    [](const auto& info) {
      return NameOf(std::get<0>(info.param)) +
             (std::get<1>(info.param) == StreamOrder::kComputeFirst ? "ComputeFirst"
                                                                    : "ComputeLast");
    });

}  // namespace
}  // namespace troupe
