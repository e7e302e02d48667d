// Angular frequencies of rotary position embeddings: angle(position, i) = position ·
// RopeFrequency(i).
//
// theta^(-2i/D), with Llama 3's scaling where the factor is not 1: wavelengths longer than the
// original context over low_freq_factor are stretched by the factor, those shorter than it over
// high_freq_factor stay, and between the two the frequency is interpolated.
#ifndef TROUPE_KERNELS_ROPE_FREQUENCIES_H_
#define TROUPE_KERNELS_ROPE_FREQUENCIES_H_

#include <cstdint>

#include "model/program/op.h"

namespace troupe::kernels {

// Frequency of pair `pair`, 0 <= pair < head_dim / 2, in radians a position.
double RopeFrequency(const model::RopeAttributes& attributes, int64_t pair);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_ROPE_FREQUENCIES_H_
