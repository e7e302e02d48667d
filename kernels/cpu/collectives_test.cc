// Programs of several ranks over loopback, on the CPU: collectives use the right groups, and errors
// name the rank that failed.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "collective/loopback/loopback_cluster.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/collective_test.h"
#include "kernels/testing/program_run.h"
#include "kernels/testing/testing.h"
#include "model/program/builder.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

KernelSetting Cpu(model::DType compute) {
  return {std::string("cpu_") + model::Name(compute), compute, [] {
            return CpuBackend::Make({1, std::nullopt}).value();
          }};
}
KernelSetting Reference(model::DType compute) {
  return {std::string("reference_") + model::Name(compute), compute,
          [] { return std::make_unique<ReferenceBackend>(); }};
}
INSTANTIATE_TEST_SUITE_P(Cpu, CollectiveTest,
                         testing::Values(Cpu(model::DType::kFloat32), Cpu(model::DType::kBFloat16),
                                         Reference(model::DType::kFloat32),
                                         Reference(model::DType::kBFloat16)),
                         NameOfSetting);

constexpr int kTwoRanks = 2;

model::BuildOptions TensorOptions(model::DType compute, int degree, int rank) {
  model::MeshView mesh;
  mesh.degrees[model::Axis::kTensor] = degree;
  mesh.coordinates[model::Axis::kTensor] = rank;
  model::BuildOptions options = model::StageOptions(model::SmallModel("ADAD"), mesh, 3, 11);
  options.compute_dtype = compute;
  return options;
}

// The tensor group of one rank, and its group of all ranks; groups of other axes have one rank.
FindCommunicator Groups(LoopbackCluster& cluster, int rank) {
  CollectiveNetwork& network = cluster.network(rank);
  Communicator* tensor =
      network.MakeCommunicator("tensor", Purpose::kTensor, {0, 1}, "tensor/0").value();
  Communicator* all = network.MakeCommunicator("all", Purpose::kControl, {0, 1}, "all").value();
  TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
  return [tensor, all](const model::CollectiveGroup& group) -> Communicator* {
    if (group.kind == model::CollectiveGroup::Kind::kAll) return all;
    return group == model::GroupOf(model::Axis::kTensor) ? tensor : nullptr;
  };
}

TEST(CpuCollectives, TwoTensorRanksMakeTheLossAndTheNormOfOne) {
  for (const model::DType compute : {model::DType::kFloat32, model::DType::kBFloat16}) {
    const double tolerance = compute == model::DType::kFloat32 ? 1e-5 : 0.02;
    auto single_backend = CpuBackend::Make({1, std::nullopt}).value();
    ProgramRun single(*single_backend, TensorOptions(compute, 1, 0), 5);
    const std::vector<double> loss = single.Train(single.MakeMicrobatch(9), true);
    const std::vector<double> control = single.Update(1e-2);

    LoopbackCluster cluster(kTwoRanks);
    std::vector<double> losses[kTwoRanks], controls[kTwoRanks];
    cluster.Run([&](int rank) {
      auto backend = CpuBackend::Make({1, std::nullopt}).value();
      ProgramRun run(*backend, TensorOptions(compute, kTwoRanks, rank), 5, false,
                     Groups(cluster, rank));
      losses[rank] = run.Train(run.MakeMicrobatch(9), true);
      controls[rank] = run.Update(1e-2);
    });
    EXPECT_EQ(losses[0], losses[1]);
    EXPECT_EQ(controls[0], controls[1]);
    EXPECT_LE(RelativeError(losses[0], loss), tolerance);
    EXPECT_NEAR(controls[0][model::kLaneSumOfSquares], control[model::kLaneSumOfSquares],
                2 * tolerance * control[model::kLaneSumOfSquares]);
    EXPECT_EQ(controls[0][model::kLaneWeight], control[model::kLaneWeight]);
  }
}

TEST(CpuCollectives, AFailedCollectiveNamesItsOperation) {
  LoopbackCluster cluster(kTwoRanks);
  Status statuses[kTwoRanks];
  cluster.Run([&](int rank) {
    auto backend = CpuBackend::Make({1, std::nullopt}).value();
    ProgramRun run(*backend, TensorOptions(model::DType::kFloat32, kTwoRanks, rank), 5, false,
                   Groups(cluster, rank));
    run.MakeMicrobatch(1);
    cluster.network(rank).Abort(Cancelled("the test aborts"));
    statuses[rank] = run.executable().Run(0, model::Piece::kForward, 0, {});
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kCancelled);
    EXPECT_NE(Message(status).find("all_reduce"), std::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace troupe::kernels
