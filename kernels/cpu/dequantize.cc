#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/backend/update_decision.h"
#include "kernels/cpu/quantize.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/float8.h"
#include "model/program/float8.h"

namespace troupe::kernels::cpu {
namespace {

constexpr int64_t kBlock = model::kFloat8Block;

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

void Dequantize(const DequantizeArgs& args, int thread, int threads) {
  const Float8Format format = args.e5m2 ? Float8Format::kE5M2 : Float8Format::kE4M3;
  std::array<float, 256> numbers;
  for (int code = 0; code < 256; ++code) {
    numbers[code] = FromFloat8(format, static_cast<uint8_t>(code));
  }
  const int64_t across = (args.columns + kBlock - 1) / kBlock;
  auto* const y = static_cast<BFloat16*>(args.y);
  BFloat16 transposed[kBlock][kBlock];  // a transposed block, so that y is written in rows
  for (int64_t begin = thread * kBlock; begin < args.rows; begin += threads * kBlock) {
    const int64_t end = std::min(begin + kBlock, args.rows);
    for (int64_t first = 0; first < args.columns; first += kBlock) {
      const int64_t width = std::min(kBlock, args.columns - first);
      for (int64_t row = begin; row < end; ++row) {
        const uint8_t* const q = args.q + row * args.columns + first;
        const float scale =
            args.scale[args.block_rows == 0 ? 0 : row / args.block_rows * across + first / kBlock];
        BFloat16* const to =
            args.transpose ? &transposed[0][row - begin] : y + row * args.columns + first;
        const int64_t step = args.transpose ? kBlock : 1;
        // Exact: an FP8 number times a power of two.
        for (int64_t c = 0; c < width; ++c) to[c * step] = ToBFloat16(numbers[q[c]] * scale);
      }
      if (!args.transpose) continue;
      for (int64_t c = 0; c < width; ++c) {
        std::memcpy(y + (first + c) * args.rows + begin, transposed[c],
                    static_cast<size_t>(end - begin) * sizeof(BFloat16));
      }
    }
  }
}

std::unique_ptr<Instruction> MakeAmaxHistory(const double* control,
                                             std::vector<AmaxHistoryEntry> entries) {
  return std::make_unique<AmaxHistoryInstruction>(control, std::move(entries));
}

}  // namespace troupe::kernels::cpu
