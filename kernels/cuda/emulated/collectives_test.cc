// Ranks as threads, each with an emulated device, whose collectives are the host's.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "kernels/collective_test.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "kernels/testing.h"
#include "model/program/builder.h"

namespace troupe::kernels {
namespace {

using cuda::emulator::EmulatedDevice;
using cuda::emulator::HostCollectives;
using cuda::emulator::StreamOrder;
using model::DType;

KernelSetting Setting(StreamOrder order, DType compute) {
  return {std::string(order == StreamOrder::kComputeFirst ? "compute_first_" : "compute_last_") +
              model::Name(compute),
          compute, [order] { return std::make_unique<EmulatedBackend>(order); }};
}
INSTANTIATE_TEST_SUITE_P(Emulated, CollectiveTest,
                         testing::Values(Setting(StreamOrder::kComputeFirst, DType::kFloat32),
                                         Setting(StreamOrder::kComputeFirst, DType::kBFloat16),
                                         Setting(StreamOrder::kComputeLast, DType::kFloat32),
                                         Setting(StreamOrder::kComputeLast, DType::kBFloat16)),
                         NameOfSetting);

constexpr DeviceStream kCommunication = static_cast<DeviceStream>(cuda::Stream::kCommunication);

// Calls body(device, collectives, group) in a thread of each of two ranks.
void RunPair(const std::function<void(EmulatedDevice&, HostCollectives&, Communicator&)>& body) {
  LoopbackCluster cluster(2);
  cluster.Run([&](int rank) {
    CollectiveNetwork& network = cluster.network(rank);
    Communicator* const group =
        network.MakeCommunicator("pipe", Purpose::kPipe, {0, 1}, "pipe/0>1").value();
    TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
    EmulatedDevice device;
    HostCollectives collectives(device, *group);
    body(device, collectives, *group);
  });
}

Status Finish(EmulatedDevice& device) {
  const cuda::Event event = device.MakeEvent().value();
  TROUPE_RETURN_IF_ERROR(device.Record(event, cuda::Stream::kCommunication));
  return device.Finish(event);
}

TEST(HostCollectives, ActivationsTravelAlongAnEdgeWhenTheStreamComesToThem) {
  RunPair([](EmulatedDevice& device, HostCollectives& collectives, Communicator& group) {
    const cuda::DeviceMemory memory = device.Allocate(3).value();
    if (group.rank() == 0) {
      TROUPE_CHECK_OK(collectives.Send(memory.get(), 3, 1, Purpose::kPipe, kCommunication));
      std::copy_n("abc", 3, memory.get());  // nothing is sent before the host waits
    } else {
      TROUPE_CHECK_OK(collectives.Receive(memory.get(), 3, 0, Purpose::kPipe, kCommunication));
    }
    TROUPE_CHECK_OK(Finish(device));
    EXPECT_EQ(std::string(memory.get(), 3), "abc");
  });
}

TEST(HostCollectives, AfterAnAbortWhatIsPendingFailsAndNothingBegins) {
  RunPair([](EmulatedDevice& device, HostCollectives& collectives, Communicator&) {
    const cuda::DeviceMemory memory = device.Allocate(8).value();
    const auto sum = [&] {
      return collectives.AllReduce(memory.get(), memory.get(), 2, ElementType::kFloat32,
                                   DeviceReduction::kSum, Purpose::kTensor, kCommunication);
    };
    TROUPE_CHECK_OK(sum());
    collectives.Abort();
    EXPECT_EQ(Finish(device).code(), StatusCode::kUnavailable);
    EXPECT_EQ(sum().code(), StatusCode::kUnavailable);
  });
}

TEST(HostCollectives, AReductionThatIsNotThereIsRefusedBeforeTheStream) {
  RunPair([](EmulatedDevice&, HostCollectives& collectives, Communicator&) {
    EXPECT_EQ(collectives
                  .AllReduce(nullptr, nullptr, 2, ElementType::kFloat64, DeviceReduction::kMax,
                             Purpose::kTensor, kCommunication)
                  .code(),
              StatusCode::kInvalidArgument);
  });
}

// A part of a step with a sum that goes on beside the kernels is one graph from its second run on.
TEST(HostCollectives, AGraphHoldsTheCollectivesOfAStep) {
  RunRanks(2, [] { return std::make_unique<EmulatedBackend>(); },
           [](int rank, Backend& backend, const FindCommunicator& groups) {
             model::Program program;
             program.chunks.resize(1);
             program.ops.resize(1);
             program.ops[0].resize(model::kNumPieces);
             const model::ValueType type = {DType::kFloat32, {{"rows", 4, 4}, {"columns", 4, 4}}, {}, {}};
             std::vector<model::ValueId> v;
             for (const char* name : {"x", "sum", "twice", "y"}) {
               v.push_back(model::AppendValue(program, name, model::Role::kActivation, 0, type));
             }
             program.ops[0][static_cast<int>(model::Piece::kForward)] = {
                 {.kind = model::OpKind::kAllReduce,
                  .attributes = model::CollectiveAttributes{model::GroupOf(model::Axis::kTensor),
                                                            model::CollectivePurpose::kTensor},
                  .inputs = {v[0]},
                  .outputs = {v[1]},
                  .asynchronous = true},
                 {model::OpKind::kAdd, model::NoAttributes(), {v[0], v[0]}, {v[2]}},
                 {model::OpKind::kWait, model::NoAttributes(), {v[1]}, {}},
                 {model::OpKind::kAdd, model::NoAttributes(), {v[1], v[2]}, {v[3]}}};
             const model::MemoryPlan plan = PlainPlan(program);
             const auto executable = PrepareRank(backend, program, plan, groups);
             for (int step = 0; step < 4; ++step) {
               TROUPE_CHECK_OK(executable->BeginPart(StepPart::kGradients));
               WriteNumbers(*executable, program, v[0], std::vector<double>(16, 10 * step + rank));
               TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
               TROUPE_CHECK_OK(executable->EndPart());
               EXPECT_EQ(ReadNumbers(*executable, program, v[3]),
                         std::vector<double>(16, 20 * step + 1 + 2 * (10 * step + rank)));
             }
             auto& emulated = static_cast<EmulatedBackend&>(backend);
             EXPECT_TRUE(emulated.fallbacks().empty());
             EXPECT_EQ(emulated.device().graph_launches(), 4);
             EXPECT_EQ(emulated.device().launches(), 0);
           });
}

}  // namespace
}  // namespace troupe::kernels
