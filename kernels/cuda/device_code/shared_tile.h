// Rows of a matrix in shared memory, and a warp's matmuls on them: bfloat16 on tensor cores,
// float32 by float32 multiply-adds. In both cases a lane's elements of the result are those of
// FragmentC.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_SHARED_TILE_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_SHARED_TILE_H_

#include <cstdint>

#include "kernels/cuda/device_code/async_copy.h"
#include "kernels/cuda/device_code/mma.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::cuda {

// Rows are padded by sixteen bytes: eight lanes that read the same columns of eight rows, sixteen
// bytes each, use eight different groups of banks, and all elements that a lane reads are at
// constant offsets.
template <typename T, int kWidth>
struct SharedTile {
  static_assert(kWidth % 64 == 0);
  static constexpr int kStride = kWidth + kPack<T>;
  T* base;

  TROUPE_DEVICE T* At(int row, int column) const { return base + row * kStride + column; }
  // The tile that begins `rows` rows later.
  TROUPE_DEVICE SharedTile Offset(int rows) const { return {base + rows * kStride}; }
};

// Rows in device memory, `stride` elements apart, each with `width` valid elements.
template <typename T>
struct Rows {
  const T* first;
  int64_t stride;
  int width;
  bool packed;  // all rows and the width are multiples of sixteen bytes
};

// Copies rows [begin, begin + kRows) to `tile`; rows from `end` on and columns beyond the width
// become zeros. If the rows are packed, the copies are asynchronous and belong to the thread's open
// group.
template <int kRows, int kThreads, typename T, int kWidth>
TROUPE_DEVICE void BeginRows(const SharedTile<T, kWidth>& tile, const Rows<T>& rows, int begin,
                             int end) {
  const int thread = static_cast<int>(ThreadIndex());
  const int count = end - begin;
  const T* const first = rows.first + begin * rows.stride;
  if (rows.packed) {
    // Threads per row, rows at once.
    constexpr int kAcross = kWidth / kPack<T>, kStep = kThreads / kAcross;
    static_assert(kThreads % kAcross == 0 && kRows % kStep == 0);
    const int column = thread % kAcross * kPack<T>;
    TROUPE_NO_UNROLL  // otherwise the addresses take the registers that the matmuls need
        for (int row = thread / kAcross; row < kRows; row += kStep) {
      const bool here = row < count && column < rows.width;
      BeginCopy(tile.At(row, column), here ? first + row * rows.stride + column : rows.first,
                here ? kCopyBytes : 0);
    }
    return;
  }
  for (int i = thread; i < kRows * kWidth; i += kThreads) {
    const int row = i / kWidth, column = i % kWidth;
    T value{};
    if (row < count && column < rows.width) value = first[row * rows.stride + column];
    *tile.At(row, column) = value;
  }
}

// result[i][j] += Σ_k left[row + i][k] · right[j][k], i < 16 · kRowTiles, j < 8 · kColumns.
template <int kRowTiles, int kColumns, int kWidth>
TROUPE_DEVICE void MultiplyRows(FragmentC (&result)[kRowTiles][kColumns],
                                const SharedTile<BFloat16, kWidth>& left, int row,
                                const SharedTile<BFloat16, kWidth>& right) {
  TROUPE_UNROLL
  for (int k = 0; k < kWidth; k += 16) {
    FragmentA a[kRowTiles];
    TROUPE_UNROLL
    for (int m = 0; m < kRowTiles; ++m) a[m] = LoadA(left, row + 16 * m, k);
    TROUPE_UNROLL
    for (int n = 0; n < kColumns; n += 2) {
      const FragmentB2 b = LoadBTransposed(right, 8 * n, k);
      TROUPE_UNROLL
      for (int m = 0; m < kRowTiles; ++m) {
        MultiplyAdd(result[m][n], a[m], b.first);
        MultiplyAdd(result[m][n + 1], a[m], b.second);
      }
    }
  }
}
template <int kRowTiles, int kColumns, int kWidth>
TROUPE_DEVICE void MultiplyRows(FragmentC (&result)[kRowTiles][kColumns],
                                const SharedTile<float, kWidth>& left, int row,
                                const SharedTile<float, kWidth>& right) {
  using Four = Pack<float, 4>;
  const int g = Lane() / 4, t = Lane() % 4;
  TROUPE_NO_UNROLL
  for (int k = 0; k < kWidth; k += 4) {
    TROUPE_UNROLL
    for (int m = 0; m < kRowTiles; ++m) {
      const Four upper = Four::Load(left.At(row + 16 * m + g, k));
      const Four lower = Four::Load(left.At(row + 16 * m + g + 8, k));
      TROUPE_UNROLL
      for (int n = 0; n < kColumns; ++n) {
        const Four first = Four::Load(right.At(8 * n + 2 * t, k));
        const Four second = Four::Load(right.At(8 * n + 2 * t + 1, k));
        FragmentC& c = result[m][n];
        TROUPE_UNROLL
        for (int i = 0; i < 4; ++i) {
          c.of[0] += upper[i] * first[i];
          c.of[1] += upper[i] * second[i];
          c.of[2] += lower[i] * first[i];
          c.of[3] += lower[i] * second[i];
        }
      }
    }
  }
}

// result[i][j] += Σ_k left[i][k] · right[k][column + j], k < 8 · kDepth. `left` is a result of the
// same warp, rounded to the tile's element type.
template <int kRowTiles, int kDepth, int kColumns, int kWidth>
TROUPE_DEVICE void MultiplyResult(FragmentC (&result)[kRowTiles][kColumns],
                                  const FragmentC (&left)[kRowTiles][kDepth],
                                  const SharedTile<BFloat16, kWidth>& right, int column) {
  TROUPE_UNROLL
  for (int k = 0; k < kDepth; k += 2) {
    FragmentA a[kRowTiles];
    TROUPE_UNROLL
    for (int m = 0; m < kRowTiles; ++m) a[m] = FragmentOf(left[m][k], left[m][k + 1]);
    TROUPE_UNROLL
    for (int n = 0; n < kColumns; n += 2) {
      const FragmentB2 b = LoadB(right, 8 * k, column + 8 * n);
      TROUPE_UNROLL
      for (int m = 0; m < kRowTiles; ++m) {
        MultiplyAdd(result[m][n], a[m], b.first);
        MultiplyAdd(result[m][n + 1], a[m], b.second);
      }
    }
  }
}
template <int kRowTiles, int kDepth, int kColumns, int kWidth>
TROUPE_DEVICE void MultiplyResult(FragmentC (&result)[kRowTiles][kColumns],
                                  const FragmentC (&left)[kRowTiles][kDepth],
                                  const SharedTile<float, kWidth>& right, int column) {
  const int g = Lane() / 4, t = Lane() % 4;
  TROUPE_UNROLL
  for (int m = 0; m < kRowTiles; ++m) {
    TROUPE_UNROLL
    for (int k = 0; k < 8 * kDepth; ++k) {
      const FragmentC& from = left[m][k / 8];
      const int lane = 4 * g + k % 8 / 2;  // the lane with rows g and g + 8 of column k
      const float upper = ShuffleFrom(from.of[k % 2], lane),
                  lower = ShuffleFrom(from.of[2 + k % 2], lane);
      TROUPE_UNROLL
      for (int n = 0; n < kColumns; ++n) {
        const auto pair = Pack<float, 2>::Load(right.At(k, column + 8 * n + 2 * t));
        FragmentC& c = result[m][n];
        c.of[0] += upper * pair[0];
        c.of[1] += upper * pair[1];
        c.of[2] += lower * pair[0];
        c.of[3] += lower * pair[1];
      }
    }
  }
}

// Stores two adjacent elements of a row of `width` elements, at columns `column` and column + 1.
// `packed`: as in Rows.
template <typename T>
TROUPE_DEVICE void StorePair(T* row, int column, int width, bool packed, float first,
                             float second) {
  if (packed) {
    if (column >= width) return;
    Pack<T, 2> pair;
    pair.Set(0, first);
    pair.Set(1, second);
    pair.Store(row + column);
    return;
  }
  if (column < width) row[column] = Narrow<T>(first);
  if (column + 1 < width) row[column + 1] = Narrow<T>(second);
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_SHARED_TILE_H_
