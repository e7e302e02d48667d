// Tests the matmul of a warp, and copies to shared memory, on the emulator.
#include "kernels/cuda/device_code/mma.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/cuda/device_code/async_copy.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/testing/testing.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kMmaRows = 32, kMmaColumns = 48;

// Small integers, whose products and sums are exact.
struct Tile {
  explicit Tile(TestRandom& random) {
    for (auto& row : of) {
      for (BFloat16& number : row) number = ToBFloat16(static_cast<float>(random.Integer(-8, 8)));
    }
  }
  const BFloat16* At(int row, int column) const { return &of[row][column]; }
  float operator()(int row, int column) const { return ToFloat(of[row][column]); }
  alignas(16) BFloat16 of[kMmaRows][kMmaColumns];
};

using Result = std::vector<float>;  // [16][8]

template <typename Element>
Result Plain(const Element& element) {
  Result result;
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = static_cast<float>(i - j);
      for (int k = 0; k < 16; ++k) sum += element(i, j, k);
      result.push_back(sum);
    }
  }
  return result;
}

// The result of a warp's multiply-add of fragments, with C[i][j] = i - j before.
template <typename Load>
Result OfWarp(const Load& load) {
  Result result(16 * 8, NAN);
  emulator::RunBlocks({.blocks = {1, 1}, .threads = 64}, [&] {
    const int g = Lane() / 4, t = Lane() % 4;
    const auto& [a, b] = load();
    FragmentC c;
    for (int r = 0; r < 4; ++r) {
      c.of[r] = static_cast<float>(g + r / 2 * 8 - (2 * t + r % 2));
    }
    MultiplyAdd(c, a, b);
    if (Warp() != 1) return;
    for (int r = 0; r < 4; ++r) result[(g + r / 2 * 8) * 8 + 2 * t + r % 2] = c.of[r];
  });
  return result;
}

struct Operands {
  FragmentA a;
  FragmentB b;
};

TEST(Mma, FragmentsFromEveryLoadGiveThePlainResult) {
  TestRandom random;
  const Tile left(random), right(random);
  for (const int row : {0, 8, 16}) {
    for (const int column : {0, 16, 24, 32}) {
      for (const int half : {0, 8}) {  // selects the first or the second of two B's
        const auto of = [half](const FragmentB2& two) {
          return half == 0 ? two.first : two.second;
        };
        EXPECT_EQ(OfWarp([&] {
                    return Operands{LoadA(left, row, column), of(LoadB(right, row, column))};
                  }),
                  Plain([&](int i, int j, int k) {
                    return left(row + i, column + k) * right(row + k, column + half + j);
                  }));
        EXPECT_EQ(OfWarp([&] {
                    return Operands{LoadATransposed(left, row, column),
                                    of(LoadBTransposed(right, row, column))};
                  }),
                  Plain([&](int i, int j, int k) {
                    return left(row + k, column + i) * right(row + half + j, column + k);
                  }));
      }
    }
  }
}

TEST(Mma, AResultIsAnOperandOfTheNext) {
  TestRandom random;
  const Tile one(random), two(random), three(random);
  const Result first = Plain([&](int i, int j, int k) { return one(i, k) * two(k, j); });
  const Result second = Plain([&](int i, int j, int k) { return one(i, k) * two(k, 8 + j); });
  const Result chained = OfWarp([&] {
    const int g = Lane() / 4, t = Lane() % 4;
    FragmentC left, right;
    for (int r = 0; r < 4; ++r) {
      left.of[r] = right.of[r] = static_cast<float>(g + r / 2 * 8 - (2 * t + r % 2));
    }
    const FragmentB2 b = LoadB(two, 0, 0);
    MultiplyAdd(left, LoadA(one, 0, 0), b.first);
    MultiplyAdd(right, LoadA(one, 0, 0), b.second);
    return Operands{FragmentOf(left, right), LoadB(three, 0, 0).first};
  });
  const auto rounded = [&](int i, int k) {
    return ToFloat(ToBFloat16(k < 8 ? first[i * 8 + k] : second[i * 8 + k - 8]));
  };
  EXPECT_EQ(chained, Plain([&](int i, int j, int k) { return rounded(i, k) * three(k, j); }));
}

TEST(AsyncCopy, FillsWithZerosAndComesGroupByGroup) {
  alignas(16) char from[32], to[3][16];
  for (int i = 0; i < 32; ++i) from[i] = static_cast<char>(i + 1);
  emulator::RunBlocks({.blocks = {1, 1}, .threads = 1}, [&] {
    BeginCopy(to[0], from, 16);
    BeginCopy(to[1], from + 16, 6);
    EndCopyGroup();
    BeginCopy(to[2], from, 0);
    EndCopyGroup();
    EXPECT_EQ(to[0][0], '\xFF') << "before the wait nothing is there";
    WaitForCopies<1>();
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(to[0][i], i + 1);
      EXPECT_EQ(to[1][i], i < 6 ? i + 17 : 0);
      EXPECT_EQ(to[2][i], '\xFF');
    }
    WaitForCopies<0>();
    for (const char byte : to[2]) EXPECT_EQ(byte, 0);
  });
}

TEST(AsyncCopyDeathTest, AThreadThatEndsBeforeItsCopiesEndsTheProcess) {
  alignas(16) char from[16] = {}, to[16];
  EXPECT_DEATH(
      emulator::RunBlocks({.blocks = {1, 1}, .threads = 1}, [&] { BeginCopy(to, from, 16); }),
      "ends before its copies");
}

}  // namespace
}  // namespace troupe::kernels::cuda
