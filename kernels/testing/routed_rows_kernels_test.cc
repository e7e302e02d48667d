// Rows routed between ranks as threads, on any backend: as many as the counts state, which may
// be zero.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "kernels/testing/collective_test.h"
#include "kernels/testing/testing.h"
#include "model/program/builder.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;
using Numbers = std::vector<double>;

constexpr int kRanks = 3;
constexpr int64_t kHidden = 5, kCountsPerRank = 2;
// Buffer size in rows, larger than any number of rows received.
constexpr int64_t kRows = 24;

const model::RoutedRowsAttributes kDispatch = {
    {model::GroupOf(model::Axis::kExpert), model::CollectivePurpose::kDispatch}};

// Rows from rank `from` for the c-th expert of rank `to`; zero for some pairs.
int64_t Count(int from, int to, int64_t c) { return (2 * from + to) % 3 * (c + 1); }
int64_t RowsBetween(int from, int to) { return Count(from, to, 0) + Count(from, to, 1); }

// Appends a row that encodes its source, its destination and its index.
void AppendRow(int from, int to, int64_t row, Numbers* numbers) {
  for (int64_t h = 0; h < kHidden; ++h)
    numbers->push_back(static_cast<double>(64 * from + 16 * to + row));
}

Numbers Padded(Numbers numbers) {
  numbers.resize(kRows * kHidden, 0.0);
  return numbers;
}

// Compares the first `due.size()` numbers; the others are unspecified.
void ExpectBegins(const Numbers& actual, const Numbers& due) {
  ASSERT_LE(due.size(), actual.size());
  EXPECT_EQ(Numbers(actual.begin(), actual.begin() + static_cast<int64_t>(due.size())), due);
}

void RunOnRanks(const MakeBackend& make, const std::function<TestOp(int rank)>& op,
                const std::function<void(int rank, const TestResult&)>& expect) {
  RunRanks(kRanks, make, [&](int rank, Backend& backend, const FindCommunicator& groups) {
    TestOp own = op(rank);
    own.mesh.degrees[model::Axis::kExpert] = kRanks;
    own.mesh.coordinates[model::Axis::kExpert] = rank;
    expect(rank, RunOp(backend, own, {}, groups));
  });
}

TEST_P(CollectiveTest, RowsGoToTheRanksThatTheirCountsName) {
  RunOnRanks(
      GetParam().make,
      [&](int rank) -> TestOp {
        Numbers x, sent, received;
        for (int peer = 0; peer < kRanks; ++peer) {
          for (int64_t c = 0; c < kCountsPerRank; ++c) {
            sent.push_back(static_cast<double>(Count(rank, peer, c)));
            received.push_back(static_cast<double>(Count(peer, rank, c)));
          }
          for (int64_t row = 0; row < RowsBetween(rank, peer); ++row)
            AppendRow(rank, peer, row, &x);
        }
        return {.kind = OpKind::kAllToAll,
                .attributes = kDispatch,
                .inputs = {{compute(), {kRows, kHidden}, Padded(x)},
                           {DType::kInt32, {kRanks * kCountsPerRank}, sent},
                           {DType::kInt32, {kRanks * kCountsPerRank}, received}},
                .outputs = {{compute(), {kRows, kHidden}, {}}}};
      },
      [&](int rank, const TestResult& result) {
        Numbers due;
        for (int peer = 0; peer < kRanks; ++peer) {
          for (int64_t row = 0; row < RowsBetween(peer, rank); ++row)
            AppendRow(peer, rank, row, &due);
        }
        ExpectBegins(result.outputs[0], due);
      });
}

// Counts of all ranks; those of rank 1 are zero.
Numbers CountsOfRanks() { return {2, 1, 0, 0, 1, 4}; }
int64_t RowsOfRank(int rank) {
  return static_cast<int64_t>(CountsOfRanks()[static_cast<size_t>(2 * rank)] +
                              CountsOfRanks()[static_cast<size_t>(2 * rank + 1)]);
}

TEST_P(CollectiveTest, RoutedRowsOfAllRanksAreGathered) {
  RunOnRanks(
      GetParam().make,
      [&](int rank) -> TestOp {
        Numbers x;
        for (int64_t row = 0; row < RowsOfRank(rank); ++row) AppendRow(rank, 0, row, &x);
        return {.kind = OpKind::kGatherRouted,
                .attributes = kDispatch,
                .inputs = {{compute(), {kRows, kHidden}, Padded(x)},
                           {DType::kInt32, {kRanks * kCountsPerRank}, CountsOfRanks()}},
                .outputs = {{compute(), {kRows, kHidden}, {}}}};
      },
      [&](int, const TestResult& result) {
        Numbers due;
        for (int rank = 0; rank < kRanks; ++rank) {
          for (int64_t row = 0; row < RowsOfRank(rank); ++row) AppendRow(rank, 0, row, &due);
        }
        ExpectBegins(result.outputs[0], due);
      });
}

TEST_P(CollectiveTest, RoutedRowsAreSummedForTheRankThatHasThem) {
  const auto number = [](int rank, int64_t i) { return static_cast<double>((3 * i + rank) % 7); };
  RunOnRanks(
      GetParam().make,
      [&](int rank) -> TestOp {
        Numbers x;
        for (int64_t i = 0; i < kRows * kHidden; ++i) x.push_back(number(rank, i));
        return {.kind = OpKind::kScatterRouted,
                .attributes = kDispatch,
                .inputs = {{compute(), {kRows, kHidden}, x},
                           {DType::kInt32, {kRanks * kCountsPerRank}, CountsOfRanks()}},
                .outputs = {{compute(), {kRows, kHidden}, {}}}};
      },
      [&](int rank, const TestResult& result) {
        int64_t first = 0;
        for (int r = 0; r < rank; ++r) first += RowsOfRank(r) * kHidden;
        Numbers due;
        for (int64_t i = first; i < first + RowsOfRank(rank) * kHidden; ++i) {
          due.push_back(number(0, i) + number(1, i) + number(2, i));
        }
        ExpectBegins(result.outputs[0], due);
        EXPECT_EQ(result.inputs[0][0], number(rank, 0)) << "the input is kept";
      });
}

}  // namespace
}  // namespace troupe::kernels
