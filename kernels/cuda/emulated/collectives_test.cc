// Ranks as threads, each with an emulated device; the host executes the collectives.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "kernels/backend/plain_program.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "kernels/testing/collective_test.h"
#include "kernels/testing/testing.h"
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

// Calls body(device, collectives, group) in one thread per rank, for two ranks.
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

TEST(HostCollectives, ActivationsAreSentOverALinkWhenTheStreamReachesThem) {
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

// The first rank's streams reach its receive first; the other rank sends after its own receive.
TEST(HostCollectives, AStreamThatWaitsForAnotherRankBlocksNoOther) {
  LoopbackCluster cluster(2);
  cluster.Run([&](int rank) {
    CollectiveNetwork& network = cluster.network(rank);
    Communicator* const up =
        network.MakeCommunicator("pipe", Purpose::kPipe, {0, 1}, "pipe/0>1").value();
    Communicator* const down =
        network.MakeCommunicator("pipe", Purpose::kPipe, {1, 0}, "pipe/1>0").value();
    TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
    EmulatedDevice device;
    HostCollectives above(device, *up), below(device, *down);
    const cuda::Stream received = device.MakeStream().value(), sent = device.MakeStream().value();
    const cuda::DeviceMemory memory = device.Allocate(2).value();
    std::copy_n(rank == 0 ? "a-" : "-b", 2, memory.get());
    HostCollectives& in = rank == 0 ? below : above;
    HostCollectives& out = rank == 0 ? above : below;
    TROUPE_CHECK_OK(in.Receive(memory.get() + 1 - rank, 1, 0, Purpose::kPipe,
                               static_cast<DeviceStream>(received)));
    const cuda::Event event = device.MakeEvent().value();
    TROUPE_CHECK_OK(device.Record(event, received));
    if (rank == 1) TROUPE_CHECK_OK(device.WaitFor(event, sent));
    TROUPE_CHECK_OK(
        out.Send(memory.get() + rank, 1, 1, Purpose::kPipe, static_cast<DeviceStream>(sent)));
    const cuda::Event over = device.MakeEvent().value();
    TROUPE_CHECK_OK(device.Record(over, sent));
    TROUPE_CHECK_OK(device.Finish(event));
    TROUPE_CHECK_OK(device.Finish(over));
    EXPECT_EQ(std::string(memory.get(), 2), "ab");
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

// A part of a step with a reduction that overlaps kernels is one graph from its second run on.
TEST(HostCollectives, AGraphHoldsTheCollectivesOfAStep) {
  RunRanks(
      2, [] { return std::make_unique<EmulatedBackend>(); },
      [](int rank, Backend& backend, const FindCommunicator& groups) {
        model::Program program;
        program.chunks.resize(1);
        program.ops.resize(1);
        program.ops[0].resize(model::kNumPieces);
        const model::ValueType type = {
            DType::kFloat32, {{"rows", 4, 4}, {"columns", 4, 4}}, {}, {}};
        std::vector<model::ValueId> v;
        for (const char* name : {"x", "sum", "twice", "y"}) {
          v.push_back(model::AppendValue(program, name, model::Role::kActivation, 0, type));
        }
        program.ops[0][static_cast<int>(model::Piece::kForward)] = {
            {.kind = model::OpKind::kAllReduce,
             .attributes = model::AllReduceAttributes{{model::GroupOf(model::Axis::kTensor),
                                                       model::CollectivePurpose::kTensor}},
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

// Only the device knows the number of rows: the host waits for the counts, so there is no graph,
// which is listed as a fall-back.
TEST(HostCollectives, APartThatExchangesRowsByCountsIsNoGraph) {
  RunRanks(
      2, [] { return std::make_unique<EmulatedBackend>(); },
      [](int, Backend& backend, const FindCommunicator& groups) {
        model::Program program;
        program.mesh.degrees[model::Axis::kExpert] = 2;
        program.chunks.resize(1);
        program.ops.resize(1);
        program.ops[0].resize(model::kNumPieces);
        const auto append = [&](const char* name, DType dtype, std::vector<model::Dim> dims) {
          return model::AppendValue(program, name, model::Role::kActivation, 0,
                                    {dtype, std::move(dims), {}, {}});
        };
        const model::ValueId x = append("x", DType::kFloat32, {{"rows", 4, 4}, {"columns", 2, 2}});
        const model::ValueId counts = append("counts", DType::kInt32, {{"counts", 2, 2}});
        const model::ValueId y = append("y", DType::kFloat32, {{"rows", 4, 4}, {"columns", 2, 2}});
        program.ops[0][static_cast<int>(model::Piece::kForward)] = {
            {model::OpKind::kAllToAll,
             model::RoutedRowsAttributes{
                 {model::GroupOf(model::Axis::kExpert), model::CollectivePurpose::kDispatch}},
             {x, counts, counts},
             {y}}};
        const model::MemoryPlan plan = PlainPlan(program);
        const auto executable = PrepareRank(backend, program, plan, groups);
        for (int step = 1; step < 4; ++step) {
          TROUPE_CHECK_OK(executable->BeginPart(StepPart::kGradients));
          WriteNumbers(*executable, program, x, std::vector<double>(8, step));
          WriteNumbers(*executable, program, counts, {1, 1});
          TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
          TROUPE_CHECK_OK(executable->EndPart());
          const std::vector<double> rows = ReadNumbers(*executable, program, y);
          EXPECT_EQ(std::vector<double>(rows.begin(), rows.begin() + 4),
                    std::vector<double>(4, step));
        }
        auto& emulated = static_cast<EmulatedBackend&>(backend);
        EXPECT_EQ(emulated.device().graph_launches(), 0);
        ASSERT_EQ(emulated.fallbacks().size(), 1u);
        EXPECT_NE(
            emulated.fallbacks()[0].find("all_to_all y: the host waits for counts of the device"),
            std::string::npos)
            << emulated.fallbacks()[0];
      });
}

// Sums whose terms are sent as bfloat16 must equal those of the host bit by bit.
TEST(HostCollectives, PackedSumsHaveTheBitsOfTheHosts) {
  constexpr int kThree = 3;
  constexpr int64_t kCount = 1000;
  TestRandom random;
  std::vector<std::vector<double>> numbers;
  for (int rank = 0; rank < kThree; ++rank) numbers.push_back(random.Normals(kCount));
  RunRanks(
      kThree, [] { return std::make_unique<EmulatedBackend>(); },
      [&](int rank, Backend& backend, const FindCommunicator& groups) {
        const auto& own = numbers[static_cast<size_t>(rank)];
        const model::Range block = model::BalancedRange(kCount, kThree, rank);
        const model::CollectiveAttributes over = {model::GroupOf(model::Axis::kTensor),
                                                  model::CollectivePurpose::kTensor};
        model::AllReduceAttributes reduce = {over};
        model::ReduceScatterAttributes scatter = {over};
        reduce.wire = scatter.wire = DType::kBFloat16;
        model::MeshView mesh;
        mesh.degrees[model::Axis::kTensor] = kThree;
        mesh.coordinates[model::Axis::kTensor] = rank;
        const auto device = [&](model::OpKind kind, const model::Attributes& attributes,
                                int64_t count) {
          return RunOp(backend,
                       {.kind = kind,
                        .attributes = attributes,
                        .inputs = {{DType::kFloat32, {kCount}, own}},
                        .outputs = {{DType::kFloat32, {count}, {}}},
                        .mesh = mesh},
                       {}, groups)
              .outputs[0];
        };
        Communicator& group = *groups(over.group);
        std::vector<float> sum(own.begin(), own.end()), data = sum;
        TROUPE_CHECK_OK(group.AllReduce(sum.data(), kCount, SumFloat32AsBfloat16()));
        EXPECT_EQ(device(model::OpKind::kAllReduce, reduce, kCount),
                  std::vector<double>(sum.begin(), sum.end()));
        std::vector<size_t> counts;
        for (int r = 0; r < kThree; ++r) {
          counts.push_back(static_cast<size_t>(model::BalancedRange(kCount, kThree, r).size()));
        }
        std::vector<float> scattered(static_cast<size_t>(block.size()));
        TROUPE_CHECK_OK(
            group.ReduceScatter(data.data(), scattered.data(), counts, SumFloat32AsBfloat16()));
        EXPECT_EQ(device(model::OpKind::kReduceScatter, scatter, block.size()),
                  std::vector<double>(scattered.begin(), scattered.end()));
      });
}

}  // namespace
}  // namespace troupe::kernels
