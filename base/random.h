// Counter-based random numbers: a value is a pure function of (key, counter). Initial weights,
// sample order and dropout therefore depend on global coordinates only, never on the layout or on
// how many numbers were drawn before.
//
// Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#ifndef TROUPE_BASE_RANDOM_H_
#define TROUPE_BASE_RANDOM_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe {

// Returns four 32-bit words for the 128-bit counter (high, low) under `key`.
std::array<uint32_t, 4> Philox4x32(uint64_t key, uint64_t counter_high, uint64_t counter_low);

// Derives a 64-bit key from a seed and a purpose ("init/model.norm.weight"); the key is identical
// on every machine.
uint64_t RandomKey(uint64_t seed, std::string_view purpose);

// Returns 64 uniform bits for element `index` under `key`.
inline uint64_t UniformBits(uint64_t key, uint64_t index) {
  const auto words = Philox4x32(key, 0, index);
  return (uint64_t{words[1]} << 32) | words[0];
}

// Returns a uniform value in [0, 1) with 53 bits.
inline double Uniform(uint64_t key, uint64_t index) {
  return static_cast<double>(UniformBits(key, index) >> 11) * 0x1.0p-53;
}

// Returns a standard normal value (Box-Muller on the words of `index`), a pure function of (key,
// index).
double Normal(uint64_t key, uint64_t index);

}  // namespace troupe

#endif  // TROUPE_BASE_RANDOM_H_
