// Compares layouts of several ranks (threads) on the CUDA backend over emulated devices with the
// losses of one rank on the CPU. Each layout runs with one stream order, except that interleaved
// pairs run with both; kernels/cuda/emulated/collectives_test.cc has every collective with both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated/emulated_backend.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using kernels::EmulatedBackend;
using kernels::cuda::emulator::EmulatedDevice;
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

// --- Overlapped pairs: two stages of two expert ranks each.

// Counts the exchanges of experts that hide work: between their begin and the wait for them, an
// operation is launched on the compute stream.
class ExchangesDevice : public EmulatedDevice {
 public:
  using EmulatedDevice::EmulatedDevice;

  int hiding() const { return hiding_; }
  // Must be called before an exchange is enqueued on the communication stream.
  void BeginExchange() { begins_ = true; }

  Status Launch(const kernels::cuda::KernelLaunch& launch, kernels::cuda::Stream stream) override {
    // Marks only measure waits.
    const bool is_mark = std::string_view(launch.name).ends_with("_mark");
    if (stream == kernels::cuda::Stream::kCompute && !is_mark) {
      for (auto& [event, has_work] : in_flight_) has_work = true;
    }
    return EmulatedDevice::Launch(launch, stream);
  }
  Status Record(kernels::cuda::Event event, kernels::cuda::Stream stream) override {
    const bool is_behind = stream == kernels::cuda::Stream::kCommunication;
    if (is_behind && std::exchange(begins_, false)) in_flight_[event] = false;
    return EmulatedDevice::Record(event, stream);
  }
  Status WaitFor(kernels::cuda::Event event, kernels::cuda::Stream stream) override {
    const auto found = in_flight_.find(event);
    if (found != in_flight_.end() && stream == kernels::cuda::Stream::kCompute) {
      if (found->second) ++hiding_;
      in_flight_.erase(found);
    }
    return EmulatedDevice::WaitFor(event, stream);
  }

 private:
  bool begins_ = false;
  std::map<kernels::cuda::Event, bool> in_flight_;  // by the event behind: whether there is work
  int hiding_ = 0;
};

class ExchangesCollectives : public kernels::cuda::emulator::HostCollectives {
 public:
  ExchangesCollectives(ExchangesDevice& device, Communicator& host)
      : HostCollectives(device, host), device_(device) {}

  Status AllToAll(const void* input, void* output, std::span<const size_t> send_bytes,
                  std::span<const size_t> receive_bytes, Purpose purpose,
                  DeviceStream stream) override {
    if (purpose == Purpose::kDispatch) device_.BeginExchange();
    return HostCollectives::AllToAll(input, output, send_bytes, receive_bytes, purpose, stream);
  }

 private:
  ExchangesDevice& device_;
};

class ExchangesBackend : public kernels::CudaBackend {
 public:
  explicit ExchangesBackend(StreamOrder order)
      : ExchangesBackend(std::make_unique<ExchangesDevice>(order)) {}

  const ExchangesDevice& device() const { return *device_; }

 private:
  explicit ExchangesBackend(std::unique_ptr<ExchangesDevice> device)
      : CudaBackend(*device, {},
                    [&device = *device](Communicator& host) {
                      return std::make_unique<ExchangesCollectives>(device, host);
                    }),
        device_(std::move(device)) {}

  std::unique_ptr<ExchangesDevice> device_;
};

constexpr int64_t kPairSteps = 2;

// Returns a job with four microbatches on each of two expert ranks.
v1::JobSpec PairsJob(const Spread& spread) {
  v1::JobSpec spec = Mixture(spread, kPairSteps);
  spec.mutable_training()->set_global_batch_size(8);
  return spec;
}

struct PairsRun {
  std::vector<StepResult> steps;
  std::vector<int> hiding;  // by rank: exchanges that hide work
};

PairsRun RunPairs(StreamOrder order, bool interleaves) {
  const Spread spread{.expert = 2, .pipe = 2, .schedule = "DualPipeV"};
  const auto ranks = static_cast<size_t>(spread.ranks());
  std::vector<ExchangesBackend*> backends(ranks);
  PairsRun run;
  run.hiding.resize(ranks);
  TrainOptions options;
  options.steps = kPairSteps;
  options.control_lag_steps = 1;
  options.interleave_pairs = interleaves;
  options.make_backend = [&](int rank) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    auto backend = std::make_unique<ExchangesBackend>(order);
    backends[static_cast<size_t>(rank)] = backend.get();
    return backend;
  };
  options.after_steps = [&](int rank, Executor&) {
    const ExchangesDevice& device = backends[static_cast<size_t>(rank)]->device();
    run.hiding[static_cast<size_t>(rank)] = device.hiding();
    EXPECT_EQ(device.late_loads(), 0);
  };
  run.steps = RunOrDie(PairsJob(spread), options);
  return run;
}

TEST(CudaMixtures, InterleavedPairsHideExchangesAndHaveTheLossesOfOneRankOnTheCpu) {
  const std::vector<StepResult> expected = RunOrDie(PairsJob({}), {.steps = kPairSteps});
  // Without interleaving, only shared experts compute during an exchange.
  const PairsRun apart = RunPairs(StreamOrder::kComputeFirst, false);
  for (const StreamOrder order : {StreamOrder::kComputeFirst, StreamOrder::kComputeLast}) {
    SCOPED_TRACE(order == StreamOrder::kComputeFirst ? "compute first" : "compute last");
    const PairsRun interleaved = RunPairs(order, true);
    ExpectClose(interleaved.steps, expected);
    ExpectIdentical(interleaved.steps, apart.steps);
    for (size_t rank = 0; rank < apart.hiding.size(); ++rank) {
      EXPECT_GT(interleaved.hiding[rank], apart.hiding[rank]) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace troupe
