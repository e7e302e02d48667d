// The attributes of a router's operations. Trivially copyable, so kernels can take the struct
// directly.
#ifndef TROUPE_MODEL_PROGRAM_ROUTER_ATTRIBUTES_H_
#define TROUPE_MODEL_PROGRAM_ROUTER_ATTRIBUTES_H_

#include <cstdint>

#include "model/program/collective_group.h"
#include "model/program/router_score.h"
#include "model/program/value.h"

namespace troupe::model {

struct RouterAttributes {
  RouterScore score = RouterScore::kSoftmax;
  bool normalise = true;  // divide the weights by their sum
  int64_t experts = 0;    // E
  int64_t top_k = 0;      // k
  int64_t tokens = 0;     // T of a whole sample
  // The tokens of each sample whose rows this rank has or shares with its tensor ranks.
  int64_t local_tokens = 0;
  int64_t first_row = 0;     // this rank's first row among the rows of its tensor ranks
  int64_t capacity = 0;      // rows that an expert accepts from this rank's tokens; 0: all
  int64_t slots = 0;         // S
  CollectiveGroup spread;    // for kRouterSlots: the ranks over which experts are spread
  int64_t first_expert = 0;  // first expert of this rank
  int64_t local_experts = 0;
  double aux_loss_coef = 0;  // coefficient of the auxiliary loss
  double z_loss_coef = 0;
  DType compute = DType::kFloat32;  // c
};
// The maximum of experts of a router: kernels keep one token's scores on the stack.
inline constexpr int64_t kMaxExperts = 1024;
// The number of lanes of a router's totals before those of the experts.
inline constexpr int kRouterLanes = 3;
// The lane of the choices dropped because of a capacity.
inline constexpr int kRouterDropped = 2;

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_ROUTER_ATTRIBUTES_H_
