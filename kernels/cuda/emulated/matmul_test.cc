// Compares tiled matmuls of all sizes with float64. Elements outside of the rows and results must
// be neither read nor written.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/device_code/fma_matmul.h"
#include "kernels/cuda/device_code/mma_matmul.h"
#include "kernels/cuda/emulated/launch.h"
#include "kernels/testing/testing.h"

namespace troupe::kernels::cuda {
namespace {

constexpr size_t kGuard = 64;  // elements before and after a matrix

// The elements of a matrix between guards of NaN, at an address aligned as in an arena or not.
template <typename T>
class Matrix {
 public:
  Matrix(const std::vector<double>& numbers, bool aligned)
      : elements_(numbers.size() + 2 * kGuard + 32 / sizeof(T)), count_(numbers.size()) {
    for (T& element : elements_) element = Narrow<T>(NAN);
    while (reinterpret_cast<uintptr_t>(elements_.data() + first_) % 32 != 0) ++first_;
    first_ += aligned ? kGuard : kGuard + 1;
    for (size_t i = 0; i < count_; ++i) data()[i] = Narrow<T>(static_cast<float>(numbers[i]));
  }
  T* data() { return elements_.data() + first_; }
  double operator[](int64_t i) { return Widen(data()[i]); }
  bool GuardsHold() {
    for (size_t i = 0; i < elements_.size(); ++i) {
      if ((i < first_ || i >= first_ + count_) && !std::isnan(Widen(elements_[i]))) return false;
    }
    return true;
  }

 private:
  std::vector<T> elements_;
  size_t first_ = 0, count_;
};

struct Case {
  MatmulKind kind;
  std::vector<int32_t> counts;  // empty: not counted
  int64_t rows, k, n, experts;
  bool aligned, accumulate;
};

// A matmul in float64.
struct ExactMatmul {
  std::vector<double> sums;
  // The sums of the terms' magnitudes, with which rounding errors grow, also where terms cancel.
  std::vector<double> magnitudes;

  void Add(int64_t i, double term) {
    sums[i] += term;
    magnitudes[i] += std::abs(term);
  }
};

// Computes `c` in float64; `before` are the elements of the result before it.
template <typename T>
ExactMatmul ExactMatmulOf(const Case& c, Matrix<T>& a, Matrix<T>& b,
                          const std::vector<double>& before) {
  const bool weight = c.kind == MatmulKind::kWeightGradient,
             forward = c.kind == MatmulKind::kForward;
  const int64_t c_width = forward ? c.n : c.k;
  const std::vector<int32_t> counts =
      c.counts.empty() ? std::vector<int32_t>{static_cast<int32_t>(c.rows)} : c.counts;
  ExactMatmul exact = {before, std::vector<double>(before.size())};
  auto& [sums, magnitudes] = exact;
  if (weight && !c.accumulate) std::fill(sums.begin(), sums.end(), 0.0);
  for (size_t i = 0; i < sums.size(); ++i) magnitudes[i] = std::abs(sums[i]);
  int64_t row = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t matrix = static_cast<int64_t>(i) % c.experts * c.n * c.k;
    for (const int64_t end = row + counts[i]; row < end; ++row) {
      if (!weight) {
        std::fill_n(sums.begin() + row * c_width, c_width, 0.0);
        std::fill_n(magnitudes.begin() + row * c_width, c_width, 0.0);
      }
      for (int64_t n = 0; n < c.n; ++n) {
        for (int64_t k = 0; k < c.k; ++k) {
          if (weight) {
            exact.Add(matrix + n * c.k + k, a[row * c.n + n] * b[row * c.k + k]);
          } else if (forward) {
            exact.Add(row * c.n + n, a[row * c.k + k] * b[matrix + n * c.k + k]);
          } else {
            exact.Add(row * c.k + k, a[row * c.n + n] * b[matrix + n * c.k + k]);
          }
        }
      }
    }
  }
  return exact;
}

// Compares the emulator with float64. Rows beyond the counts are NaN.
template <typename T, typename Launcher>
void ExpectMatmul(const Case& c, const Launcher& launcher) {
  TestRandom random;
  const bool weight = c.kind == MatmulKind::kWeightGradient,
             forward = c.kind == MatmulKind::kForward;
  const int64_t a_width = forward ? c.k : c.n, b_width = c.k, c_width = forward ? c.n : c.k;
  const int64_t used =
      c.counts.empty() ? c.rows : std::accumulate(c.counts.begin(), c.counts.end(), int64_t{0});
  std::vector<double> a = random.Normals(c.rows * a_width);
  std::vector<double> b = random.Normals(weight ? c.rows * b_width : c.experts * c.n * c.k);
  std::fill(a.begin() + used * a_width, a.end(), NAN);
  if (weight) std::fill(b.begin() + used * b_width, b.end(), NAN);
  const std::vector<double> before =
      weight ? random.Normals(c.experts * c.n * c.k) : std::vector<double>(c.rows * c_width, NAN);
  Matrix<T> a_matrix(a, c.aligned), b_matrix(b, c.aligned);
  using Result = Matrix<float>;
  Result weights(before, c.aligned);
  Matrix<T> rows(before, c.aligned);
  MatmulArgs args{c.kind,
                  a_matrix.data(),
                  b_matrix.data(),
                  rows.data(),
                  c.rows,
                  c.k,
                  c.n,
                  c.counts.empty() ? nullptr : c.counts.data(),
                  c.counts.empty() ? 1 : static_cast<int64_t>(c.counts.size()),
                  c.experts,
                  c.accumulate};
  if (weight) args.c = weights.data();
  emulator::Launch(launcher(args));

  const ExactMatmul exact = ExactMatmulOf(c, a_matrix, b_matrix, before);
  std::vector<double> actual;
  for (size_t i = 0; i < exact.sums.size(); ++i) {
    actual.push_back(weight ? weights[static_cast<int64_t>(i)] : rows[static_cast<int64_t>(i)]);
  }
  const size_t written =
      static_cast<size_t>(weight ? static_cast<int64_t>(exact.sums.size()) : used * c_width);
  for (size_t i = written; i < actual.size(); ++i)
    ASSERT_TRUE(std::isnan(actual[i])) << "element " << i;
  constexpr double kUnits = 4;
  const double unit = sizeof(T) == 2 && !weight ? 0x1.0p-8 : 0x1.0p-23;
  for (size_t i = 0; i < written; ++i) {
    ASSERT_LE(std::abs(actual[i] - exact.sums[i]), kUnits * unit * exact.magnitudes[i])
        << "element " << i;
  }
  EXPECT_TRUE(rows.GuardsHold() && weights.GuardsHold());
}

std::vector<Case> Cases(bool counted) {
  std::vector<Case> cases;
  for (const MatmulKind kind :
       {MatmulKind::kForward, MatmulKind::kInputGradient, MatmulKind::kWeightGradient}) {
    for (const bool accumulate : {false, true}) {
      if (accumulate && kind != MatmulKind::kWeightGradient) continue;
      if (counted) {
        cases.push_back({kind, {5, 0, 150, 0, 1, 40}, 201, 72, 136, 2, true, accumulate});
        cases.push_back({kind, {5, 0, 150, 0, 1, 0}, 159, 33, 131, 3, false, accumulate});
        cases.push_back({kind, {0, 0, 129}, 129, 8, 8, 3, true, accumulate});
        std::vector<int32_t> many(70, 0);  // more counts than a warp has lanes
        many[3] = 2;
        many[40] = 70;
        many[69] = 1;
        cases.push_back({kind, many, 80, 16, 24, 35, true, accumulate});
      } else {
        cases.push_back({kind, {}, 140, 200, 136, 1, true, accumulate});
        cases.push_back({kind, {}, 131, 35, 33, 1, false, accumulate});
        cases.push_back({kind, {}, 1, 1, 1, 1, true, accumulate});
      }
    }
  }
  return cases;
}

TEST(Matmuls, OfTensorCoresMatchInLargeAndSmallTiles) {
  for (const Case& c : Cases(/*counted=*/false)) {
    ExpectMatmul<BFloat16>(
        c, [](const MatmulArgs& args) { return MmaMatmulOf<false, 128>("", args); });
    ExpectMatmul<BFloat16>(c,
                           [](const MatmulArgs& args) { return MmaMatmulOf<false, 64>("", args); });
  }
  for (const Case& c : Cases(/*counted=*/true)) {
    ExpectMatmul<BFloat16>(c,
                           [](const MatmulArgs& args) { return MmaMatmulOf<true, 128>("", args); });
    ExpectMatmul<BFloat16>(c,
                           [](const MatmulArgs& args) { return MmaMatmulOf<true, 64>("", args); });
  }
}

TEST(Matmuls, OfFloat32Match) {
  for (const Case& c : Cases(/*counted=*/false)) {
    ExpectMatmul<float>(c, [](const MatmulArgs& args) { return FmaMatmul<false>("", args); });
  }
  for (const Case& c : Cases(/*counted=*/true)) {
    ExpectMatmul<float>(c, [](const MatmulArgs& args) { return FmaMatmul<true>("", args); });
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda
