// The cost of a stage program, derived from its operations: model FLOPs and bytes of collectives.
//
// Convention for model FLOPs, version 1 (that of Megatron-LM, with causal attention halved): a
// matmul of [m,k] by [k,n] counts 2mnk; attention counts T²/2 query-key pairs per sample. Only
// matmuls and attention count, and backward counts twice forward. Extents are actual, never padded.
// A rank's program contains only the rank's share.
#ifndef TROUPE_MODEL_COST_H_
#define TROUPE_MODEL_COST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "model/program/program.h"

namespace troupe::model {

double ModelFlops(const Op& op, const Program& program);

struct PartFlops {
  double forward = 0, input_gradient = 0, weight_gradient = 0;
  double recomputed =
      0;  // forward operations run again in the backward pass; not part of the total
  double total() const { return forward + input_gradient + weight_gradient; }
};
// FLOPs per microbatch of a chunk. Gradients computed within F count as gradients.
PartFlops ModelFlops(const Program& program, int chunk_index);
// FLOPs of one run of a piece, including recomputation.
double ModelFlops(const Program& program, int chunk_index, Piece piece);

// The cost of a collective that sends data; groups of one rank and copies send none.
struct CollectiveCost {
  OpKind kind;
  CollectiveGroup group;
  CollectivePurpose purpose;
  int64_t payload_bytes = 0;  // reduced, scattered or gathered: the whole size on each rank
  // Bytes that one rank sends with the ring algorithm: (n-1)/n of the payload, twice that for an
  // all-reduce; for an all_to_all (n-1)/n of the expected routed bytes.
  double sent_bytes = 0;
};
// None where `op` sends no data.
std::optional<CollectiveCost> CollectiveCostOf(const Program& program, const Op& op);
// Those of `ops`, in their order.
std::vector<CollectiveCost> Collectives(const Program& program, const std::vector<Op>& ops);

// Bytes that the optimizer and kernels move in one run of `ops` if each operation reads and writes
// main memory.
int64_t BytesMoved(const Program& program, const std::vector<Op>& ops);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_COST_H_
