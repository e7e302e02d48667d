// Parameters sharded by whole matrices.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/blocks/pattern.h"
#include "model/build.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

constexpr int kMatrixShards = 4, kMatrixExperts = 2;

BuildOptions WholeMatrixOptions(const std::string& pattern, int shard, int expert, int zero_stage,
                                int run) {
  MeshView mesh;
  mesh.degrees[Axis::kDataShard] = kMatrixShards;
  mesh.coordinates[Axis::kDataShard] = shard;
  const bool has_experts = HasExperts(pattern);
  mesh.degrees[Axis::kExpert] = has_experts ? kMatrixExperts : 1;
  mesh.coordinates[Axis::kExpert] = expert;
  ModelConfig model = SmallModel(pattern);
  if (has_experts) {
    model.experts.num_experts = 8;
    model.experts.num_experts_per_tok = 2;
    model.experts.moe_intermediate_size = 12;
  }
  BuildOptions options = StageOptions(model, mesh, 1, 8);
  options.zero_stage = zero_stage;
  options.shard_run = run;
  options.whole_matrices = true;
  return options;
}

bool IsTable(const std::string& name) { return name.find("table") != std::string::npos; }

struct Held {
  int ranks = 0;         // ranks that have rows of it
  int64_t elements = 0;  // sum over all ranks
};

// Computes what the ranks hold of every tensor of `pattern`'s model, and the elements of matrices
// by rank.
void Hold(const std::string& pattern, int zero_stage, int run, std::map<std::string, Held>* tensors,
          std::vector<int64_t>* load) {
  const int experts = HasExperts(pattern) ? kMatrixExperts : 1;
  for (int shard = 0; shard < kMatrixShards; ++shard) {
    for (int expert = 0; expert < experts; ++expert) {
      const Program program =
          BuildProgram(WholeMatrixOptions(pattern, shard, expert, zero_stage, run)).value();
      load->push_back(0);
      for (const ParameterEntry& entry : program.parameters) {
        for (const ParameterPart& part : entry.parts) {
          if (part.global_shape.size() < 2 || IsTable(program.value(entry.value).name)) continue;
          const int64_t elements = part.local_shape[0] * part.local_shape[1];
          if (elements == 0) continue;
          Held& held = (*tensors)[part.name];
          ++held.ranks;
          held.elements += elements;
          load->back() += elements;
          // The matrix is whole, so its gradient is too.
          EXPECT_EQ(part.local_shape, part.global_shape) << part.name;
          EXPECT_EQ(program.value(entry.reduced_gradient).dims, program.value(entry.value).dims);
        }
      }
    }
  }
}

TEST(WholeMatrices, EachIsOnOneRankAndRanksHaveAboutAsMuch) {
  for (const int zero_stage : {1, 2, 3}) {
    for (const int run : {0, 2}) {
      if (run != 0 && zero_stage != 3) continue;
      std::map<std::string, Held> tensors;
      std::vector<int64_t> load;
      Hold("ADADADAD", zero_stage, run, &tensors, &load);
      int64_t sum = 0, largest = 0;
      for (const auto& [name, held] : tensors) {
        EXPECT_EQ(held.ranks, 1) << name;
        sum += held.elements;
      }
      EXPECT_EQ(tensors.size(), 4u * (4 + 3));  // q, k, v, o; gate, up, down
      const Program whole = BuildProgram(StageOptions(SmallModel("ADADADAD"), {}, 1, 8)).value();
      for (const ParameterEntry& entry : whole.parameters) {
        if (!IsTable(whole.value(entry.value).name))
          largest = std::max(largest, whole.value(entry.value).elements());
      }
      for (const int64_t elements : load) {
        EXPECT_LE(elements, sum / kMatrixShards + largest)
            << "zero " << zero_stage << " run " << run;
        EXPECT_GT(elements, 0);
      }
    }
  }
}

TEST(WholeMatrices, OfABankExpertsStayWholeOnSeveralRanks) {
  std::map<std::string, Held> tensors;
  std::vector<int64_t> load;
  Hold("AEAE", 3, 0, &tensors, &load);
  int experts = 0;
  for (const auto& [name, held] : tensors) {
    EXPECT_EQ(held.ranks, 1) << name;
    experts += name.find(".experts.") != std::string::npos;
  }
  EXPECT_EQ(experts, 2 * 8 * 3);
  EXPECT_GT(*std::min_element(load.begin(), load.end()), 0);
}

TEST(WholeMatrices, TablesAndNormsAreCutAsEver) {
  const Program program = BuildProgram(WholeMatrixOptions("AD", 1, 0, 3, 0)).value();
  for (const ParameterEntry& entry : program.parameters) {
    const Value& value = program.value(entry.value);
    if (value.dims.size() == 2 && !IsTable(value.name)) continue;
    EXPECT_EQ(value.dims[0].local,
              BalancedRange(program.value(entry.unsharded).dims[0].local, kMatrixShards, 1).size())
        << value.name;
  }
}

TEST(RowCut, BlocksAreConsecutiveAndCoverAllRows) {
  for (const RowCut& cut :
       {RowCut{}, RowCut{.unit = 3}, RowCut{.owner = 0}, RowCut{.owner = 2}, RowCut{.owner = 3}}) {
    int64_t end = 0;
    for (int rank = 0; rank < 4; ++rank) {
      const Range rows = cut.Of(12, 4, rank);
      EXPECT_EQ(rows.begin, end);
      EXPECT_EQ(rows.size() % cut.unit, 0);
      end = rows.end;
      if (cut.owner >= 0) {
        EXPECT_EQ(rows.size(), rank == cut.owner ? 12 : 0);
      }
    }
    EXPECT_EQ(end, 12);
  }
}

}  // namespace
}  // namespace troupe::model
