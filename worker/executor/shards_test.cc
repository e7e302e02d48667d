#include "worker/executor/shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/format/slice.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

v1::JobSpec JobWith(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  for (const std::string& override : overrides) {
    const Status status = ApplyOverride(override, &spec);
    EXPECT_TRUE(status.ok()) << status;
  }
  ApplyDefaults(&spec);
  return spec;
}

int64_t BytesOf(const GlobalSlice& slice) {
  return Elements(slice.box.shape).value() * DtypeBits(slice.dtype).value() / 8;
}

// The snapshot is the copy of what a rank writes, so the plan must count the same bytes.
TEST(ShardsTest, APlanCountsTheSnapshotThatItsRanksNeed) {
  const std::vector<std::string> dense = {"model.preset=llama-124m"};
  const std::vector<std::string> mixture = {"model.preset=llama-124m", "model.pattern=\"(AE)x2\"",
                                            "model.num_experts=8", "model.num_experts_per_tok=2",
                                            "model.moe_intermediate_size=768"};
  const std::string replicate = "parallelism.data_parallel_replicate_degree=";
  const std::string shard = "parallelism.data_parallel_shard_degree=";
  const std::string tensor = "parallelism.tensor_parallel_degree=";
  const std::string pipe = "parallelism.pipeline_parallel_degree=";
  const std::string context = "parallelism.context_parallel_degree=";
  const std::string expert = "parallelism.expert_parallel_degree=";
  const std::string zero = "parallelism.zero_stage=";
  struct Case {
    std::vector<std::string> model;
    std::vector<std::string> layout;
  };
  const std::vector<Case> cases = {
      {dense, {}},
      {dense, {replicate + "2"}},
      {dense, {context + "2"}},
      {dense, {pipe + "2"}},
      {dense, {tensor + "2", replicate + "2"}},
      {dense, {shard + "2", zero + "1"}},
      {dense, {shard + "2", zero + "3", context + "2"}},
      {dense, {shard + "4", zero + "3", "parallelism.reshard_after_forward=\"2\""}},
      {dense, {pipe + "2", shard + "2", zero + "2"}},
      {mixture, {expert + "2"}},
      {mixture, {expert + "2", replicate + "2"}},
  };
  for (const Case& each : cases) {
    std::vector<std::string> overrides = each.model;
    overrides.insert(overrides.end(), each.layout.begin(), each.layout.end());
    overrides.push_back("training.global_batch_size=8");
    SCOPED_TRACE(fmt::format("{}", fmt::join(overrides, " ")));
    const v1::JobSpec spec = JobWith(overrides);
    const auto plan = MakeUnplacedPlan(spec);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto slices = SlicesOfRanks(spec, *plan);
    ASSERT_TRUE(slices.ok()) << slices.status();
    const std::vector<std::vector<OwnedRows>> owners = AssignOwners(*slices);
    const size_t ranks_of_stage = owners.size() / static_cast<size_t>(plan->memory_size());
    // The stages of a tied table divide it so that their loads become equal; the plan halves it. So
    // the sums over stages are compared.
    double planned = 0, written = 0;
    for (int stage = 0; stage < plan->memory_size(); ++stage) {
      int64_t most = 0;
      for (size_t i = 0; i < ranks_of_stage; ++i) {
        const size_t rank = static_cast<size_t>(stage) * ranks_of_stage + i;
        int64_t bytes = 0;
        for (const OwnedRows& owned : owners[rank])
          bytes += BytesOf(RowsOf((*slices)[rank][owned.slice], owned));
        most = std::max(most, bytes);
      }
      planned += static_cast<double>(plan->memory(stage).snapshot_bytes());
      written += static_cast<double>(most);
    }
    EXPECT_NEAR(planned, written, 0.05 * written);
  }
}

}  // namespace
}  // namespace troupe
