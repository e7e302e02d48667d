// Passes over a differentiated program, program → program, in this order (model/build.cc):
//   hoist_head → quantize_products → quantize_at_source → recompute → fuse → shard_parameters → first_writers → in_place →
//   tensor_parts → overlap → overlap_ends → split_backward → saved_roles
// Each leaves a program that verifies (model/program/verifier.h) and prints.
#ifndef TROUPE_MODEL_PASSES_PASSES_H_
#define TROUPE_MODEL_PASSES_PASSES_H_

#include <cstdint>

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// Moves the gradient operations of each row chunk of the head from B to right behind the chunk's
// forward operations (gradient_in_forward), so that its logits die there and nothing is computed
// twice.
void HoistHead(Program& program);

// Products of blocks with linear weights take quantised factors (model/program/float8.h), each value quantised once, and B
// what F has quantised: it is saved in place of what it was made of, where nothing else reads that. Weights are quantised
// in Unshard, or where they are gathered for a product (`zero_stage` 3) right before it; always by their present largest
// magnitude. Heads, tables, routers and experts of their own stay as they are.
Status QuantizeProducts(Program& program, Float8Recipe recipe, int zero_stage);

// What SwiGLU or its gradient makes for a quantisation alone is made by that: kQuantize takes what they are made of in the
// value's place, and the value is never written in bfloat16. Codes, scales and largest magnitudes stay the same bits.
void QuantizeAtSource(Program& program);

// Which activations the backward pass makes again instead of having them saved.
struct Recomputation {
  enum class Mode : uint8_t {
    kNone,
    kSelective,  // attention, norms and SwiGLU: what costs little for what it saves
    kFull,       // whole layers, collectives among them: only what enters a layer is saved
  };
  Mode mode = Mode::kNone;
  int64_t layers = -1;  // of each chunk, the first so many; -1: all
};

// Makes values of the chosen operations again in B, each right before its first reader, bit for bit
// what F made; what only gradients of weights read is made again in W.
void Recompute(Program& program, const Recomputation& recomputation);

// add + rms_norm → add_rms_norm; rms_norm_grad + add of the residual's gradient → rms_norm_grad
// with dres.
void Fuse(Program& program);

// What of the chunk's parameters is sharded over data_shard × expert, by `zero_stage`
// (model/build.h). From 2 on the gradients of a microbatch are scattered, bucket by bucket, in the
// piece that makes them, and this rank's block of the sum is added to an accumulator of its size.
// From 3 on parameters are gathered right before their first use in F, and again in B, instead of
// in Unshard; where data_shard is cut into runs, within a run: of each the rank holds its part, which Unshard still
// gathers across runs. Gradients travel as `reduce_dtype`. A bucket has at most `bucket_elements`, or one gradient.
Status ShardParameters(Program& program, int zero_stage, int64_t bucket_elements,
                       DType reduce_dtype);

// Marks the operation that writes each gradient first in a step (of a microbatch's gradient: in a run):
// chunks run backward from last to first, and the head's hoisted operations before B.
void MarkFirstWriters(Program& program);

// Makes outputs views of inputs where the kind allows it and nothing reads the input's storage
// afterwards, in the order F, B as well as F, I, W.
void ShareStorage(Program& program);

// Cuts what travels between tensor ranks, and the products that make or first read it, by rows into `parts` equal parts,
// so that one part travels while a product computes another. REQUIRES: rows are a multiple of `parts`, and where they
// are sharded over tensor have been so in as many (ProgramBuilder::ShardRowsOverTensor).
void CutTensorTransfers(Program& program, int parts);

// Begins collectives as early and waits for them as late as their values allow, where there is something
// to compute in between: parameters that F and B gather are on their way while the layer before is
// computed, a bucket of gradients until the next one is ready, sums over tensor in B while weights'
// gradients are computed. The order depends on the program's structure alone: it is the same on all
// ranks of a group.
void Overlap(Program& program);

// Begins the collectives of Unshard and Reduce without waiting for one after the other: what Unshard gathers
// is waited for in F by its first reader, and the sum of gradients begins in B with the last microbatch
// as soon as they are complete.
void OverlapEnds(Program& program);

// Fills I and W with the operations of B by their tags.
void SplitBackward(Program& program);

// Gives role kSaved to values made in F and read in B, and kBoundary to what crosses chunks.
void MarkSaved(Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PASSES_PASSES_H_
