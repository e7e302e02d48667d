// The functions that compute a router's scores from its logits.
#ifndef TROUPE_MODEL_PROGRAM_ROUTER_SCORE_H_
#define TROUPE_MODEL_PROGRAM_ROUTER_SCORE_H_

#include <cstdint>

namespace troupe::model {

enum class RouterScore : uint8_t { kSoftmax, kSigmoid };

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_ROUTER_SCORE_H_
