// Block E over the expert axis on the float64 reference, with ranks as threads over loopback:
// tokens travel to their experts and back, and every result equals that of one rank with all
// samples.
#include <gtest/gtest.h>

#include <vector>

#include "base/check.h"
#include "collective/loopback/loopback_cluster.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/program_run.h"
#include "kernels/testing/testing.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

constexpr int64_t kAxisTokens = 7;

model::BuildOptions Options(const model::ModelConfig& config, int degree, int rank,
                            int64_t samples) {
  model::MeshView mesh;
  mesh.degrees[model::Axis::kExpert] = degree;
  mesh.coordinates[model::Axis::kExpert] = rank;
  return model::StageOptions(config, mesh, samples, kAxisTokens);
}

FindCommunicator Groups(LoopbackCluster& cluster, int rank, int ranks) {
  CollectiveNetwork& network = cluster.network(rank);
  std::vector<int> members(ranks);
  for (int r = 0; r < ranks; ++r) members[r] = r;
  const auto make = [&](const char* name, Purpose purpose) {
    return network.MakeCommunicator(name, purpose, members, name).value();
  };
  Communicator* expert = make("expert", Purpose::kDispatch);
  Communicator* data = make("data", Purpose::kGradient);
  Communicator* all = make("all", Purpose::kControl);
  TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
  return [=](const model::CollectiveGroup& group) -> Communicator* {
    if (group.kind == model::CollectiveGroup::Kind::kAll) return all;
    if (group == model::GroupOf(model::Axis::kExpert)) return expert;
    return group.axes & model::GroupOf(model::Axis::kExpert).axes ? data : nullptr;
  };
}

std::vector<double> PartOf(const std::vector<double>& whole, int part, int parts) {
  const auto size = static_cast<std::ptrdiff_t>(whole.size() / parts);
  return {whole.begin() + part * size, whole.begin() + (part + 1) * size};
}

void ExpectOneRanksNumbers(const model::ModelConfig& config, int ranks) {
  ReferenceBackend backend;
  ProgramRun single(backend, Options(config, 1, 0, ranks), 5);
  const Microbatch whole = single.MakeMicrobatch(9);
  single.Train(whole, true);
  const std::vector<double> expected = single.Update(1e-2);

  LoopbackCluster cluster(ranks);
  std::vector<std::vector<double>> controls(ranks), totals(ranks);
  std::vector<std::vector<std::vector<double>>> gradients(ranks);
  cluster.Run([&](int rank) {
    ReferenceBackend own;
    ProgramRun run(own, Options(config, ranks, rank, 1), 5, false, Groups(cluster, rank, ranks));
    run.Train({PartOf(whole.tokens, rank, ranks), PartOf(whole.positions, rank, ranks),
               PartOf(whole.targets, rank, ranks), PartOf(whole.weights, rank, ranks)},
              true);
    totals[rank] = run.Read(run.program().router_totals[0]);
    controls[rank] = run.Update(1e-2);
    for (const model::ParameterEntry& entry : run.program().parameters) {
      gradients[rank].push_back(run.Read(entry.reduced_gradient));
    }
  });

  for (int rank = 0; rank < ranks; ++rank) {
    for (const int lane : {model::kLaneSumOfSquares, model::kLaneLoss, model::kLaneWeight}) {
      EXPECT_NEAR(controls[rank][lane], expected[lane], 1e-10 * expected[lane]) << "lane " << lane;
    }
  }
  const std::vector<double> single_totals = single.Read(single.program().router_totals[0]);
  for (size_t lane = 0; lane < single_totals.size(); ++lane) {
    double sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += totals[rank][lane];
    EXPECT_NEAR(sum, single_totals[lane], 1e-10 * (1 + single_totals[lane])) << "lane " << lane;
  }
  for (size_t p = 0; p < single.program().parameters.size(); ++p) {
    const model::ParameterEntry& entry = single.program().parameters[p];
    const model::Value& value = single.program().value(entry.value);
    const std::vector<double> gradient = single.Read(entry.reduced_gradient);
    for (int rank = 0; rank < ranks; ++rank) {
      const bool is_bank = value.placement[model::Axis::kExpert] == model::Shard(0);
      EXPECT_LE(
          RelativeError(gradients[rank][p], is_bank ? PartOf(gradient, rank, ranks) : gradient),
          1e-6)
          << value.name << " on rank " << rank;
    }
  }
}

TEST(ExpertAxis, GivesTheNumbersOfOneRank) {
  for (const int ranks : {2, 4}) ExpectOneRanksNumbers(model::SmallMixture("AEAE"), ranks);
}

TEST(ExpertAxis, GivesThemAlsoWhereMostExpertsGetNoToken) {
  model::ModelConfig config = model::SmallMixture("AE");
  config.experts.num_experts = 64;
  config.experts.num_experts_per_tok = 1;
  config.experts.norm_topk_prob = false;
  ExpectOneRanksNumbers(config, 4);
}

TEST(ExpertAxis, GivesThemAlsoWithSigmoidScoresAndMoreChoicesThanExpertsOfARank) {
  model::ModelConfig config = model::SmallMixture("AE");
  config.experts.num_experts_per_tok = 3;
  config.experts.score = model::RouterScore::kSigmoid;
  config.experts.num_shared_experts = 0;
  ExpectOneRanksNumbers(config, 4);
}

}  // namespace
}  // namespace troupe::kernels
