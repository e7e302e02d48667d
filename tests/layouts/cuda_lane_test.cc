// A job on the CUDA backend over an emulated device beside the same job on the CPU: planner, stage programs, executor, graphs
// of steps, checkpoints. What no GPU has run, no more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "base/temporary_directory.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using kernels::EmulatedBackend;
using kernels::cuda::emulator::EmulatedDevice;
using kernels::cuda::emulator::StreamOrder;

constexpr int64_t kSteps = 4;

v1::JobSpec Job(const char* compute_dtype = "float32") {
  v1::JobSpec spec = SmallJob({}, SmallDataPrefix(), kSteps);
  spec.mutable_model()->set_pattern("AD");
  spec.mutable_training()->set_global_batch_size(3);
  spec.mutable_training()->set_compute_dtype(compute_dtype);
  return spec;
}

// Options of a run on emulated devices, which live as long as the run.
TrainOptions OnDevices(int64_t steps = kSteps, StreamOrder order = StreamOrder::kComputeFirst) {
  TrainOptions options;
  options.steps = steps;
  options.make_backend = [order](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<EmulatedBackend>(order);
  };
  return options;
}

TEST(CudaLane, HasTheCpusLosses) {
  const v1::JobSpec spec = Job();
  const std::vector<StepResult> expected = RunOrDie(spec, {.steps = kSteps});
  ExpectClose(RunOrDie(spec, OnDevices()), expected);
  EXPECT_LT(expected.back().loss, expected.front().loss);
}

TEST(CudaLane, HasTheCpusLossesInBfloat16WithinOnePercent) {
  const v1::JobSpec spec = Job("bfloat16");
  const std::vector<StepResult> expected = RunOrDie(spec, {.steps = kSteps});
  const std::vector<StepResult> actual = RunOrDie(spec, OnDevices());
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i].loss, expected[i].loss, 0.01 * expected[i].loss) << "step " << i + 1;
  }
}

TEST(CudaLane, LaunchesTwoGraphsAStepAndNothingElse) {
  EmulatedDevice* device = nullptr;
  TrainOptions options = OnDevices(2);
  options.make_backend = [&](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    auto backend = std::make_unique<EmulatedBackend>();
    device = &backend->device();
    return backend;
  };
  int64_t launches = 0, graphs = 0;
  options.after_steps = [&](int, Executor& executor) {
    // The first steps have captured what all later ones launch.
    launches = device->launches();
    graphs = device->graph_launches();
    const int64_t waits = device->host_waits();
    const int64_t bytes = device->allocated_bytes();
    for (int step = 3; step <= 5; ++step) {
      ASSERT_TRUE(executor.RunStep({}).ok());
    }
    EXPECT_EQ(device->launches(), launches);
    EXPECT_EQ(device->graph_launches(), graphs + 3 * 2);
    // For the control word; nothing else is waited for.
    EXPECT_EQ(device->host_waits(), waits + 3);
    EXPECT_EQ(device->allocated_bytes(), bytes);
  };
  v1::JobSpec spec = Job();
  spec.mutable_training()->set_steps(100);
  RunOrDie(spec, options);
  EXPECT_EQ(graphs, 2 * 2);
}

TEST(CudaLane, WritesCheckpointsThatTheCpuReadsAndReadsItsOwn) {
  const v1::JobSpec spec = Job();
  const std::vector<StepResult> whole = RunOrDie(spec, {.steps = kSteps});
  const std::vector<StepResult> expected(whole.begin() + 2, whole.end());
  for (const bool saves_on_device : {false, true}) {
    const TemporaryDirectory directory;
    TrainOptions first = saves_on_device ? OnDevices(2) : TrainOptions{.steps = 2};
    first.save_path = directory.path() + "/attempt-1";
    RunOrDie(spec, first);
    for (const bool loads_on_device : {false, true}) {
      TrainOptions second = loads_on_device ? OnDevices(2) : TrainOptions{.steps = 2};
      second.restore_path = first.save_path;
      ExpectClose(RunOrDie(spec, second), expected);
    }
  }
}

TEST(CudaLane, NamesTheWeightThatIsNotFinite) {
  TrainOptions options = OnDevices(2);
  options.before_steps = [](int, Executor& executor) {
    const model::ParameterEntry& entry = executor.program().parameters.back();
    std::vector<float> weight(static_cast<size_t>(executor.program().value(entry.value).elements()));
    weight[0] = std::nanf("");
    ASSERT_TRUE(executor.executable().Write(entry.value, 0, std::as_bytes(std::span(weight))).ok());
  };
  const TrainResult result = Train(Job(), options);
  EXPECT_EQ(result.statuses[0].code(), StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(Message(result.statuses[0])),
              testing::AllOf(testing::HasSubstr("the weight"), testing::HasSubstr("is not finite")));
}

}  // namespace
}  // namespace troupe
