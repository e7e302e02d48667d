// What the quantising kernels (kernels/cuda/quantize.cu) quantise, by where it comes from: a tile of a value that is there, or
// one that is made of what is read, rounded to bfloat16 as if it had been written and read again.
//
// A source has kHalves: how many tiles of its value a block has of one reading, each q.columns / kHalves columns behind the
// one before; and kBlocks: how many blocks of tiles with one scale are to fit on a multiprocessor. One that makes its value
// has Row: the first `count` of kAcross neighbours in `row`, from `column` on, in each half, with zeros behind them. kAtOnce:
// as of PairsAt; kPacks: whether that is of use.
#ifndef TROUPE_KERNELS_CUDA_QUANTIZE_SOURCE_H_
#define TROUPE_KERNELS_CUDA_QUANTIZE_SOURCE_H_

#include <cstdint>
#include <type_traits>

#include "kernels/arguments.h"
#include "kernels/cuda/quantize_tile.h"
#include "kernels/cuda/swiglu.h"

namespace troupe::kernels::cuda {

struct ValueSource {
  static constexpr int kHalves = 1, kBlocks = 3;
};

struct SwiGluSource {
  static constexpr int kHalves = 1, kBlocks = 3;
  static constexpr bool kPacks = true;

  template <bool kAtOnce>
  TROUPE_DEVICE static void Row(const QuantizeArgs& q, int64_t row, int64_t column, int count, Neighbours (&x)[1]) {
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

// dgu of the same columns in both of its halves: gate's and up's.
struct SwiGluGradSource {
  static constexpr int kHalves = 2, kBlocks = 2;
  static constexpr bool kPacks = true;

  template <bool kAtOnce>
  TROUPE_DEVICE static void Row(const QuantizeArgs& q, int64_t row, int64_t column, int count, Neighbours (&x)[2]) {
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

// dgu where tiles of both halves would be no tiles of the whole: an element at a time, by the half that it lies in.
struct SwiGluGradElements {
  static constexpr int kHalves = 1, kBlocks = 2;
  static constexpr bool kPacks = false;

  TROUPE_DEVICE static BFloat16 Element(const QuantizeArgs& q, int64_t row, int64_t column) {
    const int64_t ffn = q.columns / 2, of_half = column < ffn ? column : column - ffn;
    const BFloat16* const gate = static_cast<const BFloat16*>(q.gu) + row * q.columns + of_half;
    const GatedGradient made = GatedGradientOf<BFloat16>(Widen(static_cast<const BFloat16*>(q.dy)[row * ffn + of_half]),
                                                         Widen(gate[0]), Widen(gate[ffn]));
    return Narrow<BFloat16>(column < ffn ? made.gate : made.up);
  }
  template <bool kAtOnce>
  TROUPE_DEVICE static void Row(const QuantizeArgs& q, int64_t row, int64_t column, int count, Neighbours (&x)[1]) {
    TROUPE_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const BFloat16 first = 2 * p < count ? Element(q, row, column + 2 * p) : BFloat16{0};
      const BFloat16 second = 2 * p + 1 < count ? Element(q, row, column + 2 * p + 1) : BFloat16{0};
      x[0].values[p] = PairOf(first, second);
    }
  }
};

// A tile of a half of the value: its first element, and how much of it there is.
struct TilePlace {
  int first_row, first_column, rows, columns;
};

// The thread's part of the tile at `place` of a value that is there; zeros behind the tile's ends. Threads of a warp meet.
TROUPE_DEVICE void LoadTile(const QuantizeArgs& q, const TilePlace& place, bool packs, Neighbours (&x)[kRowsOfThread]) {
  const int thread = static_cast<int>(ThreadIndex()), column = ColumnOfThread(thread);
  const auto from_row = [&](int i) {
    return static_cast<const BFloat16*>(q.x) + (int64_t{place.first_row} + RowOfThread(thread, i)) * q.columns +
           place.first_column + column;
  };
  if (packs) {
    TROUPE_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      x[i] = {};
      if (RowOfThread(thread, i) < place.rows && column < place.columns) x[i] = NeighboursAt(from_row(i));
    }
    return;
  }
  TROUPE_UNROLL
  for (int i = 0; i < kRowsOfThread; ++i) {
    const PairsAt<false> pairs(from_row(i), RowOfThread(thread, i) < place.rows ? place.columns - column : 0);
    TROUPE_UNROLL
    for (int p = 0; p < kPairs; ++p) x[i].values[p] = pairs[p];
    SyncWarp();  // else elements of all rows are read before they are paired, into more registers than there are
  }
}

// Hands `keep` the thread's part of the tile at `place` row by row, i of kRowsOfThread, in each half of what the source
// makes; zeros behind the tile's ends.
template <typename Source, typename Keep>
TROUPE_DEVICE void MakeTile(const QuantizeArgs& q, const TilePlace& place, bool packs, const Keep& keep) {
  const int thread = static_cast<int>(ThreadIndex()), column = ColumnOfThread(thread);
  const auto make = [&](auto at_once, int i) {
    const int row = RowOfThread(thread, i);
    Neighbours made[Source::kHalves];
    Source::template Row<at_once.value>(q, int64_t{place.first_row} + row, int64_t{place.first_column} + column,
                                        row < place.rows ? place.columns - column : 0, made);
    keep(i, made);
  };
  // As many rows at a time as a thread has registers for what it reads.
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

#endif  // TROUPE_KERNELS_CUDA_QUANTIZE_SOURCE_H_
