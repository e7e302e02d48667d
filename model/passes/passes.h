// Passes over a differentiated program, program → program, in this order (model/build.cc):
//   hoist_head → quantize_matmuls → quantize_at_source → recompute → fuse → shard_parameters →
//   first_writers → in_place → tensor_parts → overlap → overlap_ends → split_backward → saved_roles
// Each pass leaves a program that verifies (model/program/verifier.h) and prints.
#ifndef TROUPE_MODEL_PASSES_PASSES_H_
#define TROUPE_MODEL_PASSES_PASSES_H_

#include <cstdint>

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// Moves the gradient operations of each row chunk of the head from B to directly after the chunk's
// forward operations (gradient_in_forward), so that its logits are freed there and nothing is
// computed twice.
void HoistHead(Program& program);

// Replaces the operands of matmuls with linear weights in blocks by quantised ones
// (model/program/float8.h). Each value is quantised once; B uses the tensors quantised in F, which
// are saved instead of the original value if nothing else reads it. Weights are quantised in
// Unshard or, with `zero_stage` 3, just before the matmul for which they are gathered; their scale
// always follows from their current amax. Heads, tables, routers and routed experts are not
// quantised.
Status QuantizeMatmuls(Program& program, Float8Recipe recipe, int zero_stage);

// Fuses SwiGLU or its gradient into the kQuantize that is its only reader: kQuantize takes their
// inputs, and the value is never written in bfloat16. FP8 values, scales and amax keep the same
// bits.
void QuantizeAtSource(Program& program);

// The activations that the backward pass recomputes instead of reading saved ones.
struct Recomputation {
  enum class Mode : uint8_t {
    kNone,
    kSelective,  // attention, norms and SwiGLU: cheap relative to the memory saved
    kFull,       // whole layers including collectives: only the inputs of a layer are saved
  };
  Mode mode = Mode::kNone;
  int64_t layers = -1;  // the first `layers` layers of each chunk; -1: all
};

// Recomputes values of the chosen operations in B, each just before its first reader and with the
// bits of F. Values that only gradients of weights read are recomputed in W.
void Recompute(Program& program, const Recomputation& recomputation);

// Replaces add + rms_norm by add_rms_norm, and rms_norm_grad + add of the residual's gradient by
// rms_norm_grad with dres.
void Fuse(Program& program);

// Shards the chunk's parameters over data_shard × expert according to `zero_stage`
// (model/blocks/build_options.h). From stage 2 on the gradients of a microbatch are
// reduce-scattered, bucket by bucket, in the piece that computes them, and this rank's block of the
// sum is added to an accumulator of its size. From stage 3 on parameters are gathered just before
// their first use in F, and again in B, instead of in Unshard. If data_shard is divided into runs,
// these gathers stay within a run, and Unshard still gathers the rank's part across runs. Gradients
// are sent as `reduce_dtype`. A bucket has at most `bucket_elements`, or one gradient.
Status ShardParameters(Program& program, int zero_stage, int64_t bucket_elements,
                       DType reduce_dtype);

// Marks the operation that writes each gradient first in a step (for a microbatch's gradient: in a
// run). Chunks run backward from last to first, and the head's hoisted operations before B.
void MarkFirstWriters(Program& program);

// Makes outputs views of inputs if the kind allows it and no operation reads the input's storage
// afterwards, both in the order F, B and in the order F, I, W.
void ShareStorage(Program& program);

// Splits the transfers between tensor ranks, and the matmuls that write or first read the data, by
// rows into `parts` equal parts, so that one part is in flight while a matmul computes another.
// REQUIRES: the number of rows is a multiple of `parts`; rows that are sharded over tensor are
// sharded in as many parts (ProgramBuilder::ShardRowsOverTensor).
void CutTensorTransfers(Program& program, int parts);

// Begins collectives as early and waits for them as late as their values allow, if there is
// something to compute in between: gathers of parameters in F and B are in flight while the
// previous layer computes, a bucket of gradients until the next one is ready, and sums over tensor
// in B while the gradients of weights are computed. The order depends only on the program's
// structure, so it is identical on all ranks of a group.
void Overlap(Program& program);

// Begins the collectives of Unshard and Reduce without waiting for each in turn: the first reader
// in F waits for a gather of Unshard, and in the last microbatch the reduction of gradients begins
// in B as soon as they are complete.
void OverlapEnds(Program& program);

// Fills I and W with the operations of B according to their `part`.
void SplitBackward(Program& program);

// Sets role kSaved for values computed in F and read in B, and kBoundary for values passed between
// chunks.
void MarkSaved(Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PASSES_PASSES_H_
