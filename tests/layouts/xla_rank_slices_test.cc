// Ranks of a stage on a slice of several chips, with the backends that the processes of a worker
// make: each rank has a client of its own, which knows the devices of its stage in an order of its
// own, and the ranks exchange their devices. The chips are devices of XLA's CPU plugin and the
// processes are threads. Without the plugin every test is skipped with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/xla/testing/forwarding_client.h"
#include "plan/layout/slice_placement.h"
#include "plan/make_plan.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/training.h"
#include "tests/layouts/xla_programs.h"
#include "worker/executor/rank_program.h"
#include "worker/rank/slice_devices.h"
#include "worker/rank/xla_backend.h"

namespace troupe {
namespace {

using kernels::xla::Buffer;
using kernels::xla::Client;
using kernels::xla::DeviceFacts;
using kernels::xla::ForwardingClient;
using kernels::xla::Options;
using kernels::xla::Program;
using testing::IsEmpty;

constexpr int64_t kSteps = 6;

// The client of one rank's process: of the devices of `all` it has those of the rank's stage.
class ProcessClient : public ForwardingClient {
 public:
  // `devices`: those of the stage by rank, as indices of `all`; `own`: the rank's index in it.
  ProcessClient(Client& all, std::vector<int> devices, int own, const v1::Plan& plan,
                std::span<const int> ranks)
      : ForwardingClient(all), devices_(std::move(devices)) {
    for (size_t i = 0; i < devices_.size(); ++i) {
      DeviceFacts& facts = facts_.emplace_back(all.devices()[devices_[i]]);
      const v1::SliceProcess& process = plan.ranks(ranks[i]).slice_process();
      facts.coordinates = {process.task() % process.bounds(0), process.task() / process.bounds(0),
                           0};
      facts.addressable = static_cast<int>(i) == own;
    }
    // A plugin lists devices in an order of its own.
    std::rotate(devices_.begin(), devices_.begin() + own, devices_.end());
    std::rotate(facts_.begin(), facts_.begin() + own, facts_.end());
  }

  const std::vector<DeviceFacts>& devices() const override { return facts_; }
  StatusOr<std::unique_ptr<Program>> Compile(std::string_view text, const Options& options,
                                             std::span<const int> devices) override {
    return ForwardingClient::Compile(text, options, OfAll(devices));
  }
  std::string OptionBytes(const Options& options, std::span<const int> devices) const override {
    return ForwardingClient::OptionBytes(options, OfAll(devices));
  }
  StatusOr<std::unique_ptr<Program>> Load(std::string_view bytes,
                                          std::span<const int> devices) override {
    return ForwardingClient::Load(bytes, OfAll(devices));
  }
  StatusOr<std::unique_ptr<Buffer>> Upload(model::DType dtype, std::span<const int64_t> dims,
                                           std::span<const std::byte> bytes, int device) override {
    TROUPE_CHECK(facts_[device].addressable, "device {} is another process's", device);
    return ForwardingClient::Upload(dtype, dims, bytes, devices_[device]);
  }

 private:
  std::vector<int> OfAll(std::span<const int> devices) const {
    std::vector<int> of_all;
    for (const int device : devices) of_all.push_back(devices_[device]);
    return of_all;
  }

  std::vector<int> devices_;
  std::vector<DeviceFacts> facts_;
};

// The book of a job's devices, which the coordinator sends once it is complete.
class Book {
 public:
  explicit Book(size_t ranks) : devices_(ranks) {}
  StatusOr<std::vector<v1::RankDevice>> Exchange(int rank, v1::RankDevice device) {
    std::unique_lock lock(mutex_);
    devices_[static_cast<size_t>(rank)] = std::move(device);
    ++sent_;
    changed_.notify_all();
    if (!changed_.wait_for(lock, std::chrono::seconds(60),
                           [this] { return sent_ == devices_.size(); }))
      return DeadlineExceeded("{} of {} ranks have sent their devices", sent_, devices_.size());
    return devices_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::RankDevice> devices_;
  size_t sent_ = 0;
};

v1::JobSpec Job(const Layout& layout) {
  v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kSteps);
  spec.mutable_model()->set_pattern("AD");
  return spec;
}

// Returns the steps of the job on the chips of an imagined slice of TPUs.
std::vector<StepResult> TrainOnChips(v1::JobSpec spec) {
  spec.set_devices("xla");
  const auto ranks = static_cast<int>(RankCount(spec.parallelism()));
  const auto cluster = ImaginedSlice(*FindTpuModel("TPU v6 lite"), ranks);
  TROUPE_CHECK_OK(cluster.status());
  const auto plan = MakePlan(spec, *cluster);
  TROUPE_CHECK_OK(plan.status());
  Book book(static_cast<size_t>(ranks));
  TrainOptions options;
  options.steps = kSteps;
  options.make_backend = [&](int rank) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    TROUPE_ASSIGN_OR_RETURN(kernels::xla::ProgramCache* const programs, XlaPrograms());
    const std::vector<int> stage = RanksOfStage(*plan, rank);
    std::vector<int> devices;
    for (const int of_stage : stage) devices.push_back(ranks - 1 - of_stage);
    RankBackendOptions of_rank;
    of_rank.devices = "xla";
    of_rank.compiler_options = {"xla_backend_optimization_level=0",
                                "xla_cpu_use_fusion_emitters=false"};
    of_rank.peers = {.plan = &*plan,
                     .rank = rank,
                     .make_program = [&](int other) -> StatusOr<model::Program> {
                       TROUPE_ASSIGN_OR_RETURN(RankProgram made,
                                               MakeRankProgram(spec, *plan, other));
                       return std::move(made.program);
                     },
                     .exchange_devices =
                         [&book, rank](v1::RankDevice device) {
                           return book.Exchange(rank, std::move(device));
                         }};
    const int own = static_cast<int>(std::ranges::find(stage, rank) - stage.begin());
    auto made = MakeXlaRankBackend(
        of_rank,
        std::make_unique<ProcessClient>(programs->client(), std::move(devices), own, *plan, stage));
    if (made.ok()) {
      EXPECT_THAT((*made)->fallbacks(), IsEmpty());
    }
    return made;
  };
  return RunOrDie(spec, options);
}

class XlaRankSlices : public testing::TestWithParam<Layout> {
 protected:
  void SetUp() override {
    if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
  }
};

TEST_P(XlaRankSlices, HaveTheLossesOfOneRankOnTheCpu) {
  static const std::vector<StepResult> expected = RunOrDie(Job({}), {.steps = kSteps});
  ExpectClose(TrainOnChips(Job(GetParam())), expected);
}

INSTANTIATE_TEST_SUITE_P(Layouts, XlaRankSlices,
                         testing::Values(Layout{.tensor = 2, .shard = 2, .zero_stage = 3},
                                         Layout{.tensor = 2, .pipe = 2}));

}  // namespace
}  // namespace troupe
