#include "kernels/cpu/matmul.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::cpu {
namespace {

// All ops of a program share scratch: leftovers of one op must not affect another's results.
TEST(Matmul, DoesNotReadWhatOthersLeftInScratch) {
  constexpr int64_t kIn = 21, kOut = 40;
  for (int level = 0; level <= static_cast<int>(HighestLevel()); ++level) {
    for (const int64_t rows : {1, 2, 31, 32, 33, 63, 64, 65, 100}) {
      for (const MatmulKind kind :
           {MatmulKind::kForward, MatmulKind::kInputGradient, MatmulKind::kWeightGradient}) {
        for (const bool accumulate : {false, true}) {
          if (accumulate && kind != MatmulKind::kWeightGradient) continue;
          auto matmul = PrepareMatmul({kind, true, rows, kIn, kOut}, static_cast<Level>(level), 2);
          ASSERT_TRUE(matmul.ok());
          std::vector<char> scratch((*matmul)->scratch_bytes() + 64);
          std::memset(scratch.data(), 0xFF, scratch.size());  // NaN in every floating-point type
          char* aligned =
              scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
          const std::vector<BFloat16> a(rows * (kIn + kOut), ToBFloat16(1.0f)),
              b((rows + kOut) * kIn, ToBFloat16(1.0f));
          std::vector<float> c(rows * (kIn + kOut) + kIn * kOut, 0.0f);
          ASSERT_TRUE((*matmul)->Run(a.data(), b.data(), c.data(), accumulate, aligned).ok());
          const bool weights = kind == MatmulKind::kWeightGradient;
          const int64_t count =
              weights ? kOut * kIn : rows * (kind == MatmulKind::kForward ? kOut : kIn);
          const float expected = weights ? rows : kind == MatmulKind::kForward ? kIn : kOut;
          for (int64_t i = 0; i < count; ++i) {
            const float actual =
                weights ? c[i] : ToFloat(reinterpret_cast<const BFloat16*>(c.data())[i]);
            ASSERT_EQ(actual, expected)
                << "level " << level << " rows " << rows << " element " << i;
          }
        }
      }
    }
  }
}

// Accumulates onto the sum of an earlier microbatch, at sizes of real layers, whose packed operands
// have no padding, and with arbitrary leftovers in scratch.
TEST(Matmul, AccumulatesWeightGradientsAtLayerSizes) {
  struct Size {
    int64_t rows, in, out;
  };
  for (int level = 0; level <= static_cast<int>(HighestLevel()); ++level) {
    for (const Size size : {Size{256, 64, 192}, Size{256, 128, 344}, Size{256, 768, 768},
                            Size{512, 256, 259}, Size{128, 2048, 768}}) {
      auto matmul = PrepareMatmul({MatmulKind::kWeightGradient, true, size.rows, size.in, size.out},
                                  static_cast<Level>(level), 2);
      ASSERT_TRUE(matmul.ok());
      std::vector<char> scratch((*matmul)->scratch_bytes() + 64);
      std::memset(scratch.data(), 0xFF, scratch.size());
      char* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
      const std::vector<BFloat16> dy(size.rows * size.out, ToBFloat16(1.0f)),
          x(size.rows * size.in, ToBFloat16(1.0f));
      std::vector<float> dw(size.out * size.in, 0.5f);
      for (int turn = 1; turn <= 3; ++turn) {
        ASSERT_TRUE((*matmul)->Run(dy.data(), x.data(), dw.data(), true, aligned).ok());
        for (int64_t i = 0; i < std::ssize(dw); ++i) {
          ASSERT_EQ(dw[i], 0.5f + static_cast<float>(turn * size.rows))
              << "level " << level << " rows " << size.rows << " in " << size.in << " out "
              << size.out << " turn " << turn << " element " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::cpu
