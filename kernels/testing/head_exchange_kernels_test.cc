// kExchangeHeads of any backend with ranks as threads.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/backend/plain_program.h"
#include "kernels/testing/collective_test.h"
#include "kernels/testing/testing.h"
#include "model/program/builder.h"

namespace troupe::kernels {
namespace {

// Rows of three samples of 12 tokens over three ranks; columns of q (6 heads), k and v (3 heads
// each). Each element encodes its global position, so that a misplaced element is detected.
TEST_P(CollectiveTest, RowsExchangedAgainstHeadsLieWhereTheyBelongAndComeBack) {
  constexpr int kThree = 3;
  constexpr int64_t kSamples = 3, kTokens = 12, kHead = 5, kWidth = (6 + 3 + 3) * kHead;
  const auto place = [](int64_t row, int64_t column) {
    return static_cast<double>((row * kWidth + column) % 251);  // exact in bfloat16
  };
  const auto tokens_of = [](int rank) {
    std::vector<int64_t> rows;
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      for (const int chunk : {rank, 5 - rank}) {
        for (const int t : {0, 1}) rows.push_back(sample * kTokens + chunk * 2 + t);
      }
    }
    return rows;
  };
  const auto columns_of = [](int rank) {
    std::vector<int64_t> columns;
    for (const auto& [begin, heads] : {std::pair(0, 2), std::pair(6, 1), std::pair(9, 1)}) {
      for (int64_t c = 0; c < heads * kHead; ++c)
        columns.push_back((begin + rank * heads) * kHead + c);
    }
    return columns;
  };
  RunRanks(
      kThree, GetParam().make, [&](int rank, Backend& backend, const FindCommunicator& groups) {
        model::Program program;
        program.mesh.degrees[model::Axis::kContext] = kThree;
        program.mesh.coordinates[model::Axis::kContext] = rank;
        const int64_t all_rows = kSamples * kTokens;
        model::ValueType type = {compute(),
                                 {{"rows", all_rows, all_rows / kThree}, {"qkv", kWidth, kWidth}},
                                 {},
                                 {{"q", 30, 30}, {"k", 15, 15}, {"v", 15, 15}}};
        type.placement[model::Axis::kContext] = model::Shard(0, model::ShardHow::kHeadTail);
        const model::ExchangeHeadsAttributes there = {
            {model::GroupOf(model::Axis::kContext), model::CollectivePurpose::kContext},
            kSamples,
            kHead,
            /*to_rows=*/false};
        model::ExchangeHeadsAttributes back = there;
        back.to_rows = true;
        const auto append = [&program](const char* name, const model::ValueType& made) {
          return model::AppendValue(program, name, model::Role::kActivation, 0, made);
        };
        const model::ValueId x = append("x", type);
        const auto heads =
            model::InferTypes(program, model::OpKind::kExchangeHeads, there, {&x, 1});
        TROUPE_CHECK_OK(heads.status());
        const model::ValueId y = append("y", (*heads)[0]);
        const model::ValueId z = append("z", type);
        program.chunks.resize(1);
        program.ops.resize(1);
        program.ops[0].resize(model::kNumPieces);
        program.ops[0][static_cast<int>(model::Piece::kForward)] = {
            {model::OpKind::kExchangeHeads, there, {x}, {y}},
            {model::OpKind::kExchangeHeads, back, {y}, {z}}};
        const model::MemoryPlan plan = PlainPlan(program);
        const std::unique_ptr<Executable> executable = PrepareRank(backend, program, plan, groups);
        std::vector<double> given, due;
        for (const int64_t row : tokens_of(rank)) {
          for (int64_t column = 0; column < kWidth; ++column) given.push_back(place(row, column));
        }
        for (int64_t row = 0; row < all_rows; ++row) {
          for (const int64_t column : columns_of(rank)) due.push_back(place(row, column));
        }
        WriteNumbers(*executable, program, x, given);
        TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
        EXPECT_EQ(ReadNumbers(*executable, program, y), due);
        EXPECT_EQ(ReadNumbers(*executable, program, z), given);
      });
}

}  // namespace
}  // namespace troupe::kernels
