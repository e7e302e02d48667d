#include "kernels/cpu/quantize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/cpu_clones.h"
#include "kernels/bfloat16.h"
#include "kernels/float8.h"
#include "kernels/update_decision.h"
#include "model/program/float8.h"

namespace troupe::kernels::cpu {
namespace {

constexpr int64_t kBlock = model::kFloat8Block;

Float8Format FormatOf(bool e5m2) { return e5m2 ? Float8Format::kE5M2 : Float8Format::kE4M3; }

// Rows of blocks, dealt out to threads one by one.
template <typename Body>
void ForRowsOfBlocks(int64_t rows, int thread, int threads, const Body& body) {
  for (int64_t first = thread * kBlock; first < rows; first += threads * kBlock) {
    body(first, std::min(first + kBlock, rows));
  }
}

// A piece of x of at most kBlock x kBlock, as float32.
struct Piece {
  int64_t first_row, first_column, rows, columns;
  float at[kBlock][kBlock];

  void Load(const QuantizeArgs& args, int64_t row, int64_t column) {
    first_row = row;
    first_column = column;
    rows = std::min(kBlock, args.rows - row);
    columns = std::min(kBlock, args.columns - column);
    const auto* x = static_cast<const BFloat16*>(args.x);
    for (int64_t r = 0; r < rows; ++r) {
      const BFloat16* from = x + (row + r) * args.columns + column;
      for (int64_t c = 0; c < columns; ++c) at[r][c] = ToFloat(from[c]);
    }
  }
};

// Scales of the rows and of the columns of a piece.
using Scales = std::array<float, kBlock>;

void BlockScales(const Piece& piece, Float8Format format, int block_rows, Scales& of_rows, Scales& of_columns) {
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

// Of `count` neighbours, each by a scale of its own: the loops that count.
TROUPE_CPU_CLONES void CodesOfE4M3(const float* x, const float* inverse, int64_t count, uint8_t* codes) {
  for (int64_t i = 0; i < count; ++i) codes[i] = Quantized(Float8Format::kE4M3, x[i], inverse[i]);
}
TROUPE_CPU_CLONES void CodesOfE5M2(const float* x, const float* inverse, int64_t count, uint8_t* codes) {
  for (int64_t i = 0; i < count; ++i) codes[i] = Quantized(Float8Format::kE5M2, x[i], inverse[i]);
}

using Codes = uint8_t[kBlock][kBlock];

void StoreForms(const QuantizeArgs& args, const Piece& piece, Float8Format format, const Scales& of_rows,
                const Scales& of_columns) {
  const auto codes_of = format == Float8Format::kE4M3 ? &CodesOfE4M3 : &CodesOfE5M2;
  Codes codes;
  Scales inverse;
  if (args.rows_form != nullptr) {
    for (int64_t r = 0; r < piece.rows; ++r) {
      inverse.fill(1.0f / of_rows[r]);
      codes_of(piece.at[r], inverse.data(), piece.columns, codes[r]);
      std::memcpy(args.rows_form + (piece.first_row + r) * args.columns + piece.first_column, codes[r],
                  static_cast<size_t>(piece.columns));
    }
  }
  if (args.columns_form == nullptr) return;
  // Where blocks are of one row the columns' codes are others.
  if (args.rows_form == nullptr || args.block_rows == 1) {
    for (int64_t c = 0; c < kBlock; ++c) inverse[c] = 1.0f / of_columns[c];
    for (int64_t r = 0; r < piece.rows; ++r) codes_of(piece.at[r], inverse.data(), piece.columns, codes[r]);
  }
  for (int64_t c = 0; c < piece.columns; ++c) {
    uint8_t* to = args.columns_form + (piece.first_column + c) * args.rows + piece.first_row;
    for (int64_t r = 0; r < piece.rows; ++r) to[r] = codes[r][c];
  }
}

// Scales of one form's blocks that a piece has, `lines` of which are along its rows.
void StoreScales(float* scales, const Scales& of_lines, int64_t first_line, int64_t lines, int64_t first_across,
                 int64_t width, int block_rows) {
  if (scales == nullptr) return;
  const int64_t across = (width + kBlock - 1) / kBlock;
  for (int64_t line = 0; line < lines; line += block_rows) {
    scales[(first_line + line) / block_rows * across + first_across / kBlock] = of_lines[line];
  }
}

// Of all of x; what delayed scaling goes by where there is a history.
float WholeScale(const QuantizeArgs& args, Float8Format format, float amax) {
  if (args.history != nullptr) {
    const float most = *std::max_element(args.history, args.history + model::kAmaxSteps);
    if (most > 0) return DelayedScaleOf(format, most);
  }
  return ScaleOf(format, amax);
}

class AmaxHistoryInstruction : public Instruction {
 public:
  AmaxHistoryInstruction(const double* control, std::vector<AmaxHistoryEntry> entries)
      : control_(control), entries_(std::move(entries)) {}

  Status Run(const RunOptions&) override {
    if (!DecideUpdate(control_, 0).apply) return OkStatus();
    for (const AmaxHistoryEntry& entry : entries_) {
      std::memmove(entry.history + 1, entry.history, (model::kAmaxSteps - 1) * sizeof(float));
      entry.history[0] = *entry.amax;
    }
    return OkStatus();
  }

 private:
  const double* const control_;
  const std::vector<AmaxHistoryEntry> entries_;
};

}  // namespace

void QuantizeAmax(const QuantizeArgs& args, int thread, int threads) {
  float amax = 0;
  if (args.block_rows == 0) {
    const auto* x = static_cast<const BFloat16*>(args.x);
    ForRowsOfBlocks(args.rows, thread, threads, [&](int64_t begin, int64_t end) {
      // Of bfloat16 the magnitudes are in the order of their bits.
      uint16_t most = 0;
      for (int64_t i = begin * args.columns; i < end * args.columns; ++i) {
        most = std::max(most, static_cast<uint16_t>(x[i].bits & 0x7FFF));
      }
      amax = LargerMagnitude(amax, ToFloat(BFloat16{most}));
    });
  }
  args.partial[thread] = amax;
}

void Quantize(const QuantizeArgs& args, int thread, int threads) {
  const Float8Format format = FormatOf(args.e5m2);
  Scales of_rows{}, of_columns{};
  if (args.block_rows == 0) {
    float amax = 0;
    for (int part = 0; part < threads; ++part) amax = LargerMagnitude(amax, args.partial[part]);
    const float scale = WholeScale(args, format, amax);
    of_rows.fill(scale);
    of_columns.fill(scale);
    if (thread == 0) {
      *(args.rows_scale != nullptr ? args.rows_scale : args.columns_scale) = scale;
      if (args.amax != nullptr) *args.amax = args.accumulate ? LargerMagnitude(*args.amax, amax) : amax;
    }
  }
  Piece piece;
  ForRowsOfBlocks(args.rows, thread, threads, [&](int64_t row, int64_t) {
    for (int64_t column = 0; column < args.columns; column += kBlock) {
      piece.Load(args, row, column);
      if (args.block_rows > 0) {
        BlockScales(piece, format, args.block_rows, of_rows, of_columns);
        StoreScales(args.rows_scale, of_rows, row, piece.rows, column, args.columns, args.block_rows);
        StoreScales(args.columns_scale, of_columns, column, piece.columns, row, args.rows, args.block_rows);
      }
      StoreForms(args, piece, format, of_rows, of_columns);
    }
  });
}

void Dequantize(const DequantizeArgs& args, int thread, int threads) {
  std::array<float, 256> numbers;
  for (int code = 0; code < 256; ++code) {
    numbers[code] = FromFloat8(FormatOf(args.e5m2), static_cast<uint8_t>(code));
  }
  const int64_t across = (args.columns + kBlock - 1) / kBlock;
  auto* const y = static_cast<BFloat16*>(args.y);
  BFloat16 turned[kBlock][kBlock];  // a piece, so that what is turned round is written line by line
  ForRowsOfBlocks(args.rows, thread, threads, [&](int64_t begin, int64_t end) {
    for (int64_t first = 0; first < args.columns; first += kBlock) {
      const int64_t width = std::min(kBlock, args.columns - first);
      for (int64_t row = begin; row < end; ++row) {
        const uint8_t* const q = args.q + row * args.columns + first;
        const float scale =
            args.scale[args.block_rows == 0 ? 0 : row / args.block_rows * across + first / kBlock];
        BFloat16* const to = args.transpose ? &turned[0][row - begin] : y + row * args.columns + first;
        const int64_t step = args.transpose ? kBlock : 1;
        // Exact: a number of 8 bits times a power of two.
        for (int64_t c = 0; c < width; ++c) to[c * step] = ToBFloat16(numbers[q[c]] * scale);
      }
      if (!args.transpose) continue;
      for (int64_t c = 0; c < width; ++c) {
        std::memcpy(y + (first + c) * args.rows + begin, turned[c],
                    static_cast<size_t>(end - begin) * sizeof(BFloat16));
      }
    }
  });
}

std::unique_ptr<Instruction> MakeAmaxHistory(const double* control, std::vector<AmaxHistoryEntry> entries) {
  return std::make_unique<AmaxHistoryInstruction>(control, std::move(entries));
}

}  // namespace troupe::kernels::cpu
