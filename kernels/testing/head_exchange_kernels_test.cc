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

// One rank of three that exchanges its rows against heads, and back. Rows of three samples of 12
// tokens; columns of q (6 heads), k and v (3 heads each).
struct HeadExchange {
  static constexpr int kThree = 3;
  static constexpr int64_t kSamples = 3, kTokens = 12, kHead = 5, kWidth = (6 + 3 + 3) * kHead;
  static constexpr int64_t kAllRows = kSamples * kTokens;

  model::Program program;
  model::ValueId rows = model::kNoValue;        // before
  model::ValueId heads = model::kNoValue;       // in between
  model::ValueId rows_again = model::kNoValue;  // after
};

HeadExchange MakeHeadExchange(model::DType dtype, int rank) {
  HeadExchange made;
  model::Program& program = made.program;
  program.mesh.degrees[model::Axis::kContext] = HeadExchange::kThree;
  program.mesh.coordinates[model::Axis::kContext] = rank;
  model::ValueType type = {
      dtype,
      {{"rows", HeadExchange::kAllRows, HeadExchange::kAllRows / HeadExchange::kThree},
       {"qkv", HeadExchange::kWidth, HeadExchange::kWidth}},
      {},
      {{"q", 30, 30}, {"k", 15, 15}, {"v", 15, 15}}};
  type.placement[model::Axis::kContext] = model::Shard(0, model::ShardHow::kHeadTail);
  const model::ExchangeHeadsAttributes there = {
      {model::GroupOf(model::Axis::kContext), model::CollectivePurpose::kContext},
      HeadExchange::kSamples,
      HeadExchange::kHead,
      /*to_rows=*/false};
  model::ExchangeHeadsAttributes back = there;
  back.to_rows = true;
  const auto append = [&program](const char* name, const model::ValueType& made_type) {
    return model::AppendValue(program, name, model::Role::kActivation, 0, made_type);
  };
  made.rows = append("x", type);
  const auto heads =
      model::InferTypes(program, model::OpKind::kExchangeHeads, there, {&made.rows, 1});
  TROUPE_CHECK_OK(heads.status());
  made.heads = append("y", (*heads)[0]);
  made.rows_again = append("z", type);
  program.chunks.resize(1);
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  program.ops[0][static_cast<int>(model::Piece::kForward)] = {
      {model::OpKind::kExchangeHeads, there, {made.rows}, {made.heads}},
      {model::OpKind::kExchangeHeads, back, {made.heads}, {made.rows_again}}};
  return made;
}

// Each element encodes its global position, so that a misplaced element is detected.
TEST_P(CollectiveTest, RowsExchangedAgainstHeadsLieWhereTheyBelongAndComeBack) {
  constexpr int kThree = HeadExchange::kThree;
  constexpr int64_t kSamples = HeadExchange::kSamples, kTokens = HeadExchange::kTokens,
                    kHead = HeadExchange::kHead, kWidth = HeadExchange::kWidth;
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
  RunRanks(kThree, GetParam().make,
           [&](int rank, Backend& backend, const FindCommunicator& groups) {
             const HeadExchange made = MakeHeadExchange(compute(), rank);
             const model::MemoryPlan plan = PlainPlan(made.program);
             const std::unique_ptr<Executable> executable =
                 PrepareRank(backend, made.program, plan, groups);
             std::vector<double> given, due;
             for (const int64_t row : tokens_of(rank)) {
               for (int64_t column = 0; column < kWidth; ++column)
                 given.push_back(place(row, column));
             }
             for (int64_t row = 0; row < HeadExchange::kAllRows; ++row) {
               for (const int64_t column : columns_of(rank)) due.push_back(place(row, column));
             }
             WriteNumbers(*executable, made.program, made.rows, given);
             TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
             EXPECT_EQ(ReadNumbers(*executable, made.program, made.heads), due);
             EXPECT_EQ(ReadNumbers(*executable, made.program, made.rows_again), given);
           });
}

}  // namespace
}  // namespace troupe::kernels
