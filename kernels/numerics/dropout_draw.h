// The random draws of kDropout: 32 uniform bits per element, a pure function of a key and GLOBAL
// coordinates. The bits are those of Philox4x32-10 (base/random.h) on the counter
//
//   step (32 bits) | slot (32) | position (32) | group of channels (32)
//
// An element is kept if its draw is not below the threshold. The four words of a counter belong to
// four channels 16 apart: word w of group 16·b + i belongs to channel 64·b + 16·w + i, so that a
// vector of counters yields vectors of adjacent channels. Pure, thread-safe.
#ifndef TROUPE_KERNELS_NUMERICS_DROPOUT_DRAW_H_
#define TROUPE_KERNELS_NUMERICS_DROPOUT_DRAW_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace troupe::kernels {

// A token of a step. `position` is its row in its sample, independent of document boundaries.
struct DropoutRow {
  uint32_t step, slot, position;
};

inline uint32_t DropoutDraw(uint64_t key, const DropoutRow& row, int64_t channel) {
  const auto group = static_cast<uint32_t>(channel / 64 * 16 + channel % 16);
  return Philox4x32(key, (uint64_t{row.step} << 32) | row.slot,
                    (uint64_t{row.position} << 32) | group)[channel % 64 / 16];
}

// Draws below the result are dropped, a fraction of `probability` to within 2^-32. REQUIRES: 0 <=
// probability < 1.
inline uint32_t DropoutThreshold(double probability) {
  return static_cast<uint32_t>(std::min(std::nearbyint(probability * 0x1p32), 0x1p32 - 1));
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_NUMERICS_DROPOUT_DRAW_H_
