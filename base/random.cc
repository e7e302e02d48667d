#include "base/random.h"

#include <cmath>
#include <numbers>

namespace troupe {

std::array<uint32_t, 4> Philox4x32(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c0;
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c2;
    const uint32_t n0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    const uint32_t n2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c1 = static_cast<uint32_t>(product1);
    c3 = static_cast<uint32_t>(product0);
    c0 = n0;
    c2 = n2;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

uint64_t RandomKey(uint64_t seed, std::string_view purpose) {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a, then mixed with the seed by Philox
  for (unsigned char c : purpose) hash = (hash ^ c) * 0x100000001B3;
  const auto words = Philox4x32(seed, 0x74726F757065, hash);
  return (uint64_t{words[1]} << 32) | words[0];
}

double Normal(uint64_t key, uint64_t index) {
  const auto words = Philox4x32(key, 1, index);
  const uint64_t a = (uint64_t{words[1]} << 32) | words[0];
  const uint64_t b = (uint64_t{words[3]} << 32) | words[2];
  const double radius =
      std::sqrt(-2.0 * std::log((static_cast<double>(a >> 11) + 1.0) * 0x1.0p-53));
  return radius * std::cos(2.0 * std::numbers::pi * static_cast<double>(b >> 11) * 0x1.0p-53);
}

}  // namespace troupe
