#include "checkpoint/write/ownership.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace troupe {
namespace {

GlobalSlice Slice(std::string name, Extents global, Extents offset, Extents shape) {
  return {.name = std::move(name),
          .dtype = "F32",
          .global_shape = std::move(global),
          .box = {std::move(offset), std::move(shape)}};
}

using Ranks = std::vector<std::vector<GlobalSlice>>;

// Counts how often each element of each tensor is written; tensors are flattened through their
// global shape.
std::map<std::string, std::vector<int>> Writes(const Ranks& ranks,
                                               const std::vector<std::vector<OwnedRows>>& owned) {
  std::map<std::string, std::vector<int>> writes;
  for (size_t r = 0; r < ranks.size(); ++r) {
    for (const OwnedRows& rows : owned[r]) {
      const GlobalSlice part = RowsOf(ranks[r][rows.slice], rows);
      EXPECT_TRUE(ValidateSlice(part).ok());
      std::vector<int>& counts = writes[part.name];
      counts.resize(static_cast<size_t>(*Elements(part.global_shape)));
      const int64_t elements = *Elements(part.box.shape);
      for (int64_t i = 0; i < elements; ++i) {
        int64_t left = i, index = 0;
        int64_t stride = 1;
        for (size_t d = part.global_shape.size(); d-- > 0;) {
          index += (part.box.offset[d] + left % part.box.shape[d]) * stride;
          left /= part.box.shape[d];
          stride *= part.global_shape[d];
        }
        ++counts[static_cast<size_t>(index)];
      }
    }
  }
  return writes;
}

std::vector<int64_t> Loads(const Ranks& ranks, const std::vector<std::vector<OwnedRows>>& owned) {
  std::vector<int64_t> loads(ranks.size(), 0);
  for (size_t r = 0; r < ranks.size(); ++r) {
    for (const OwnedRows& rows : owned[r]) {
      loads[r] += *DenseBytes(RowsOf(ranks[r][rows.slice], rows).box.shape, "F32");
    }
  }
  return loads;
}

TEST(AssignOwners, ReplicasShareOneLargeTensorByRows) {
  const GlobalSlice large = Slice("w", {1000, 64}, {0, 0}, {1000, 64});
  const Ranks ranks(4, {large});
  const auto owned = AssignOwners(ranks, 1024);
  for (const auto& rows : owned) {
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].rows, 250);
  }
  EXPECT_EQ(owned[1][0].first_row, 250);
  EXPECT_EQ(ByteOffsetOf(large, owned[1][0]), 250 * 64 * 4);
}

TEST(AssignOwners, DoesNotCutSmallTensors) {
  const Ranks ranks(2, {Slice("a", {8}, {0}, {8}), Slice("b", {8}, {0}, {8})});
  const auto owned = AssignOwners(ranks);
  EXPECT_EQ(owned[0], (std::vector<OwnedRows>{{0, 0, 8}}));
  EXPECT_EQ(owned[1], (std::vector<OwnedRows>{{1, 0, 8}}));
}

TEST(AssignOwners, RanksThatHoldOnlySharedTensorsRelieveTheOthers) {
  // Only rank 0 holds `big`, so rank 1 writes all of the slice that both hold.
  const GlobalSlice shared = Slice("shared", {100, 10}, {0, 0}, {100, 10});
  const Ranks ranks = {{Slice("big", {1000, 10}, {0, 0}, {1000, 10}), shared}, {shared}};
  const auto owned = AssignOwners(ranks, 1);
  EXPECT_EQ(owned[0], (std::vector<OwnedRows>{{0, 0, 1000}}));
  EXPECT_EQ(owned[1], (std::vector<OwnedRows>{{0, 0, 100}}));
}

TEST(AssignOwners, WritesScalarsEmptyTensorsAndUnevenSlicesOnce) {
  const Ranks ranks = {{Slice("scalar", {}, {}, {}), Slice("empty", {4, 0}, {0, 0}, {4, 0}),
                        Slice("one", {1}, {0}, {1})},
                       {Slice("scalar", {}, {}, {}), Slice("empty", {4, 0}, {0, 0}, {4, 0}),
                        Slice("one", {1}, {1}, {0})}};
  const auto owned = AssignOwners(ranks);
  size_t parts = 0;
  for (const auto& rows : owned) parts += rows.size();
  EXPECT_EQ(parts, 3u);
  for (const auto& [name, counts] : Writes(ranks, owned)) {
    for (const int count : counts) EXPECT_EQ(count, 1) << name;
  }
}

TEST(AssignOwners, RandomLayoutsAreWrittenOnceAndInBalance) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t data = 1 + static_cast<int64_t>(random() % 4);
    const int64_t tensor = 1 + static_cast<int64_t>(random() % 4);
    const int64_t pipe = 1 + static_cast<int64_t>(random() % 3);
    Ranks ranks(static_cast<size_t>(data * tensor * pipe));
    for (int64_t p = 0; p < pipe; ++p) {
      for (int64_t d = 0; d < data; ++d) {
        for (int64_t t = 0; t < tensor; ++t) {
          auto& slices = ranks[static_cast<size_t>((p * data + d) * tensor + t)];
          const auto part = [&](int64_t n) {
            return std::pair(n * t / tensor, n * (t + 1) / tensor - n * t / tensor);
          };
          const auto [v, vs] = part(61);
          if (p == 0 || p == pipe - 1) {
            slices.push_back(Slice("embedding", {61, 16}, {v, 0}, {vs, 16}));
          }
          const auto [c, cs] = part(40);
          slices.push_back(Slice(fmt::format("layers.{}.q", p), {40, 16}, {c, 0}, {cs, 16}));
          slices.push_back(Slice(fmt::format("layers.{}.o", p), {16, 40}, {0, c}, {16, cs}));
          slices.push_back(Slice(fmt::format("layers.{}.norm", p), {16}, {0}, {16}));
        }
      }
    }
    const auto owned = AssignOwners(ranks, 64);
    for (const auto& [name, counts] : Writes(ranks, owned)) {
      for (const int count : counts) ASSERT_EQ(count, 1) << name;
    }
    const std::vector<int64_t> loads = Loads(ranks, owned);
    // No rank writes more than an equal share of the largest stage plus a few rows.
    const int64_t stage = (61 * 16 + 40 * 16 * 2 + 16) * 4;
    EXPECT_LE(*std::max_element(loads.begin(), loads.end()), stage / (data * tensor) + 700);
  }
}

}  // namespace
}  // namespace troupe
