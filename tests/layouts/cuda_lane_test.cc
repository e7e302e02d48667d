// Compares a job on the CUDA backend over emulated devices with the same job on the CPU: planner,
// stage programs, executor, CUDA graphs of steps, pipelines, checkpoints. It does not replace a run
// on a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <tuple>
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

// Returns options for a run on emulated devices, which live as long as the run.
TrainOptions OnDevices(int64_t steps = kSteps, StreamOrder order = StreamOrder::kComputeFirst) {
  TrainOptions options;
  options.steps = steps;
  options.control_lag_steps = 1;
  options.make_backend = [order](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<EmulatedBackend>(order);
  };
  return options;
}

TEST(CudaLane, HasTheCpusLosses) {
  const v1::JobSpec spec = Job();
  const std::vector<StepResult> expected = RunOrDie(spec, {.steps = kSteps});
  ExpectClose(RunOrDie(spec, OnDevices()), expected);
  EXPECT_LT(expected.back().event.loss(), expected.front().event.loss());
}

TEST(CudaLane, HasTheCpusLossesInBfloat16WithinOnePercent) {
  const v1::JobSpec spec = Job("bfloat16");
  const std::vector<StepResult> expected = RunOrDie(spec, {.steps = kSteps});
  const std::vector<StepResult> actual = RunOrDie(spec, OnDevices());
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i].event.loss(), expected[i].event.loss(), 0.01 * expected[i].event.loss())
        << "step " << i + 1;
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
    // The first steps have captured the graphs that all later steps launch.
    launches = device->launches();
    graphs = device->graph_launches();
    const int64_t waits = device->host_waits();
    const int64_t bytes = device->allocated_bytes();
    for (int step = 3; step <= 5; ++step) {
      ASSERT_TRUE(executor.SubmitGradients().ok());
      ASSERT_TRUE(executor.SubmitUpdate({}).ok());
      ASSERT_TRUE(executor.Complete().ok());
    }
    EXPECT_EQ(device->launches(), launches);
    EXPECT_EQ(device->graph_launches(), graphs + 3 * 2);
    // One wait per step, for the control word; the host waits for nothing else.
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

// Fills the parameter with 0, except for its first element.
void FillFirst(Executor& executor, const model::ParameterEntry& entry, float number) {
  std::vector<float> weight(static_cast<size_t>(executor.program().value(entry.value).elements()));
  weight[0] = number;
  ASSERT_TRUE(executor.executable().Write(entry.value, 0, std::as_bytes(std::span(weight))).ok());
}

TEST(CudaLane, NamesTheWeightThatIsNotFinite) {
  TrainOptions options = OnDevices(2);
  options.before_steps = [](int, Executor& executor) {
    FillFirst(executor, executor.program().parameters.back(), std::nanf(""));
  };
  const TrainResult result = Train(Job(), options);
  EXPECT_EQ(result.statuses[0].code(), StatusCode::kOutOfRange);
  EXPECT_THAT(
      std::string(Message(result.statuses[0])),
      testing::AllOf(testing::HasSubstr("the weight"), testing::HasSubstr("is not finite")));
}

// --- Pipelines: ranks are threads, each with a device.

struct Pipeline {
  Layout layout;
  int chunks_per_stage = 1;
  int micro_batch_size = 1;
};

std::string ToText(const Pipeline& pipeline) {
  const Layout& layout = pipeline.layout;
  std::string text = fmt::format("{}Stages{}", layout.schedule, layout.pipe);
  if (layout.tensor > 1) text += fmt::format("Tensor{}", layout.tensor);
  if (layout.shard > 1) text += fmt::format("Shard{}", layout.shard);
  return pipeline.micro_batch_size > 1 ? text + "LargeBoundaries" : text;
}

// Returns a job with four blocks and four microbatches on each data rank.
v1::JobSpec Job(const Pipeline& pipeline, int64_t steps) {
  v1::JobSpec spec = SmallJob(pipeline.layout, SmallDataPrefix(), steps);
  spec.mutable_training()->set_micro_batch_size(pipeline.micro_batch_size);
  spec.mutable_training()->set_global_batch_size(4 * pipeline.micro_batch_size *
                                                 pipeline.layout.shard);
  spec.mutable_parallelism()->set_pipeline_parallel_chunks(pipeline.chunks_per_stage);
  return spec;
}

class CudaPipelines : public testing::TestWithParam<std::tuple<Pipeline, StreamOrder>> {};

TEST_P(CudaPipelines, HasTheSingleCpusLossesAndIsTwoGraphsAStep) {
  constexpr int64_t kPipelineSteps = 2;
  const auto& [pipeline, order] = GetParam();
  const v1::JobSpec spec = Job(pipeline, kPipelineSteps);
  v1::JobSpec single_spec =
      Job({.layout = {}, .micro_batch_size = pipeline.micro_batch_size}, kPipelineSteps);
  single_spec.mutable_training()->set_global_batch_size(spec.training().global_batch_size());

  std::vector<EmulatedBackend*> backends(4);
  std::vector<int64_t> launches(4), waits(4);
  TrainOptions options = OnDevices(kPipelineSteps);
  options.make_backend = [&,
                          order = order](int rank) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    auto backend = std::make_unique<EmulatedBackend>(order);
    backends[static_cast<size_t>(rank)] = backend.get();
    return backend;
  };
  options.before_steps = [&](int rank, Executor&) {
    const auto r = static_cast<size_t>(rank);
    launches[r] = backends[r]->device().launches();
    waits[r] = backends[r]->device().host_waits();
  };
  options.after_steps = [&](int rank, Executor&) {
    const auto r = static_cast<size_t>(rank);
    EXPECT_THAT(backends[r]->fallbacks(), testing::IsEmpty());
    EXPECT_EQ(backends[r]->device().launches(), launches[r]);
    EXPECT_EQ(backends[r]->device().graph_launches(), 2 * kPipelineSteps);
    // Loading a kernel can block on kernels that wait for another rank, so no load may be late.
    EXPECT_EQ(backends[r]->device().late_loads(), 0);
    // One wait per step, for the control word; the host does not wait for sends and receives.
    EXPECT_EQ(backends[r]->device().host_waits(), waits[r] + kPipelineSteps);
  };
  ExpectClose(RunOrDie(spec, options), RunOrDie(single_spec, {.steps = kPipelineSteps}));
}

// The transfers requested from a rank's device, and the graphs it held when its communicators were
// destroyed.
struct Seen {
  std::vector<std::string> transfers;
  int communicators_ended = 0;
  int64_t graphs_then = 0;
};

class SeenCollectives : public kernels::cuda::emulator::HostCollectives {
 public:
  SeenCollectives(EmulatedDevice& device, Communicator& host, Seen* seen)
      : HostCollectives(device, host), device_(device), name_(host.name()), seen_(*seen) {}
  ~SeenCollectives() override {
    ++seen_.communicators_ended;
    seen_.graphs_then += device_.graphs_held();
  }
  Status Send(const void* data, size_t bytes, int to, Purpose purpose,
              DeviceStream stream) override {
    seen_.transfers.push_back(fmt::format("send {} {}", name_, Name(purpose)));
    return HostCollectives::Send(data, bytes, to, purpose, stream);
  }
  Status Receive(void* data, size_t bytes, int from, Purpose purpose,
                 DeviceStream stream) override {
    seen_.transfers.push_back(fmt::format("receive {} {}", name_, Name(purpose)));
    return HostCollectives::Receive(data, bytes, from, purpose, stream);
  }

 private:
  EmulatedDevice& device_;
  const std::string name_;
  Seen& seen_;
};

class SeenBackend : public kernels::CudaBackend {
 public:
  explicit SeenBackend(Seen* seen) : SeenBackend(std::make_unique<EmulatedDevice>(), seen) {}

 private:
  SeenBackend(std::unique_ptr<EmulatedDevice> device, Seen* seen)
      : CudaBackend(*device, {},
                    [&device = *device, seen](Communicator& host) {
                      return std::make_unique<SeenCollectives>(device, host, seen);
                    }),
        device_(std::move(device)) {}

  std::unique_ptr<EmulatedDevice> device_;
};

// The first transfer over a pipeline link makes the hosts of its ranks wait for each other. Within
// a step, with posted receives in a cycle, this would deadlock.
TEST(CudaLane, MakesAFirstTransferAlongEveryLinkInOneOrderAndEndsGraphsBeforeCommunicators) {
  std::vector<Seen> seen(2);
  TrainOptions options = OnDevices(2);
  options.make_backend = [&](int rank) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<SeenBackend>(&seen[static_cast<size_t>(rank)]);
  };
  options.before_steps = [&](int rank, Executor&) {
    EXPECT_THAT(
        seen[static_cast<size_t>(rank)].transfers,
        rank == 0
            ? testing::ElementsAre(
                  "send activation[chunk 0, 0->1] start", "receive activation[chunk 1, 1->0] start",
                  "send activation[chunk 2, 0->1] start", "receive gradient[chunk 0, 1->0] start",
                  "send gradient[chunk 1, 0->1] start", "receive gradient[chunk 2, 1->0] start")
            : testing::ElementsAre(
                  "receive activation[chunk 0, 0->1] start", "send activation[chunk 1, 1->0] start",
                  "receive activation[chunk 2, 0->1] start", "send gradient[chunk 0, 1->0] start",
                  "receive gradient[chunk 1, 0->1] start", "send gradient[chunk 2, 1->0] start"));
  };
  RunOrDie(Job({.layout = {.pipe = 2, .schedule = "Interleaved1F1B"}, .chunks_per_stage = 2}, 2),
           options);
  for (const Seen& of_rank : seen) {
    EXPECT_GT(of_rank.communicators_ended, 6);
    EXPECT_EQ(of_rank.graphs_then, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, CudaPipelines,
    testing::Values(
        std::tuple(Pipeline{{.pipe = 2, .schedule = "1F1B"}}, StreamOrder::kComputeFirst),
        std::tuple(Pipeline{{.pipe = 2, .schedule = "Interleaved1F1B"}, 2},
                   StreamOrder::kComputeLast),
        std::tuple(Pipeline{{.pipe = 2, .schedule = "ZBV"}, 2}, StreamOrder::kComputeFirst),
        std::tuple(Pipeline{{.pipe = 2, .schedule = "DualPipeV"}, 2}, StreamOrder::kComputeLast),
        // These schedules interleave pairs.
        std::tuple(Pipeline{{.tensor = 2, .pipe = 2, .schedule = "DualPipeV"}, 2},
                   StreamOrder::kComputeFirst),
        std::tuple(Pipeline{{.tensor = 2, .pipe = 2, .schedule = "DualPipeV"}, 2},
                   StreamOrder::kComputeLast),
        std::tuple(Pipeline{{.pipe = 4, .schedule = "1F1B"}}, StreamOrder::kComputeFirst),
        std::tuple(Pipeline{{.pipe = 4, .schedule = "ZBH1"}}, StreamOrder::kComputeLast),
        // Messages of 16 KiB exceed what loopback copies at the send: a send waits for its receive.
        std::tuple(Pipeline{{.pipe = 2, .schedule = "Interleaved1F1B"}, 2, 4},
                   StreamOrder::kComputeFirst),
        std::tuple(Pipeline{{.tensor = 2, .pipe = 2, .schedule = "ZBH1"}},
                   StreamOrder::kComputeLast),
        std::tuple(Pipeline{{.pipe = 2, .shard = 2, .zero_stage = 3, .schedule = "1F1B"}},
                   StreamOrder::kComputeFirst)),
    [](const auto& info) {
      return ToText(std::get<0>(info.param)) +
             (std::get<1>(info.param) == StreamOrder::kComputeFirst ? "ComputeFirst"
                                                                    : "ComputeLast");
    });

TEST(CudaPipeline, ItsDevicesReportForHowLongTheyWaitForTransfers) {
  constexpr auto kDelay = std::chrono::milliseconds(5);
  const v1::JobSpec spec = Job({{.tensor = 2, .pipe = 2}}, 3);
  TrainOptions options = OnDevices(3);
  options.message_delay = kDelay;
  std::vector<std::vector<StepResult>> steps(4);
  options.after_step = [&](int rank, Executor&, const StepResult& result) {
    steps[static_cast<size_t>(rank)].push_back(result);
  };
  RunOrDie(spec, options);
  for (const std::vector<StepResult>& of_rank : steps) {
    ASSERT_EQ(of_rank.size(), 3u);
    for (const StepResult& step : of_rank) {
      ASSERT_TRUE(step.stalls.has_value());
      const auto of = [&](Purpose purpose) {
        return step.stalls->by_purpose[static_cast<size_t>(purpose)];
      };
      // Four microbatches: each has at least two tensor all-reduces and one receive.
      EXPECT_GE(of(Purpose::kTensor), 8 * ToSeconds(kDelay));
      EXPECT_GT(step.stalls->receives, 0);
      EXPECT_LE(step.stalls->receives, of(Purpose::kPipe));
      EXPECT_EQ(of(Purpose::kContext), 0);
    }
  }
  // On the CPU backend the host itself waits, so the device has no stalls.
  EXPECT_FALSE(RunOrDie(spec, {.steps = 1})[0].stalls.has_value());
}

// Validation, and a step with traced operations, run without graphs.
TEST(CudaPipeline, ValidatesAndShowsItsOperations) {
  v1::JobSpec single = Job(Pipeline{}, 2);
  single.mutable_data()->set_validation_fraction(0.1);
  single.mutable_training()->set_validation_interval(1);
  single.mutable_training()->set_validation_samples(6);
  const std::vector<StepResult> expected = RunOrDie(single, {.steps = 2});
  for (const StreamOrder order : {StreamOrder::kComputeFirst, StreamOrder::kComputeLast}) {
    v1::JobSpec spec = Job({{.pipe = 2, .schedule = "Interleaved1F1B"}, 2}, 2);
    *spec.mutable_data() = single.data();
    spec.mutable_training()->set_validation_interval(1);
    spec.mutable_training()->set_validation_samples(6);
    std::vector<StepTrace> traces(2);
    TrainOptions options = OnDevices(2, order);
    options.before_steps = [&](int rank, Executor& executor) {
      StepTrace& trace = traces[static_cast<size_t>(rank)];
      trace.AskForOperations(2, 2);
      executor.set_trace(&trace);
    };
    const std::vector<StepResult> actual = RunOrDie(spec, options);
    ExpectClose(actual, expected);
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_NEAR(actual[i].event.validation_loss(), expected[i].event.validation_loss(), 1e-5);
    }
    for (const StepTrace& trace : traces)
      EXPECT_THAT(trace.Capture(2, 2).operations, testing::Not(testing::IsEmpty()));
  }
}

TEST(CudaPipeline, NamesTheOperationThatOverflowedOnEveryRank) {
  TrainOptions options = OnDevices(2);
  options.before_steps = [](int, Executor& executor) {
    for (const model::ParameterEntry& entry : executor.program().parameters) {
      if (executor.program().value(entry.value).name != "block1.mlp.norm") continue;
      FillFirst(executor, entry, std::numeric_limits<float>::max());
    }
  };
  const TrainResult result = Train(Job({{.pipe = 2}}, 2), options);
  for (const Status& status : result.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("is an output of")) << status;
  }
}

}  // namespace
}  // namespace troupe
