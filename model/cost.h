// What a stage program costs: model FLOPs and bytes of collectives, read off its operations.
//
// Convention of model FLOPs, version 1 (facts: Megatron-LM's, causal attention halved): a product
// of [m,k] by [k,n] counts 2mnk; attention counts T²/2 query-key pairs a sample; only matrix
// products and attention count, each backward twice its forward; extents are real ones, never
// padded. One rank's program holds one rank's share.
#ifndef TROUPE_MODEL_COST_H_
#define TROUPE_MODEL_COST_H_

#include <cstdint>
#include <vector>

#include "model/program/program.h"

namespace troupe::model {

double ModelFlops(const Op& op, const Program& program);

// Whole or of a part of the keys, forward or backward: its FLOPs go at a rate of their own.
bool IsAttention(OpKind kind);

struct PartFlops {
  double forward = 0, input_gradient = 0, weight_gradient = 0;
  double recomputed =
      0;  // forward operations made again in the backward pass; no part of the total
  double total() const { return forward + input_gradient + weight_gradient; }
};
// Of one microbatch of a chunk; gradients made within F count by their part.
PartFlops ModelFlops(const Program& program, int chunk_index);
// Of one run of a piece, recomputation included.
double ModelFlops(const Program& program, int chunk_index, Piece piece);

// A collective that sends something: groups of one rank and copies are left out.
struct CollectiveCost {
  OpKind kind;
  CollectiveGroup group;
  CollectivePurpose purpose;
  int64_t payload_bytes = 0;  // reduced, scattered or gathered: the whole on each rank
  // Sent by one rank with the ring algorithm: (n-1)/n of the payload, twice in an all-reduce; of an
  // all_to_all that much of what is expected to be routed.
  double sent_bytes = 0;
};
std::vector<CollectiveCost> Collectives(const Program& program, const std::vector<Op>& ops);

// Bytes that the optimizer and kernels move in one run of `ops`, each operation reading and writing
// main memory.
int64_t BytesMoved(const Program& program, const std::vector<Op>& ops);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_COST_H_
