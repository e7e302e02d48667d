// Decides which sample is at each position of training: a pure function of the seed and the
// position.
//
// Definition. The training stream is the concatenation of all training documents in file order, N
// tokens. With sequence length L an epoch holds n = (N - 1) / L samples (rounded down); *row* r of
// the stream is its tokens [r·L, r·L + L], L + 1 of them: L inputs and, shifted by one, L targets.
// The last (N - 1) mod L tokens are in no row.
//
// Step s (from 1) and slot b (from 0, below the global batch size B) have position g = (s - 1)·B +
// b and epoch e = g / n. The row is P(seed, e)(g mod n), where P is a bijection of [0, n): a
// Feistel network on the smallest even number of bits that holds n, keyed by Philox with seed,
// dataset and epoch, and cycle walking until the value is below n (Black and Rogaway, "Ciphers with
// arbitrary finite domains", 2002). Every epoch therefore contains every row exactly once in its
// own order, a step may span two epochs, and any position is computed in O(1) without tables or
// state. Each dataset of a blend (data/blend.h) has its own such order; there g is the number of
// earlier positions that the blend assigned to it.
//
// Immutable, thread-safe.
#ifndef TROUPE_DATA_SAMPLE_ORDER_H_
#define TROUPE_DATA_SAMPLE_ORDER_H_

#include <cstdint>

namespace troupe {

class SampleOrder {
 public:
  // `dataset` is the index in a blend, because each dataset has its own order; 0 without a blend.
  // REQUIRES: samples_per_epoch > 0, dataset >= 0.
  SampleOrder(uint64_t seed, int64_t samples_per_epoch, int64_t dataset = 0);

  int64_t samples_per_epoch() const { return samples_per_epoch_; }

  // Returns the row at `place`, in [0, samples_per_epoch). REQUIRES: place >= 0.
  int64_t Row(int64_t place) const;

 private:
  uint64_t Permute(uint64_t epoch, uint64_t index) const;

  uint64_t key_;
  int64_t samples_per_epoch_;
  int half_bits_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_SAMPLE_ORDER_H_
