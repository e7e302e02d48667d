// The sources of the quantisation kernels (kernels/cuda/kernels/quantize.cu): a tile of a stored
// tensor, or one computed from other tensors and rounded to bfloat16 as if it had been stored and
// read again.
//
// A source has kHalves, the number of tiles that a block computes from one read, q.columns /
// kHalves columns apart; and kBlocks, the number of blocks with tiles of one scale that should fit
// on a multiprocessor. A computing source also has Row: it computes kAcross adjacent elements of
// `row`, from `column` on, in each half; those from `count` on are zeros. kAtOnce: as in PairsAt;
// kPacks: whether kAtOnce is useful.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_QUANTIZE_SOURCE_H_
#define TROUPE_KERNELS_CUDA_KERNELS_QUANTIZE_SOURCE_H_

#include <cstdint>
#include <type_traits>

#include "kernels/backend/arguments.h"
#include "kernels/cuda/device_code/quantize_tile.h"
#include "kernels/cuda/kernels/swiglu.h"

namespace troupe::kernels::cuda {

struct ValueSource {
  static constexpr int kHalves = 1, kBlocks = 3;
};

struct SwiGluSource {
  static constexpr int kHalves = 1, kBlocks = 3;
  static constexpr bool kPacks = true;

  template <bool kAtOnce>
  TROUPE_DEVICE static void Row(const QuantizeArgs& q, int64_t row, int64_t column, int count,
                                Neighbours (&x)[1]) {
    const BFloat16* const from = static_cast<const BFloat16*>(q.gu) + row * 2 * q.columns + column;
    const PairsAt<kAtOnce> gates(from, count), ups(from + q.columns, count);
    TROUPE_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const Pair gate = gates[p], up = ups[p];
      x[0].values[p] = PairOf(Narrow<BFloat16>(GatedOf<BFloat16>(First(gate), First(up))),
                              Narrow<BFloat16>(GatedOf<BFloat16>(Second(gate), Second(up))));
    }
  }
};

// dgu for the same columns of both of its halves: gate and up.
struct SwiGluGradSource {
  static constexpr int kHalves = 2, kBlocks = 2;
  static constexpr bool kPacks = true;

  template <bool kAtOnce>
  TROUPE_DEVICE static void Row(const QuantizeArgs& q, int64_t row, int64_t column, int count,
                                Neighbours (&x)[2]) {
    const int64_t ffn = q.columns / 2;
    const BFloat16* const from = static_cast<const BFloat16*>(q.gu) + row * q.columns + column;
    const PairsAt<kAtOnce> dys(static_cast<const BFloat16*>(q.dy) + row * ffn + column, count);
    const PairsAt<kAtOnce> gates(from, count), ups(from + ffn, count);
    TROUPE_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const Pair dy = dys[p], gate = gates[p], up = ups[p];
      const GatedGradient first = GatedGradientOf<BFloat16>(First(dy), First(gate), First(up));
      const GatedGradient second = GatedGradientOf<BFloat16>(Second(dy), Second(gate), Second(up));
      x[0].values[p] = PairOf(Narrow<BFloat16>(first.gate), Narrow<BFloat16>(second.gate));
      x[1].values[p] = PairOf(Narrow<BFloat16>(first.up), Narrow<BFloat16>(second.up));
    }
  }
};

// dgu where tiles of the halves would not be tiles of the whole: computes one element at a time,
// for the half that contains it.
struct SwiGluGradElements {
  static constexpr int kHalves = 1, kBlocks = 2;
  static constexpr bool kPacks = false;

  TROUPE_DEVICE static BFloat16 Element(const QuantizeArgs& q, int64_t row, int64_t column) {
    const int64_t ffn = q.columns / 2, of_half = column < ffn ? column : column - ffn;
    const BFloat16* const gate = static_cast<const BFloat16*>(q.gu) + row * q.columns + of_half;
    const GatedGradient made =
        GatedGradientOf<BFloat16>(Widen(static_cast<const BFloat16*>(q.dy)[row * ffn + of_half]),
                                  Widen(gate[0]), Widen(gate[ffn]));
    return Narrow<BFloat16>(column < ffn ? made.gate : made.up);
  }
  template <bool kAtOnce>
  TROUPE_DEVICE static void Row(const QuantizeArgs& q, int64_t row, int64_t column, int count,
                                Neighbours (&x)[1]) {
    TROUPE_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const BFloat16 first = 2 * p < count ? Element(q, row, column + 2 * p) : BFloat16{0};
      const BFloat16 second = 2 * p + 1 < count ? Element(q, row, column + 2 * p + 1) : BFloat16{0};
      x[0].values[p] = PairOf(first, second);
    }
  }
};

// A tile within a half of the tensor: its first element and its size.
struct TilePlace {
  int first_row, first_column, rows, columns;
};

// Loads this thread's part of the tile at `place` of a stored tensor; elements beyond the tile's
// ends are zeros. Contains warp barriers.
TROUPE_DEVICE void LoadTile(const QuantizeArgs& q, const TilePlace& place, bool packs,
                            Neighbours (&x)[kRowsOfThread]) {
  const int thread = static_cast<int>(ThreadIndex()), column = ColumnOfThread(thread);
  const auto from_row = [&](int i) {
    return static_cast<const BFloat16*>(q.x) +
           (int64_t{place.first_row} + RowOfThread(thread, i)) * q.columns + place.first_column +
           column;
  };
  if (packs) {
    TROUPE_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      x[i] = {};
      if (RowOfThread(thread, i) < place.rows && column < place.columns)
        x[i] = NeighboursAt(from_row(i));
    }
    return;
  }
  TROUPE_UNROLL
  for (int i = 0; i < kRowsOfThread; ++i) {
    const PairsAt<false> pairs(from_row(i),
                               RowOfThread(thread, i) < place.rows ? place.columns - column : 0);
    TROUPE_UNROLL
    for (int p = 0; p < kPairs; ++p) x[i].values[p] = pairs[p];
    SyncWarp();  // limits register use: otherwise all rows are loaded before pairing
  }
}

// Computes this thread's part of the tile at `place` and passes it to `keep` row by row, i of
// kRowsOfThread, for each half of the source. Elements beyond the tile's ends are zeros.
template <typename Source, typename Keep>
TROUPE_DEVICE void MakeTile(const QuantizeArgs& q, const TilePlace& place, bool packs,
                            const Keep& keep) {
  const int thread = static_cast<int>(ThreadIndex()), column = ColumnOfThread(thread);
  const auto make = [&](auto at_once, int i) {
    const int row = RowOfThread(thread, i);
    Neighbours made[Source::kHalves];
    Source::template Row<at_once.value>(q, int64_t{place.first_row} + row,
                                        int64_t{place.first_column} + column,
                                        row < place.rows ? place.columns - column : 0, made);
    keep(i, made);
  };
  // Processes as many rows at a time as fit into a thread's registers.
  if (Source::kPacks && packs) {
    constexpr int kRows = 2;
    TROUPE_NO_UNROLL
    for (int first = 0; first < kRowsOfThread; first += kRows) {
      TROUPE_UNROLL
      for (int i = 0; i < kRows; ++i) make(std::bool_constant<Source::kPacks>(), first + i);
    }
  } else {
    TROUPE_NO_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) make(std::false_type(), i);
  }
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_QUANTIZE_SOURCE_H_
