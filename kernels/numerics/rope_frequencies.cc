#include "kernels/numerics/rope_frequencies.h"

#include <cmath>
#include <numbers>

namespace troupe::kernels {

double RopeFrequency(const model::RopeAttributes& attributes, int64_t pair) {
  const double frequency = std::pow(attributes.theta, -2.0 * static_cast<double>(pair) /
                                                          static_cast<double>(attributes.head_dim));
  const model::RopeScaling& scaling = attributes.scaling;
  if (scaling.factor == 1.0) return frequency;
  const double original = static_cast<double>(scaling.original_max_position_embeddings);
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength < original / scaling.high_freq_factor) return frequency;
  if (wavelength > original / scaling.low_freq_factor) return frequency / scaling.factor;
  const double smooth = (original / wavelength - scaling.low_freq_factor) /
                        (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1.0 - smooth) * frequency / scaling.factor + smooth * frequency;
}

}  // namespace troupe::kernels
