#include "data/sample_order.h"

#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace troupe {
namespace {

// Four rounds make a Feistel network of random functions a pseudo-random permutation; small domains
// need more.
constexpr uint64_t kRounds = 8;

}  // namespace

SampleOrder::SampleOrder(uint64_t seed, int64_t samples_per_epoch, int64_t dataset)
    : key_(RandomKey(
          seed, dataset == 0 ? "data/sample_order" : fmt::format("data/sample_order/{}", dataset))),
      samples_per_epoch_(samples_per_epoch) {
  TROUPE_CHECK(samples_per_epoch > 0 && dataset >= 0);
  const int bits = std::bit_width(static_cast<uint64_t>(samples_per_epoch - 1));
  half_bits_ = (bits + 1) / 2;
}

uint64_t SampleOrder::Permute(uint64_t epoch, uint64_t index) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = index >> half_bits_, right = index & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    // The counter is (epoch, round and half block); half blocks have at most 32 bits.
    const auto words = Philox4x32(key_, epoch, (round << 32) | right);
    const uint64_t next = left ^ (words[0] & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

int64_t SampleOrder::Row(int64_t place) const {
  TROUPE_CHECK(place >= 0);
  const uint64_t epoch = static_cast<uint64_t>(place / samples_per_epoch_);
  uint64_t row = static_cast<uint64_t>(place % samples_per_epoch_);
  // The domain is smaller than four times n, so this takes at most four iterations on average. It
  // terminates because the cycle contains an index below n: the start.
  do {
    row = Permute(epoch, row);
  } while (row >= static_cast<uint64_t>(samples_per_epoch_));
  return static_cast<int64_t>(row);
}

}  // namespace troupe
