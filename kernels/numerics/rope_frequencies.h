// Angular frequencies of rotary position embeddings: angle(position, i) = position ·
// RopeFrequency(i).
//
// The frequency is theta^(-2i/D), with Llama 3's scaling if the factor is not 1: wavelengths longer
// than the original context / low_freq_factor are multiplied by the factor, those shorter than the
// original context / high_freq_factor stay unchanged, and the frequency is interpolated in between.
#ifndef TROUPE_KERNELS_NUMERICS_ROPE_FREQUENCIES_H_
#define TROUPE_KERNELS_NUMERICS_ROPE_FREQUENCIES_H_

#include <cstdint>

#include "model/program/op.h"

namespace troupe::kernels {

// Frequency of pair `pair`, in radians per position. REQUIRES: 0 <= pair < head_dim / 2.
double RopeFrequency(const model::RopeAttributes& attributes, int64_t pair);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_NUMERICS_ROPE_FREQUENCIES_H_
