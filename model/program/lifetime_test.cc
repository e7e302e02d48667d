#include "model/program/lifetime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>

namespace troupe::model {
namespace {

// The definition: compares each lifetime with every one before it.
int64_t PackOneByOne(std::vector<Lifetime>* lifetimes) {
  std::vector<Lifetime*> order;
  for (Lifetime& lifetime : *lifetimes) order.push_back(&lifetime);
  std::stable_sort(order.begin(), order.end(),
                   [](const Lifetime* a, const Lifetime* b) { return a->bytes > b->bytes; });
  std::vector<Lifetime*> placed;  // by offset
  int64_t total = 0;
  for (Lifetime* lifetime : order) {
    int64_t offset = 0;
    for (const Lifetime* other : placed) {
      if (!lifetime->Overlaps(*other)) continue;
      if (offset + lifetime->bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    lifetime->offset = offset;
    total = std::max(total, offset + lifetime->bytes);
    placed.insert(std::upper_bound(
                      placed.begin(), placed.end(), lifetime,
                      [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; }),
                  lifetime);
  }
  return total;
}

int64_t PackAll(std::vector<Lifetime>* lifetimes) {
  std::vector<Lifetime*> pointers;
  for (Lifetime& lifetime : *lifetimes) pointers.push_back(&lifetime);
  return Pack(std::move(pointers));
}

TEST(LifetimeTest, IsPlacedAtTheLowestFreeOffsetAfterTheLargerOnes) {
  std::mt19937 random(std::random_device{}());
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int round = 0; round < 2000; ++round) {
    const int operations = draw(1, 60), sizes = draw(1, 20), longest = draw(0, 60);
    // In some rounds all lifetimes include the operation in the middle.
    const bool crossing = draw(0, 3) == 0;
    std::vector<Lifetime> lifetimes(static_cast<size_t>(draw(0, 80)));
    for (Lifetime& lifetime : lifetimes) {
      lifetime.bytes = 64 * draw(0, sizes);
      lifetime.begin = draw(0, crossing ? operations / 2 : operations);
      lifetime.end =
          crossing ? draw(operations / 2, operations) : lifetime.begin + draw(0, longest);
    }
    std::vector<Lifetime> expected = lifetimes;
    ASSERT_EQ(PackAll(&lifetimes), PackOneByOne(&expected));
    for (size_t i = 0; i < lifetimes.size(); ++i)
      ASSERT_EQ(lifetimes[i].offset, expected[i].offset) << "round " << round;
  }
}

// The temporaries of many equal blocks, and the values that the blocks save. Compared one by one
// they take minutes.
TEST(LifetimeTest, HundredsOfThousandsArePlacedInSecondsOfTheProcessor) {
  constexpr int kBlocks = 1 << 14;
  constexpr int kPerBlock = 16;
  std::vector<Lifetime> temporary, saved;
  for (int block = 0; block < kBlocks; ++block) {
    for (int i = 0; i < kPerBlock; ++i) {
      const int begin = block * kPerBlock + i;
      temporary.push_back(
          {.bytes = 64 * (1 + i * 7 % 5), .begin = begin, .end = begin + 1 + i % 4});
      saved.push_back(
          {.bytes = 64 * (1 + i % 3), .begin = begin, .end = 2 * kBlocks * kPerBlock - begin});
    }
  }
  const std::clock_t begin = std::clock();
  const int64_t temporary_bytes = PackAll(&temporary);
  const int64_t saved_bytes = PackAll(&saved);
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC);
  EXPECT_LT(temporary_bytes, 64 * 5 * 5);
  int64_t all = 0;
  for (const Lifetime& lifetime : saved) all += lifetime.bytes;
  EXPECT_EQ(saved_bytes, all);
}

}  // namespace
}  // namespace troupe::model
