#include "kernels/cpu/quantize.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/cpu_clones.h"
#include "kernels/backend/arena_layout.h"
#include "kernels/cpu/parallel.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/float8.h"
#include "model/program/float8.h"

namespace troupe::kernels::cpu {
namespace {

constexpr int64_t kBlock = model::kFloat8Block;

using model::QuantizeSource;

// bfloat16 magnitudes compare like their bits as integers.
int16_t LargestOf(const BFloat16* x, int64_t count, int16_t most) {
  for (int64_t i = 0; i < count; ++i)
    most = std::max(most, static_cast<int16_t>(x[i].bits & 0x7FFF));
  return most;
}
float NumberOf(int16_t magnitude) { return ToFloat(BFloat16{static_cast<uint16_t>(magnitude)}); }

const BFloat16* RowsFrom(const void* values, int64_t row, int64_t width) {
  return static_cast<const BFloat16*>(values) + row * width;
}

// `rows` rows of the tensor to quantise, [rows, K], starting at row `first`: either in place, or
// computed into `to`.
const BFloat16* RowsOf(const QuantizeArgs& args, const KernelTable& kernels, int64_t first,
                       int64_t rows, BFloat16* to) {
  constexpr int kBFloat16 = 1;  // index in the kernel table
  switch (args.source) {
    case QuantizeSource::kValue:
      return RowsFrom(args.x, first, args.columns);
    case QuantizeSource::kSwiGlu: {
      const SwiGluArgs swiglu = {
          RowsFrom(args.gu, first, 2 * args.columns), to, rows, args.columns, nullptr, 0};
      kernels.swiglu[kBFloat16](swiglu, 0, 1);
      break;
    }
    case QuantizeSource::kSwiGluGrad: {
      const int64_t ffn = args.columns / 2;
      const SwiGluGradArgs gradient = {RowsFrom(args.dy, first, ffn),
                                       RowsFrom(args.gu, first, args.columns),
                                       to,
                                       rows,
                                       ffn,
                                       nullptr,
                                       0};
      kernels.swiglu_grad[kBFloat16](gradient, 0, 1);
      break;
    }
  }
  return to;
}

// A block of x of at most kBlock x kBlock, as float32.
struct Piece {
  int64_t first_row, first_column, rows, columns;
  float at[kBlock][kBlock];

  // `x` points to the rows from `row` on. Returns the larger of `most` and the block's amax.
  int16_t Load(const QuantizeArgs& args, const BFloat16* x, int64_t row, int64_t column,
               int16_t most) {
    first_row = row;
    first_column = column;
    rows = std::min(kBlock, args.rows - row);
    columns = std::min(kBlock, args.columns - column);
    for (int64_t r = 0; r < rows; ++r) {
      const BFloat16* from = x + r * args.columns + column;
      for (int64_t c = 0; c < columns; ++c) at[r][c] = ToFloat(from[c]);
      if (args.amax != nullptr) most = LargestOf(from, columns, most);
    }
    return most;
  }
};

// Scales of the rows and of the columns of a block.
using Scales = std::array<float, kBlock>;

void BlockScales(const Piece& piece, Float8Format format, int block_rows, Scales& of_rows,
                 Scales& of_columns) {
  Scales row_amax{}, column_amax{};
  for (int64_t r = 0; r < piece.rows; ++r) {
    float amax = 0;
    for (int64_t c = 0; c < piece.columns; ++c) {
      amax = LargerMagnitude(amax, piece.at[r][c]);
      column_amax[c] = LargerMagnitude(column_amax[c], piece.at[r][c]);
    }
    row_amax[r] = amax;
  }
  if (block_rows > 1) {
    float all = 0;
    for (const float amax : row_amax) all = LargerMagnitude(all, amax);
    row_amax.fill(all);
    column_amax.fill(all);
  }
  for (int64_t i = 0; i < kBlock; ++i) {
    of_rows[i] = ScaleOf(format, row_amax[i]);
    of_columns[i] = ScaleOf(format, column_amax[i]);
  }
}

// Quantise `count` adjacent numbers, each with its own scale. These are the hot loops.
TROUPE_CPU_CLONES void QuantizeToE4M3(const float* x, const float* inverse, int64_t count,
                                      uint8_t* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = Quantized(Float8Format::kE4M3, x[i], inverse[i]);
}
TROUPE_CPU_CLONES void QuantizeToE5M2(const float* x, const float* inverse, int64_t count,
                                      uint8_t* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = Quantized(Float8Format::kE5M2, x[i], inverse[i]);
}

using Fp8Values = uint8_t[kBlock][kBlock];

void StoreForms(const QuantizeArgs& args, const Piece& piece, Float8Format format,
                const Scales& of_rows, const Scales& of_columns) {
  const auto quantize = format == Float8Format::kE4M3 ? &QuantizeToE4M3 : &QuantizeToE5M2;
  Fp8Values values;
  Scales inverse;
  if (args.rows_form != nullptr) {
    for (int64_t r = 0; r < piece.rows; ++r) {
      inverse.fill(1.0f / of_rows[r]);
      quantize(piece.at[r], inverse.data(), piece.columns, values[r]);
      std::memcpy(args.rows_form + (piece.first_row + r) * args.columns + piece.first_column,
                  values[r], static_cast<size_t>(piece.columns));
    }
  }
  if (args.columns_form == nullptr) return;
  // With 1 x 128 blocks the columns form has its own scales, and so its own FP8 values.
  if (args.rows_form == nullptr || args.block_rows == 1) {
    for (int64_t c = 0; c < kBlock; ++c) inverse[c] = 1.0f / of_columns[c];
    for (int64_t r = 0; r < piece.rows; ++r)
      quantize(piece.at[r], inverse.data(), piece.columns, values[r]);
  }
  for (int64_t c = 0; c < piece.columns; ++c) {
    uint8_t* to = args.columns_form + (piece.first_column + c) * args.rows + piece.first_row;
    for (int64_t r = 0; r < piece.rows; ++r) to[r] = values[r][c];
  }
}

// Stores the scales that a piece contributes to one form; `lines` of them run along its rows.
void StoreScales(float* scales, const Scales& of_lines, int64_t first_line, int64_t lines,
                 int64_t first_across, int64_t width, int block_rows) {
  if (scales == nullptr) return;
  const int64_t across = (width + kBlock - 1) / kBlock;
  for (int64_t line = 0; line < lines; line += block_rows) {
    scales[(first_line + line) / block_rows * across + first_across / kBlock] = of_lines[line];
  }
}

// The amax that delayed scaling uses; 0 if there is no history yet.
float LargestOfHistory(const QuantizeArgs& args) {
  return args.history == nullptr
             ? 0
             : *std::max_element(args.history, args.history + model::kAmaxSteps);
}

class QuantizeInstruction : public Instruction {
 public:
  QuantizeInstruction(const QuantizeArgs& args, const KernelTable& kernels, char* scratch,
                      int threads, Overwrites overwrites)
      : args_(args),
        kernels_(kernels),
        format_(args.e5m2 ? Float8Format::kE5M2 : Float8Format::kE4M3),
        partial_(reinterpret_cast<float*>(scratch)),
        made_(reinterpret_cast<BFloat16*>(scratch + PartialBytes(threads))),
        threads_(threads),
        overwrites_(overwrites) {}

  Status Run(const RunOptions& options) override {
    const float of_steps = LargestOfHistory(args_);
    const bool has_history = of_steps > 0, goes_twice = args_.block_rows == 0 && !has_history;
    if (goes_twice)
      Parallel(threads_, [this](int thread) { partial_[thread] = LargestOfRows(thread); });
    scale_ = has_history ? DelayedScaleOf(format_, of_steps)
                         : ScaleOf(format_, goes_twice ? LargestOfThreads() : 0);
    Parallel(threads_, [&](int thread) { partial_[thread] = QuantizeRows(thread, goes_twice); });
    if (args_.block_rows == 0)
      *(args_.rows_scale != nullptr ? args_.rows_scale : args_.columns_scale) = scale_;
    if (args_.amax == nullptr) return OkStatus();
    const float largest = LargestOfThreads();
    *args_.amax =
        Accumulates(overwrites_, options) ? LargerMagnitude(*args_.amax, largest) : largest;
    return OkStatus();
  }

  static int64_t PartialBytes(int threads) {
    return RoundUp(threads * static_cast<int64_t>(sizeof(float)), 64);
  }
  static int64_t BlockElements(const QuantizeArgs& args) {
    return std::min(kBlock, args.rows) * args.columns;
  }
  static int64_t MadeElements(const QuantizeArgs& args, int threads) {
    if (args.source == QuantizeSource::kValue) return 0;
    return std::max(threads * BlockElements(args),
                    args.block_rows == 0 ? args.rows * args.columns : 0);
  }

 private:
  float LargestOfThreads() const {
    float largest = 0;
    for (int thread = 0; thread < threads_; ++thread)
      largest = LargerMagnitude(largest, partial_[thread]);
    return largest;
  }
  BFloat16* Kept(int64_t row) const { return made_ + row * args_.columns; }

  // Returns the amax of this thread's rows; blocks of rows are distributed over threads
  // round-robin. Keeps the rows that it computes.
  float LargestOfRows(int thread) const {
    int16_t most = 0;
    for (int64_t first = thread * kBlock; first < args_.rows; first += threads_ * kBlock) {
      // One row at a time, so that a computed row is still in cache when its amax is taken.
      for (int64_t row = first; row < std::min(first + kBlock, args_.rows); ++row) {
        most = LargestOf(RowsOf(args_, kernels_, row, 1, Kept(row)), args_.columns, most);
      }
    }
    return NumberOf(most);
  }

  // Returns the amax if it is requested. `again`: LargestOfRows has run before.
  float QuantizeRows(int thread, bool again) const {
    const bool is_kept = again && args_.source != QuantizeSource::kValue;
    Scales of_rows, of_columns;
    of_rows.fill(scale_);
    of_columns.fill(scale_);
    int16_t most = 0;
    Piece piece;
    for (int64_t row = thread * kBlock; row < args_.rows; row += threads_ * kBlock) {
      const int64_t rows = std::min(kBlock, args_.rows - row);
      BFloat16* const made = made_ + thread * BlockElements(args_);
      const BFloat16* const x = is_kept ? Kept(row) : RowsOf(args_, kernels_, row, rows, made);
      for (int64_t column = 0; column < args_.columns; column += kBlock) {
        most = piece.Load(args_, x, row, column, most);
        if (args_.block_rows > 0) {
          BlockScales(piece, format_, args_.block_rows, of_rows, of_columns);
          StoreScales(args_.rows_scale, of_rows, row, piece.rows, column, args_.columns,
                      args_.block_rows);
          StoreScales(args_.columns_scale, of_columns, column, piece.columns, row, args_.rows,
                      args_.block_rows);
        }
        StoreForms(args_, piece, format_, of_rows, of_columns);
      }
    }
    return NumberOf(most);
  }

  const QuantizeArgs args_;
  const KernelTable& kernels_;
  const Float8Format format_;
  float* const partial_;  // amax of each thread
  BFloat16* const made_;  // all computed rows, or one block of rows per thread
  const int threads_;
  const Overwrites overwrites_;
  float scale_ = 0;  // one scale for the whole tensor
};

}  // namespace

int64_t QuantizeScratchBytes(const QuantizeArgs& args, int threads) {
  return QuantizeInstruction::PartialBytes(threads) +
         QuantizeInstruction::MadeElements(args, threads) * static_cast<int64_t>(sizeof(BFloat16));
}

std::unique_ptr<Instruction> MakeQuantize(const QuantizeArgs& args, const KernelTable& kernels,
                                          char* scratch, int threads, Overwrites overwrites) {
  return std::make_unique<QuantizeInstruction>(args, kernels, scratch, threads, overwrites);
}

}  // namespace troupe::kernels::cpu
