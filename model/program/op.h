// Operations of a stage program: few, semantic kinds. One file in model/ops/ per kind (or pair of a
// kind and its gradient) holds the shape rule, placement rule, derivative rule and cost;
// kernels/<backend>/ has a file of the same name.
//
// Legend (all extents are local):
//   R rows (tokens of a microbatch on this rank: micro_batch_size × sequence_length), T tokens of
//   one sample, B samples, H hidden, K in-features, N out-features, Q query heads, G key-value
//   heads, D head dim, F ffn, V vocabulary; c compute dtype (float32 or bfloat16), f float32,
//   d float64, i int32, e4 and e5 float8 E4M3 and E5M2, e either of them.
// "kind: inputs → outputs". "+=" accumulates over the microbatches of a step; the operation
// overwrites instead if it is `first_writer` and the run is the first microbatch.
//
// kEmbedding: tokens i[R], table c[V,H] → y c[R,H]. Rows of ids outside [vocab_offset,
//     vocab_offset+V) are 0.
// kEmbeddingGrad: tokens i[R], dy c[R,H] → dtable f[V,H] +=, in a deterministic order.
// kRmsNorm: x c[R,H], w f[H] → y c[R,H], rstd f[R].
// kAddRmsNorm: a c[R,H], b c[R,H], w f[H] → sum c[R,H], y c[R,H], rstd f[R] (fused residual).
// kRmsNormGrad: dy c[R,H], x c[R,H], w f[H], rstd f[R], optionally dres c[R,H] → dx c[R,H] (the
//     norm's gradient, plus dres if given), dw f[H] +=.
// kAdd: a c[R,H], b c[R,H] → y c[R,H].
// kDropout: x c[R,H], samples i[B,2]: {step, slot} of each sample → y c[R,H] = x · 1/(1-p), or 0
//     where the draw of (key, step, slot, position, channel) is below p (kernels/dropout_draw.h).
//     In step 0, an evaluation, y = x. It is its own derivative.
// kMatmul: x c[R,K], w c[N,K] → y c[R,N] = x wᵀ.
// kMatmulGradInput: dy c[R,N], w c[N,K] → dx c[R,K] = dy w.
// kMatmulGradWeight: dy c[R,N], x c[R,K] → dw f[N,K] += dyᵀ x.
//
// In a quantised layer these three take FP8 operands, stored with the summed dim last, and the
// scales of both. An element is the FP8 number times its scale:
// kMatmul: x e4[R,K], w e4[N,K], scales of x, of w → y bf16[R,N].
// kMatmulGradInput: dy e5[R,N], wᵀ e4[K,N], scales of dy, of wᵀ → dx bf16[R,K].
// kMatmulGradWeight: dyᵀ e5[N,R], xᵀ e4[K,R], their scales → dw f[N,K] +=.
// kQuantize: x bf16[R,K], with delayed scaling also history f[16] → the requested forms q e[R,K]
//     and qᵀ e[K,R], followed by scales: one scale f[1] for both forms, or with blocks one tensor
//     per form: f[R,⌈K/128⌉] for 1 x 128 elements of the form, or f[⌈R/128⌉,⌈K/128⌉]; if it `folds`
//     also amax f[1], max= over microbatches. Scales are powers of two (kernels/float8.h). If
//     `source` computes x, the inputs are gu, or dy and gu, instead of x.
// kAmaxHistory: control d[lanes], reduced amax f[1]…, history f[16]… of each → none. Shifts each
//     history by one step and stores its amax as the first entry. Changes nothing if lane nonfinite
//     is not 0.
//
// kRope: qkv c[R,(Q+2G)D], positions i[R] → y like qkv: q and k heads rotated (rotate_half pairs i,
//     i+D/2), v copied; `inverse` rotates back.
// kAttention: qkv c[R,(Q+2G)D], with the document mask also documents i[R] → o c[R,QD], lse f[R,Q]
//     (natural log). Samples of T rows do not attend to each other; scale 1/sqrt(D).
// kAttentionGrad: do c[R,QD], qkv, o, lse, with the document mask also documents → dqkv
//     c[R,(Q+2G)D].
// kSplitHeads: qkv c[R,(Q+2G)D] → q c[R,QD], kv c[R,2GD].
// kJoinHeads: q c[R,QD], kv c[R,2GD] → qkv c[R,(Q+2G)D].
// kShift: x, Shard(0) on the group → y like x: x of the rank `shift` places before this one in the
//     group, which is a ring.
// kAttentionPart: q c[R,QD], kv c[R,2GD] of another context rank, with the document mask documents
//     i[samples·T] of whole samples, for a later part also o f[R,QD], lse f[R,Q] of the previous
//     part → o f[R,QD] (c if `last`), lse f[R,Q]: attention to the keys of this and all previous
//     parts. The R rows are a head and a tail chunk of each sample.
// kAttentionPartGrad: do c[R,QD], q, kv, o c[R,QD] and lse of the last part, with the document mask
//     documents → dq c[R,QD], dkv c[R,2GD] of this part only.
// kSwiGlu: gu c[R,2F] (gate|up) → y c[R,F] = silu(gate)·up.
// kSwiGluGrad: dy c[R,F], gu → dgu c[R,2F].
// kSoftmaxStats: logits c[R,V], targets i[R] → max f[R], sums f[2,R]: Σ exp(l - max) and the
//     target's logit (0 if not in this slice).
// kSoftmaxRescale: sums f[2,R], max f[R], global_max f[R] → y f[2,R] = {sums0·exp(max -
//     global_max), sums1}.
// kCrossEntropy: global_max f[R], sums f[2,R], weights f[R] → totals d[2] +=: {Σ weight·nll, Σ
//     weight}, nll = log(sums0) + global_max - sums1.
// kCrossEntropyGrad: sums f[2,R], weights f[R], with a z-loss also global_max f[R] → dsums f[2,R] =
//     {weight/sums0 · (1 + 2·z·lse), -weight}: the derivative of nll + z·lse², with z the z-loss's
//     coefficient and lse = log(sums0) + global_max.
// kSoftmaxRescaleGrad: dsums f[2,R], max, global_max → y f[2,R] = {dsums0·exp(max - global_max),
//     dsums1}.
// kSoftmaxStatsGrad: logits, targets, max, dsums → dlogits c[R,V] = dsums0·exp(l - max) +
//     dsums1·[target]; may be a view of logits (in place). max has no gradient: the combined loss
//     does not depend on it.
// kSoftmaxStatsAndGrad: logits c[R,V] of a whole vocabulary, targets i[R], weights f[R] → dlogits
//     c[R,V] = weight/sums0 · (1 + 2·z·lse) · exp(l - max) - weight·[target], which may be a view
//     of logits (in place); max f[R], sums f[2,R] as in kSoftmaxStats. The results equal those of
//     the kinds above in sequence.
//
// kCopy: x → y: a view of x (Replicated → Copied; no traffic).
// kAllReduce: x… (Partial) → y… (Replicated), one for each x. With several inputs (a bucket of
//     gradients), those that are consecutive in memory form one range, including padding (0), and
//     are reduced at once. In place if y is a view of x; else x is unchanged.
// kReduceScatter: x (Partial) → y (Shard of dim 0): this rank's block of the sum; `cut` defines the
//     blocks (balanced by default). If y is a view of x (its own block) or the operation is
//     `consumes_input`, x is unspecified afterwards; else it is unchanged.
// kAllGather: x (Shard of dim 0) → y (Copied, or Replicated if `replicated`): all blocks in group
//     order. x may be a view of y, its own block.
// kExchangeHeads: x c[R/n,N], Shard of dim 0 (head and tail chunk of each sample) → y c[R,N/n],
//     Shard of dim 1 by whole heads of every segment: all tokens of some heads; `to_rows`: the
//     inverse.
// kRelayout: x [R,N], Shard of dim 0 (head and tail chunk of each sample) → y [R,N], Shard of dim 0
//     (a contiguous part of each sample); `to_head_tail`: the inverse. Sends only rows that move.
// kWait: outputs and inputs of an asynchronous collective → none. Completes the collective; until
//     then no operation may read or write its outputs or write its inputs.
// kAccumulate: x f → y f +=, of x's shape.
// kCast: x f or bf16 → y bf16 or f, the other of the two.
//
// kControlTotals: control d[lanes], totals d[2] → the same control: lanes loss and weight +=
//     totals; if not finite: lane nonfinite = 1 + rank.
// kControlRouted: control d[lanes], totals d[3+E]… of routers → the same control: lane dropped +=
//     their dropped choices, lane routed += their choices of all experts.
// kSumOfSquares: control d[lanes], gradients f… → the same control: lane sum_of_squares += Σ g² (in
//     d, fixed order); if not finite: as above.
// kControlReduce: control d[lanes] → the same, reduced over all ranks (purpose control).
// kControlHalt: control d[lanes], halted d[1] → none. halted = 1, permanently, if the step is not
//     finite (lane nonfinite is set, the sum of squares is not finite, or there is no weight); lane
//     halted = halted.
// kAdamW: control d[lanes], learning_rate f[1], applied_steps f[1], gradients f… in the order of
//     Program::parameters → none. applied_steps += 1; the masters, exp_avg, exp_avg_sq and compute
//     copies of Program::parameters change in place. Bias correction counts applied_steps,
//     including this step. g = gradient · scale, scale = factor/Σweight (0 if Σweight is 0), norm =
//     sqrt(sum_of_squares)/Σweight, factor = min(1, max_norm/(norm + 1e-6)), 1 if max_norm is 0.
//     Changes nothing if lane nonfinite or lane halted is not 0.
//
// Mixture of experts. E experts, k experts per token, S slots (rows of the permuted buffer: at most
// R·k), M rows that this rank's experts may receive, L local experts, C counts (one for each pair
// of sending rank and local expert, ranks outermost; the expert of count c is c mod L). Rows beyond
// the sum of counts are unspecified and never read.
//
// kRouterLogits: x c[R,H], w f[E,H] → logits f[R,E] = x wᵀ, computed in f.
// kRouterLogitsGradInput: dlogits f[R,E], w f[E,H] → dx c[R,H] = dlogits w.
// kRouterLogitsGradWeight: dlogits f[R,E], x c[R,H] → dw f[E,H] += dlogitsᵀ x.
// kRouterTopK: logits f[R,E], optionally bias f[E] → weights f[R,k]: scores of the chosen experts,
//     normalised if requested; experts i[R,k], best first, ties to the lowest; slots i[R,k]: row in
//     the buffer sorted by expert, then token, -1 if dropped (beyond the capacity); counts i[E] of
//     kept choices. The bias affects the choice, never the weights.
// kRouterTopKGrad: dweights f[R,k], logits, experts → dlogits f[R,E].
// kRouterLoad: experts i[R,k], weights f[all rows of the tensor ranks] → load f[B,E+1] for each of
//     the B samples: choices of each expert by this rank's rows, including dropped ones, and the
//     sum W of their weights.
// kRouterSlots: experts i[R,k], slots i[R,k] of all ranks of the group, concatenated → slots
//     i[R,k]: row in the buffer of this rank's experts, sorted by expert, then token, -1 for other
//     ranks' experts and dropped choices; counts i[L].
// kRouterLoss: logits, load, load of whole samples, counts → totals d[3+E] +=: {Σ W·auxiliary, Σ
//     W·z, dropped, routed to each expert}, with W a sample's sum of weights (formulas:
//     model/ops/router_loss.cc).
// kRouterLossGrad: logits, load of whole samples → dlogits f[R,E].
// kRouterBias: control d[lanes], totals d[3+E], bias f[E] → none. bias_e += rate · sign(mean -
//     routed_e) in place. Changes nothing if lane nonfinite or halted is not 0.
// kPermute: x c[R,H], slots i[R,k] → y c[S,H]: y[slots[r,j]] = x[r].
// kPermuteGrad: dy c[S,H], slots → dx c[R,H] = Σ_j dy[slots[r,j]].
// kAllToAll: x c[S,H], sent i[C], received i[C] → y c[M,H]: each rank receives as many rows as its
//     counts in `sent` sum to. With counts i[C] as the only input: equal blocks of the counts.
// kGatherRouted: x c[S,H], counts i[n·C] of all n ranks → y c[M,H] (Copied): the rows of all ranks
//     of the group, concatenated; from each rank as many as its counts sum to.
// kScatterRouted: x c[M,H] (Partial), counts i[n·C] → y c[S,H]: this rank's rows of the sum. If the
//     operation is `consumes_input`, x is unspecified afterwards; else it is unchanged.
// kGroupedMatmul: x c[M,K], w c[L·N,K], counts i[C] → y c[M,N]: the rows of each count times its
//     expert's wᵀ.
// kGroupedMatmulGradInput: dy c[M,N], w, counts → dx c[M,K].
// kGroupedMatmulGradWeight: dy c[M,N], x c[M,K], counts → dw f[L·N,K] +=; an expert without rows
//     adds 0.
// kSwiGlu, kSwiGluGrad with counts as the last input: only rows up to the sum of counts.
// kCombine: x c[S,H], slots, weights f[R,k] → y c[R,H] = Σ_j weights[r,j]·x[slots[r,j]].
// kCombineGrad: dy c[R,H], x, slots, weights → dx c[S,H], dweights f[R,k] (0 for dropped choices).
//
// Storage: an output may be a view of an input (Value::view_of) for kRope, kDropout, kAdd (of a),
// kSwiGluGrad (of gu), kSoftmaxStatsGrad and kSoftmaxStatsAndGrad (of logits), kAllReduce,
// kReduceScatter (its own block), kCopy, kAllToAll in a group of one rank, and the operations that
// return the control word. For kAllGather the input may be a view of the output. Kernels of these
// kinds must allow it; for all other kinds outputs never overlap inputs.
#ifndef TROUPE_MODEL_PROGRAM_OP_H_
#define TROUPE_MODEL_PROGRAM_OP_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/config.h"
#include "model/program/collective_group.h"
#include "model/program/context_rows.h"
#include "model/program/float8.h"
#include "model/program/router_attributes.h"
#include "model/program/value.h"

namespace troupe::model {

enum class OpKind : uint8_t {
  kEmbedding, kEmbeddingGrad, kRmsNorm, kAddRmsNorm, kRmsNormGrad, kAdd, kMatmul, kMatmulGradInput,
  kMatmulGradWeight, kRope, kAttention, kAttentionGrad, kSplitHeads, kJoinHeads, kShift, kAttentionPart, kAttentionPartGrad, kSwiGlu, kSwiGluGrad, kSoftmaxStats, kSoftmaxRescale,
  kCrossEntropy, kCrossEntropyGrad, kSoftmaxRescaleGrad, kSoftmaxStatsGrad, kSoftmaxStatsAndGrad, kCopy, kAllReduce, kReduceScatter, kAllGather, kExchangeHeads,
  kWait, kAccumulate, kCast,
  kControlTotals, kControlRouted, kSumOfSquares, kControlReduce, kControlHalt, kAdamW,
  kRouterLogits, kRouterLogitsGradInput, kRouterLogitsGradWeight, kRouterTopK, kRouterTopKGrad, kRouterLoss,
  kRouterLossGrad, kPermute, kPermuteGrad, kAllToAll, kGroupedMatmul, kGroupedMatmulGradInput,
  kGroupedMatmulGradWeight, kCombine, kCombineGrad, kRouterBias, kRouterLoad, kGatherRouted, kScatterRouted, kRouterSlots,
  kDropout, kRelayout, kQuantize, kAmaxHistory,
};
inline constexpr int kNumOpKinds = 64;
const char* Name(OpKind kind);  // "matmul_grad_weight"

// The mask of attention. It counts query-key pairs so that cost, kernels and FLOPs agree.
//
// kDocument is causal within each document packed into a sample. It reads documents i[R]: for each
// row, the row of its sample at which its document begins; so 0 <= documents[t] <= t, not
// descending within a sample.
struct Mask {
  enum class Kind : uint8_t { kCausal, kDocument } kind = Kind::kCausal;
  // The query-key pairs visible in one sample of `tokens` tokens: T(T+1)/2 for kCausal. For
  // kDocument this is the maximum, as if a sample were one document: the actual number depends on
  // the data.
  int64_t Pairs(int64_t tokens) const { return tokens * (tokens + 1) / 2; }
};

// The purpose of a collective: shown by metrics, watchdog, recorder and traces.
enum class CollectivePurpose : uint8_t { kTensor, kSequence, kContext, kDispatch, kUnshard, kGradient, kPipe, kControl };
const char* Name(CollectivePurpose purpose);

struct NoAttributes {};
struct NormAttributes { double eps; };
struct VocabAttributes {
  int64_t vocab_offset = 0;  // first id of this rank's slice
  int64_t vocab_rows = 0;    // ids in this rank's slice
  int64_t vocab_size = 0;    // ids of the whole vocabulary
};
// Attributes of kCrossEntropy and its gradient, and of kSoftmaxStatsAndGrad.
struct LossAttributes {
  // The objective includes z_loss_coef · Σ weight·lse²; the totals do not.
  double z_loss_coef = 0;
};
struct DropoutAttributes {
  double probability = 0;  // p: 0 < p < 1
  uint64_t key = 0;        // key of (seed, purpose), which identifies the dropout
  int64_t tokens = 0;      // T of a whole sample
  ContextRows held;        // rows of each sample on this context rank
  TensorRows own;          // this rank's share of the rows of its tensor ranks
};
struct AttentionAttributes {
  int64_t query_heads;      // Q, local
  int64_t key_value_heads;  // G, local; divides Q
  int64_t head_dim;         // D
  int64_t tokens;           // T
  Mask mask;
};
// The attention of a rank's queries to the keys of the context rank `shift` places before it.
struct PartAttributes {
  AttentionAttributes attention;  // tokens: of whole samples
  int32_t shift = 0;              // part number
  bool last = false;
};
struct RopeAttributes {
  int64_t query_heads, key_value_heads, head_dim;
  double theta;
  RopeScaling scaling;
  bool inverse;
  DType buffer = DType::kFloat32;  // bf16: sines and cosines are rounded to it
};
enum class ReduceKind : uint8_t { kSum, kMax };
// Attributes of kExchangeHeads.
struct ExchangeAttributes {
  int64_t samples = 0;   // in the rows
  int64_t head_dim = 0;  // columns that stay together
  bool to_rows = false;  // columns → rows, else rows → columns
};
// Attributes of kRelayout.
struct RelayoutAttributes {
  int64_t samples = 0;        // in the rows
  bool to_head_tail = false;  // contiguous parts → head and tail chunks, else the inverse
  ChunkLayout from() const { return to_head_tail ? ChunkLayout::kContiguous : ChunkLayout::kHeadTail; }
  ChunkLayout to() const { return to_head_tail ? ChunkLayout::kHeadTail : ChunkLayout::kContiguous; }
};
// The division of rows among the ranks of a group, in group order.
struct RowCut {
  // Rows that stay together: blocks are balanced in whole units; the last block may end with a
  // partial unit.
  int64_t unit = 1;
  // The rank that has all rows, while the others have none; -1: each rank has a block.
  int32_t owner = -1;
  bool operator==(const RowCut&) const = default;
  // The rows of rank `index` of `ranks`.
  Range Of(int64_t rows, int ranks, int index) const;
};
struct CollectiveAttributes {
  CollectiveGroup group;
  CollectivePurpose purpose;
  ReduceKind reduce = ReduceKind::kSum;
  // kShift: the number of places that the input moves along the ring.
  int32_t shift = 0;
  // kAllGather: the result is Replicated on the group, not Copied.
  bool replicated = false;
  // kAllGather: extent of the result's dim 0 on this rank; 0: the input's extent times the ranks of
  // the group.
  int64_t extent = 0;
  // kAllGather and kReduceScatter: the number of equal parts of the whole rows; a rank has its
  // block of each part (ShardHow::kParts if there are several). Operations that run have one part:
  // passes/tensor_parts.cc splits the others.
  int32_t row_parts = 1;
  // kAllGather and kReduceScatter: the blocks of the ranks.
  RowCut cut;
  // kAllReduce: the sum of a whole bucket of gradients, including the padding after the last.
  bool of_bucket = false;
  // kAllGather: the segments of the result; blocks ignore them.
  std::vector<Segment> segments;
  // kAllToAll with counts, kGatherRouted and kScatterRouted: upper bounds of the input and output
  // rows.
  int64_t rows_in = 0, rows_out = 0;
  // kGatherRouted and kScatterRouted: rows of all ranks together if tokens spread evenly, for
  // costs.
  int64_t expected_rows = 0;
  ExchangeAttributes exchange;
  RelayoutAttributes relayout;
  // kAllReduce and kReduceScatter of f32: bf16 if ranks send each other values rounded to it. Sums
  // are computed in f32, each on one rank; the result of kAllReduce is rounded too.
  DType wire = DType::kFloat32;
};
struct ControlAttributes { int32_t rank; };  // this rank's number in the mesh
struct GroupedAttributes {
  int64_t experts = 0;        // E
  int64_t local_experts = 0;  // L
  int64_t expected_rows = 0;  // if tokens spread evenly, for costs
  bool gate_up = false;       // the output is gate|up
};
struct RouterBiasAttributes { double rate; };
struct AdamWAttributes { double beta1, beta2, eps, weight_decay, max_norm; };

using Attributes = std::variant<NoAttributes, NormAttributes, VocabAttributes, AttentionAttributes, RopeAttributes,
                                CollectiveAttributes, ControlAttributes, AdamWAttributes, RouterAttributes, GroupedAttributes,
                                RouterBiasAttributes, PartAttributes, LossAttributes, DropoutAttributes,
                                QuantizeAttributes>;

// The part of the chunk's work that an operation belongs to: forward, gradient of inputs, gradient
// of weights.
enum class Part : uint8_t { kForward, kInputGradient, kWeightGradient };

struct Op {
  OpKind kind;
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Part part = Part::kForward;
  // Overwrites its accumulated output in the first microbatch of a step; otherwise every run
  // accumulates.
  bool first_writer = false;
  // Belongs to the derivative although it runs within F (the head's gradients, computed while the
  // row chunk's logits exist): an evaluation skips it.
  bool gradient_in_forward = false;
  // The first input's contents are unspecified afterwards: no later operation reads them.
  bool consumes_input = false;
  // Only begins a collective; a later kWait of the same list completes it. Exceptions: F waits for
  // collectives that Unshard began, and Reduce for those that the last microbatch began.
  bool asynchronous = false;
  // For operations of B and W: runs only with the last microbatch of a step. It begins a collective
  // that Reduce waits for.
  bool last_microbatch = false;
  // Number of the row chunk of the head to which the operation belongs; -1: none.
  int16_t row_chunk = -1;
  // For an operation of F, or one of B that recomputes it: number of the layer to which it belongs;
  // -1: none (embedding, head, derivatives).
  int16_t layer = -1;

  bool recomputes() const { return layer >= 0 && part != Part::kForward; }
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_OP_H_
