#include "kernels/cuda/libraries/matmul_layout.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/testing/testing.h"

namespace troupe::kernels::cuda {
namespace {

// The result that a column-major library computes from `layout`, by its definition.
std::vector<double> Matmul(const MatmulLayout& layout, const std::vector<double>& a,
                           const std::vector<double>& b) {
  const auto at = [](const std::vector<double>& matrix, const ColumnMajor& lies, int64_t i,
                     int64_t j) {
    EXPECT_LT(i, lies.rows);
    EXPECT_LT(j, lies.columns);
    return matrix.at(static_cast<size_t>(i + j * lies.leading));
  };
  std::vector<double> d(static_cast<size_t>(layout.d.leading * layout.d.columns));
  for (int64_t i = 0; i < layout.m; ++i) {
    for (int64_t j = 0; j < layout.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < layout.k; ++l) {
        sum += (layout.transpose_a ? at(a, layout.a, l, i) : at(a, layout.a, i, l)) *
               (layout.transpose_b ? at(b, layout.b, j, l) : at(b, layout.b, l, j));
      }
      EXPECT_LT(i, layout.d.rows);
      d.at(static_cast<size_t>(i + j * layout.d.leading)) = sum;
    }
  }
  return d;
}

// The matmul as defined in matmul_shape.h, row-major.
std::vector<double> Expected(const MatmulShape& shape, const std::vector<double>& a,
                             const std::vector<double>& b) {
  const int64_t rows = shape.rows, k = shape.k, n = shape.n;
  std::vector<double> c(static_cast<size_t>(ExtentsOf(shape).c));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        switch (shape.kind) {
          case MatmulKind::kForward:
            c[r * n + i] += a[r * k + j] * b[i * k + j];
            break;
          case MatmulKind::kInputGradient:
            c[r * k + j] += a[r * n + i] * b[i * k + j];
            break;
          case MatmulKind::kWeightGradient:
            c[i * k + j] += a[r * n + i] * b[r * k + j];
            break;
        }
      }
    }
  }
  return c;
}

constexpr MatmulKind kKinds[] = {MatmulKind::kForward, MatmulKind::kInputGradient,
                                 MatmulKind::kWeightGradient};

TEST(MatmulLayout, GivesTheRowMajorMatmul) {
  TestRandom random;
  for (const MatmulKind kind : kKinds) {
    for (const auto& [rows, k, n] :
         {std::array<int64_t, 3>{2, 3, 5}, {7, 4, 1}, {1, 1, 6}, {8, 8, 8}}) {
      const MatmulShape shape = {kind, true, rows, k, n};
      const MatmulExtents extents = ExtentsOf(shape);
      const std::vector<double> a = random.Normals(extents.a), b = random.Normals(extents.b);
      // The library's first matrix is our second.
      EXPECT_LE(RelativeError(Matmul(LayoutOf(shape), b, a), Expected(shape, a, b)), 1e-12)
          << static_cast<int>(kind) << " " << rows << " " << k << " " << n;
    }
  }
}

// The transpose of a row-major matrix [rows, columns].
std::vector<double> Transposed(const std::vector<double>& matrix, int64_t rows, int64_t columns) {
  std::vector<double> transposed(matrix.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) transposed[j * rows + i] = matrix[i * columns + j];
  }
  return transposed;
}

TEST(MatmulLayout, OfFloat8OperandsGivesTheSameMatmulInOneForm) {
  TestRandom random;
  for (const MatmulKind kind : kKinds) {
    for (const auto& [rows, k, n] : {std::array<int64_t, 3>{2, 3, 5}, {7, 4, 1}, {8, 8, 8}}) {
      const MatmulShape shape = {kind, true, rows, k, n, Float8Scaling::kWhole};
      const MatmulExtents extents = ExtentsOf(shape);
      const std::vector<double> a = random.Normals(extents.a), b = random.Normals(extents.b);
      const std::vector<double> expected = Expected(shape, a, b);
      // Operands are stored along the summed dimension, as the operations of
      // model/program/op_kinds.def take them.
      const bool weight = kind == MatmulKind::kWeightGradient;
      const std::vector<double> first = weight ? Transposed(a, rows, n) : a;
      const std::vector<double> second = weight ? Transposed(b, rows, k)
                                         : kind == MatmulKind::kInputGradient ? Transposed(b, n, k)
                                                                              : b;
      const MatmulLayout layout = LayoutOf(shape);
      EXPECT_TRUE(layout.transpose_a);
      EXPECT_FALSE(layout.transpose_b);
      EXPECT_LE(RelativeError(Matmul(layout, second, first), expected), 1e-12)
          << static_cast<int>(kind);
    }
  }
}

TEST(MatmulLayout, OnlyWeightGradientsOfBfloat16AreFloat32) {
  for (const MatmulKind kind : kKinds) {
    EXPECT_EQ(HasFloatResult({kind, true, 1, 1, 1}), kind == MatmulKind::kWeightGradient);
    EXPECT_TRUE(HasFloatResult({kind, false, 1, 1, 1}));
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda
