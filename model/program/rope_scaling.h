// The scaling of the frequencies of rotary position embeddings.
#ifndef TROUPE_MODEL_PROGRAM_ROPE_SCALING_H_
#define TROUPE_MODEL_PROGRAM_ROPE_SCALING_H_

#include <cstdint>

namespace troupe::model {

// RoPE frequency scaling of Llama 3; factor 1 means none.
struct RopeScaling {
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position_embeddings = 8192;
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_ROPE_SCALING_H_
