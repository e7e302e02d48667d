// What kDropout draws: 32 uniform bits of each element, a pure function of a key and GLOBAL coordinates,
// by Philox4x32-10 (base/random.h) on the counter
//
//   step (32 bits) | slot (32) | position (32) | group of channels (32)
//
// An element is kept where its bits are not below the threshold. One counter's four words belong to
// four channels 16 apart: word w of group 16·b + i to channel 64·b + 16·w + i, so that a vector of
// counters yields vectors of neighbouring channels. Pure, thread-safe.
#ifndef TROUPE_KERNELS_DROPOUT_DRAW_H_
#define TROUPE_KERNELS_DROPOUT_DRAW_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace troupe::kernels {

// A token of a step: `position` is its row in its sample, whichever document it is of.
struct DropoutRow {
  uint32_t step, slot, position;
};

inline uint32_t DropoutDraw(uint64_t key, const DropoutRow& row, int64_t channel) {
  const auto group = static_cast<uint32_t>(channel / 64 * 16 + channel % 16);
  return Philox4x32(key, (uint64_t{row.step} << 32) | row.slot,
                    (uint64_t{row.position} << 32) | group)[channel % 64 / 16];
}

// Draws below it are dropped: a share of `probability` within 2^-32. REQUIRES: 0 <= probability < 1.
inline uint32_t DropoutThreshold(double probability) {
  return static_cast<uint32_t>(std::min(std::nearbyint(probability * 0x1p32), 0x1p32 - 1));
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_DROPOUT_DRAW_H_
