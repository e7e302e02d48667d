// Transfers between stages on any backend: two ranks with a pipeline link in each direction.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "collective/loopback/loopback_cluster.h"
#include "kernels/backend/plain_program.h"
#include "kernels/testing/collective_test.h"
#include "kernels/testing/testing.h"
#include "model/program/builder.h"
#include "model/program/program.h"

namespace troupe::kernels {
namespace {

using model::DType;
using Numbers = std::vector<double>;

// A chunk whose output is twice its input.
model::Program Doubling(DType dtype, int64_t count) {
  model::Program program;
  program.chunks.resize(1);
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  const model::ValueType type = {dtype, {{"rows", 1, 1}, {"columns", count, count}}, {}, {}};
  model::ChunkInterface& chunk = program.chunks[0];
  chunk.input = model::AppendValue(program, "input", model::Role::kActivation, 0, type);
  chunk.output = model::AppendValue(program, "output", model::Role::kActivation, 0, type);
  chunk.output_gradient =
      model::AppendValue(program, "gradient", model::Role::kActivation, 0, type);
  program.ops[0][static_cast<int>(model::Piece::kForward)] = {
      {model::OpKind::kAdd, model::NoAttributes(), {chunk.input, chunk.input}, {chunk.output}}};
  return program;
}

TEST_P(CollectiveTest, BoundaryValuesTravelUpAndDown) {
  constexpr int kMicrobatches = 4;
  // The second size exceeds the eager limit of the loopback transport.
  for (const int64_t count : {5, 10000}) {
    LoopbackCluster cluster(2);
    cluster.Run([&](int rank) {
      CollectiveNetwork& network = cluster.network(rank);
      Communicator& up = *network.MakeCommunicator("pipe", Purpose::kPipe, {0, 1}, "up").value();
      Communicator& down =
          *network.MakeCommunicator("pipe", Purpose::kPipe, {1, 0}, "down").value();
      TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
      const std::unique_ptr<Backend> backend = GetParam().make();
      const model::Program program = Doubling(compute(), count);
      const model::MemoryPlan plan = PlainPlan(program);
      const auto executable = backend->Prepare(program, plan, nullptr).value();
      for (Communicator* const link : {&up, &down}) TROUPE_CHECK_OK(executable->AddLink(*link));
      TROUPE_CHECK_OK(executable->Connect());
      const model::ValueId input = program.chunks[0].input, output = program.chunks[0].output;
      const model::ValueId gradient = program.chunks[0].output_gradient;
      const auto step = [&](int m) {
        TROUPE_CHECK_OK(executable->WaitSend(output, 0));
        if (rank == 0) {
          WriteNumbers(*executable, program, input, Numbers(static_cast<size_t>(count), m + 1));
          if (m % 2 == 0) TROUPE_CHECK_OK(executable->PostReceive(gradient, 0, down));
        } else {
          TROUPE_CHECK_OK(executable->Receive(input, 0, up));
        }
        TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
        TROUPE_CHECK_OK(executable->Send(output, 0, rank == 0 ? up : down));
        if (rank == 1) return;
        TROUPE_CHECK_OK(executable->Receive(gradient, 0, down));
        EXPECT_EQ(ReadNumbers(*executable, program, gradient),
                  Numbers(static_cast<size_t>(count), 4 * (m + 1)));
      };
      for (int m = 0; m < kMicrobatches; ++m) step(m);
      TROUPE_CHECK_OK(executable->WaitSend(output, 0));
      TROUPE_CHECK_OK(executable->Finish());
    });
  }
}

}  // namespace
}  // namespace troupe::kernels
