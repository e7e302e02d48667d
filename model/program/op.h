// Operations of a stage program: few, semantic kinds. One file in model/ops/ per kind (or pair of a kind and its
// gradient) holds shape rule, placement rule, derivative rule, cost and text form; kernels/<backend>/ has a file of
// the same name.
//
// Legend (all local extents): R rows (tokens of a microbatch held by this rank: micro_batch_size × sequence_length),
// T tokens of one sample, H hidden, K in-features, N out-features, Q query heads, G key-value heads, D head dim, F ffn, V vocabulary.
// c = compute dtype (float32 or bfloat16), f = float32, d = float64, i = int32, e4 and e5 = float8 E4M3 and E5M2. "+=": accumulates over the
// microbatches of a step; the op overwrites instead where it is `first_writer` and the run is the first microbatch.
//
// kind                    inputs                                        outputs
// kEmbedding              tokens i[R], table c[V,H]                     y c[R,H]: rows of ids outside
//                                                                       [vocab_offset, vocab_offset+V) are 0
// kEmbeddingGrad          tokens i[R], dy c[R,H]                        dtable f[V,H] +=  (deterministic order)
// kRmsNorm                x c[R,H], w f[H]                              y c[R,H], rstd f[R]
// kAddRmsNorm             a c[R,H], b c[R,H], w f[H]                    sum c[R,H], y c[R,H], rstd f[R]   (fused residual)
// kRmsNormGrad            dy c[R,H], x c[R,H], w f[H], rstd f[R], and   dx c[R,H] (= norm's + dres if given), dw f[H] +=
//                         optionally dres c[R,H]
// kAdd                    a c[R,H], b c[R,H]                            y c[R,H]
// kDropout                x c[R,H], samples i[B,2]: {step, slot} of     y c[R,H]: x · 1/(1-p), or 0 where the draw of (key, step,
//                         each sample                                   slot, position, channel) falls below p (kernels/
//                                                                       dropout_draw.h). Step 0, an evaluation's: y = x. Its
//                                                                       own derivative
// kMatmul                 x c[R,K], w c[N,K]                            y c[R,N] = x wᵀ
// kMatmulGradInput        dy c[R,N], w c[N,K]                           dx c[R,K] = dy w
// kMatmulGradWeight       dy c[R,N], x c[R,K]                           dw f[N,K] += dyᵀ x
// The three of a quantised layer take their factors in 8 bits, along lines of what is summed over, and the scales of both:
// kMatmul                 x e4[R,K], w e4[N,K], scales of x, of w       y bf16[R,N]
// kMatmulGradInput        dy e5[R,N], wᵀ e4[K,N], scales of dy, of wᵀ   dx bf16[R,K]
// kMatmulGradWeight       dyᵀ e5[N,R], xᵀ e4[K,R], their scales         dw f[N,K] +=
//                                                                       where an element is its code's number · its scale
// kQuantize               x bf16[R,K], of delayed scaling also          of the forms that are asked for q e[R,K] and qᵀ e[K,R],
//                         history f[16]                                 e4 or e5; the scale f[1] of both, with blocks one of
//                                                                       each form: f[R,⌈K/128⌉] of 1 x 128 elements of it or
//                                                                       f[⌈R/128⌉,⌈K/128⌉]; where it `folds` the largest
//                                                                       magnitude amax f[1], max= over microbatches.
//                                                                       Scales are powers of two (kernels/float8.h). Where its
//                                                                       `source` makes x it takes gu, or dy and gu, in x's place
// kAmaxHistory            control d[lanes], amax f[1]… reduced,         none: each history moves one step on, and its amax is the
//                         history f[16]… of each                        first. Nothing changes if lane nonfinite is not 0
// kRope                   qkv c[R,(Q+2G)D], positions i[R]              y like qkv: q and k heads rotated (rotate_half
//                                                                       pairs i, i+D/2), v copied; `inverse` rotates back
// kAttention              qkv c[R,(Q+2G)D], with the document mask      o c[R,QD], lse f[R,Q] (natural log); samples of T
//                         also documents i[R]                           rows do not see each other; scale 1/sqrt(D)
// kAttentionGrad          do c[R,QD], qkv, o, lse, with the document    dqkv c[R,(Q+2G)D]
//                         mask also documents
// kSplitHeads             qkv c[R,(Q+2G)D]                              q c[R,QD], kv c[R,2GD]
// kJoinHeads              q c[R,QD], kv c[R,2GD]                        qkv c[R,(Q+2G)D]
// kShift                  x, Shard(0) on the group                      y like x: x of the rank `shift` places before this
//                                                                       one in the group, which is a ring
// kAttentionPart          q c[R,QD], kv c[R,2GD] of another rank of     o f[R,QD] (c if `last`), lse f[R,Q]: attention to
//                         context, with the document mask documents i   the keys of this part and of all parts before it.
//                         [samples·T] of whole samples; of a later      R rows are a head and a tail chunk of each sample
//                         part o f[R,QD], lse f[R,Q] of the one before
// kAttentionPartGrad      do c[R,QD], q, kv, o c[R,QD] and lse of the   dq c[R,QD], dkv c[R,2GD]: of this part alone
//                         last part, with the document mask documents
// kSwiGlu                 gu c[R,2F] (gate|up)                          y c[R,F] = silu(gate)·up
// kSwiGluGrad             dy c[R,F], gu                                 dgu c[R,2F]
// kSoftmaxStats           logits c[R,V], targets i[R]                   max f[R], sums f[2,R]: Σ exp(l - max) and the
//                                                                       target's logit (0 where not in this slice)
// kSoftmaxRescale         sums f[2,R], max f[R], global_max f[R]        y f[2,R]: {sums0·exp(max - global_max), sums1}
// kCrossEntropy           global_max f[R], sums f[2,R], weights f[R]    totals d[2] +=: {Σ weight·nll, Σ weight},
//                                                                       nll = log(sums0) + global_max - sums1
// kCrossEntropyGrad       sums f[2,R], weights f[R], with a z-loss      dsums f[2,R] = {weight/sums0 · (1 + 2·z·lse), -weight}, z: the
//                         global_max f[R] too                           z-loss's coefficient, lse = log(sums0) + global_max: the
//                                                                       derivative of nll + z·lse²
// kSoftmaxRescaleGrad     dsums f[2,R], max, global_max                 y f[2,R] = {dsums0·exp(max - global_max), dsums1}
// kSoftmaxStatsGrad       logits, targets, max, dsums                   dlogits c[R,V] = dsums0·exp(l - max) + dsums1·[target];
//                                                                       may be a view of logits (in place). max carries no
//                                                                       gradient: the combined loss does not depend on it
// kSoftmaxStatsAndGrad    logits c[R,V] of a whole vocabulary,          dlogits c[R,V] = weight/sums0 · (1 + 2·z·lse) · exp(l - max)
//                         targets i[R], weights f[R]                    - weight·[target], which may be a view of logits (in
//                                                                       place); max f[R], sums f[2,R] as of kSoftmaxStats: what
//                                                                       the kinds above make of them, one after the other
// kCopy                   x                                             y: a view of x (Replicated → Copied; no traffic)
// kAllReduce              x… (Partial)                                  y… (Replicated), one for each x. With several
//                                                                       inputs (a bucket of gradients) those that lie one
//                                                                       after the other in memory are one range, padding
//                                                                       (0) included, and reduced at once. In place where y
//                                                                       is a view of x; else x is kept and y written
// kReduceScatter          x (Partial)                                   y (Shard of dim 0): this rank's block of the sum;
//                                                                       blocks are balanced (BalancedRange). Where y is a
//                                                                       view of x (its own block), or the op is
//                                                                       `consumes_input`, x is used up; else it is kept
// kAllGather              x (Shard of dim 0)                            y (Copied, or Replicated where `replicated`): all
//                                                                       blocks in group order. x may be a view of y, its
//                                                                       own block
// kExchangeHeads          x c[R/n,N], Shard of dim 0 (head and tail      y c[R,N/n], Shard of dim 1 by whole heads of every
//                         chunk of each sample)                         segment: all tokens of some heads; `to_rows`: back
// kRelayout               x [R,N], Shard of dim 0 (head and tail        y [R,N], Shard of dim 0 (of each sample a contiguous part);
//                         chunk of each sample)                         `to_head_tail`: back. Only rows that move are sent
// kWait                   outputs and inputs of an asynchronous         none: the collective that was begun is over; until
//                         collective                                    then nothing reads or writes its outputs, nor
//                                                                       writes its inputs
// kAccumulate             x f                                           y f +=, of x's shape
// kCast                   x f or bf16                                   y bf16 or f, the other of the two
// kControlTotals          control d[lanes], totals d[2]                 the same control: lanes loss and weight += totals;
//                                                                       not finite: lane nonfinite = 1 + rank
// kControlRouted          control d[lanes], totals d[3+E]… of routers   the same control: lane dropped += their dropped, lane
//                                                                       routed += their choices of all experts
// kSumOfSquares           control d[lanes], gradients f…                the same control: lane sum_of_squares += Σ g² (in
//                                                                       d, fixed order); not finite: as above
// kControlReduce          control d[lanes]                              the same, reduced over all ranks (purpose control)
// kControlHalt            control d[lanes], halted d[1]                 none: halted = 1 where the step is not finite (a lane
//                                                                       nonfinite or a sum of squares that is not, or no
//                                                                       weight), and stays so; lane halted = halted
// kAdamW                  control d[lanes], learning_rate f[1],         none: applied_steps += 1, and Program::parameters'
//                         applied_steps f[1], gradients f… in the       masters, exp_avg, exp_avg_sq and compute copies
//                         order of Program::parameters                  change in place; bias correction counts
//                                                                       applied_steps, this step among them. g = gradient · scale, where scale = factor/Σweight (0
//                                                                       if Σweight is 0), norm = sqrt(sum_of_squares)/Σweight,
//                                                                       factor = min(1, max_norm/(norm + 1e-6)), 1 if max_norm
//                                                                       is 0. Nothing changes if lane nonfinite or lane
//                                                                       halted is not 0
//
// Mixture of experts. E experts, k experts a token, S slots (rows of the permuted buffer: at most R·k), M rows that
// this rank's experts may receive, L local experts, C counts (one for each pair of sending rank and local expert,
// ranks outermost; the expert of count c is c mod L). Rows beyond the sum of counts are unspecified and never read.
// kRouterLogits           x c[R,H], w f[E,H]                            logits f[R,E] = x wᵀ, products and sums in f
// kRouterLogitsGradInput  dlogits f[R,E], w f[E,H]                      dx c[R,H] = dlogits w
// kRouterLogitsGradWeight dlogits f[R,E], x c[R,H]                      dw f[E,H] += dlogitsᵀ x
// kRouterTopK             logits f[R,E], optionally bias f[E]           weights f[R,k]: scores of the chosen, over their sum
//                                                                       where so asked; experts i[R,k], best first, ties
//                                                                       to the lowest; slots i[R,k]: row in the buffer
//                                                                       sorted by expert, then token; -1 dropped (beyond
//                                                                       the capacity); counts i[E] kept. The bias moves the
//                                                                       choice, never the weights
// kRouterTopKGrad         dweights f[R,k], logits, experts              dlogits f[R,E]
// kRouterLoad             experts i[R,k], weights f[all rows of the      load f[B,E+1] of each of the B samples: choices of each
//                         tensor ranks]                                 expert by this rank's rows, dropped ones included, and
//                                                                       the sum W of their weights
// kRouterSlots            experts i[R,k], slots i[R,k] of all ranks      slots i[R,k]: row in the buffer of this rank's experts,
//                         of the group, one after the other             sorted by expert, then token; -1 of others' experts and
//                                                                       of dropped choices; counts i[L]
// kRouterLoss             logits, load, load of whole samples, counts   totals d[3+E] +=: {Σ W·auxiliary, Σ W·z, dropped,
//                                                                       routed to each expert}, W: a sample's sum of
//                                                                       weights (formulas: model/ops/router_loss.cc)
// kRouterLossGrad         logits, load of whole samples                 dlogits f[R,E]
// kRouterBias             control d[lanes], totals d[3+E], bias f[E]    none: bias_e += rate · sign(mean - routed_e) in place.
//                                                                       Nothing changes if lane nonfinite or halted is not 0
// kPermute                x c[R,H], slots i[R,k]                        y c[S,H]: y[slots[r,j]] = x[r]
// kPermuteGrad            dy c[S,H], slots                              dx c[R,H] = Σ_j dy[slots[r,j]]
// kAllToAll               x c[S,H], sent i[C], received i[C]            y c[M,H]: rows to each rank, as many as its counts
//                         or counts i[C] alone                          in `sent` sum to; or equal blocks of the counts
// kGatherRouted           x c[S,H], counts i[n·C] of all n ranks        y c[M,H] (Copied): the rows of all ranks of the group one
//                                                                       after the other, of each as many as its counts sum to
// kScatterRouted          x c[M,H] (Partial), counts i[n·C]             y c[S,H]: this rank's rows of the sum. Where the op is
//                                                                       `consumes_input` x is used up; else it is kept
// kGroupedMatmul          x c[M,K], w c[L·N,K], counts i[C]             y c[M,N]: each count's rows times its expert's wᵀ
// kGroupedMatmulGradInput dy c[M,N], w, counts                          dx c[M,K]
// kGroupedMatmulGradWeight dy c[M,N], x c[M,K], counts                  dw f[L·N,K] +=; an expert without rows adds 0
// kSwiGlu, kSwiGluGrad    … and counts as a last input                  rows up to the sum of counts alone
// kCombine                x c[S,H], slots, weights f[R,k]               y c[R,H] = Σ_j weights[r,j]·x[slots[r,j]]
// kCombineGrad            dy c[R,H], x, slots, weights                  dx c[S,H], dweights f[R,k] (0 of dropped ones)
//
// Storage: an output may be a view of an input (Value::view_of): kRope, kDropout, kAdd (of a), kSwiGluGrad (of gu),
// kSoftmaxStatsGrad and kSoftmaxStatsAndGrad (of logits), kAllReduce, kCopy, and kAllToAll in a group of one rank. Kernels of these kinds must allow it; for all other kinds outputs
// never overlap inputs.
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

// The mask of attention. Counts pairs so that cost, kernels and FLOPs agree.
//
// kDocument is causal within each document packed into a sample. It reads documents i[R]: of each row the row of its
// sample at which its document begins, hence 0 <= documents[t] <= t, not descending within a sample.
struct Mask {
  enum class Kind : uint8_t { kCausal, kDocument } kind = Kind::kCausal;
  // Query-key pairs seen in one sample of `tokens` tokens, causal T(T+1)/2; of kDocument the most, as if a sample were
  // one document: how many there are only the data know.
  int64_t Pairs(int64_t tokens) const { return tokens * (tokens + 1) / 2; }
};

// Why a collective runs: metrics, watchdog, recorder and traces show it.
enum class CollectivePurpose : uint8_t { kTensor, kSequence, kContext, kDispatch, kUnshard, kGradient, kPipe, kControl };
const char* Name(CollectivePurpose purpose);

struct NoAttributes {};
struct NormAttributes { double eps; };
struct VocabAttributes {
  int64_t vocab_offset = 0;  // first id of this rank's slice
  int64_t vocab_rows = 0;    // ids in this rank's slice
  int64_t vocab_size = 0;    // of the whole vocabulary
};
// Of kCrossEntropy and its gradient, and of kSoftmaxStatsAndGrad.
struct LossAttributes {
  double z_loss_coef = 0;  // the objective has z_loss_coef · Σ weight·lse² besides; the totals do not
};
struct DropoutAttributes {
  double probability = 0;  // p: 0 < p < 1
  uint64_t key = 0;        // of (seed, purpose): which of a model's dropouts it is
  int64_t tokens = 0;      // T of a whole sample
  ContextRows held;        // of each sample, on this rank of context
  TensorRows own;          // of those that its tensor ranks have between them
};
struct AttentionAttributes {
  int64_t query_heads;      // Q, local
  int64_t key_value_heads;  // G, local; divides Q
  int64_t head_dim;         // D
  int64_t tokens;           // T
  Mask mask;
};
// Attention of a rank's queries to the keys of one rank of the context axis: that `shift` places before it.
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
// Of kExchangeHeads.
struct ExchangeAttributes {
  int64_t samples = 0;   // in the rows
  int64_t head_dim = 0;  // columns that stay together
  bool to_rows = false;  // columns → rows, else rows → columns
};
// Of kRelayout.
struct RelayoutAttributes {
  int64_t samples = 0;        // in the rows
  bool to_head_tail = false;  // contiguous parts → head and tail chunks, else the other way
  ChunkLayout from() const { return to_head_tail ? ChunkLayout::kContiguous : ChunkLayout::kHeadTail; }
  ChunkLayout to() const { return to_head_tail ? ChunkLayout::kHeadTail : ChunkLayout::kContiguous; }
};
// How rows are cut over the ranks of a group, in their order.
struct RowCut {
  int64_t unit = 1;    // rows that stay together: blocks are of whole units, which are balanced; the last may be less
  int32_t owner = -1;  // the rank that has all rows, the others none; -1: each has a block
  bool operator==(const RowCut&) const = default;
  // Rows of rank `index` of `ranks`.
  Range Of(int64_t rows, int ranks, int index) const;
};
struct CollectiveAttributes {
  CollectiveGroup group;
  CollectivePurpose purpose;
  ReduceKind reduce = ReduceKind::kSum;
  // Of kShift: how many places further along the ring the input goes.
  int32_t shift = 0;
  // Of kAllGather: the result is Replicated on the group, not Copied.
  bool replicated = false;
  // Of kAllGather: extent of the result's dim 0 on this rank; 0: the input's times the ranks of the group.
  int64_t extent = 0;
  // Of kAllGather and kReduceScatter: equal parts of the whole rows, of each of which a rank has its block
  // (ShardHow::kParts where they are several). What runs has one: passes/tensor_parts.cc cuts the others.
  int32_t row_parts = 1;
  // Of kAllGather and kReduceScatter: the blocks of the ranks.
  RowCut cut;
  // Of kAllReduce: the sum of a whole bucket of gradients, with the padding behind the last.
  bool of_bucket = false;
  // Of kAllGather: the segments of the result, which its blocks do not regard.
  std::vector<Segment> segments;
  // Of kAllToAll with counts, kGatherRouted and kScatterRouted: bounds of the rows that go in and come out.
  int64_t rows_in = 0, rows_out = 0;
  // Of kGatherRouted and kScatterRouted: rows of all ranks together if tokens spread evenly, for costs.
  int64_t expected_rows = 0;
  ExchangeAttributes exchange;
  RelayoutAttributes relayout;
  // Of kAllReduce and kReduceScatter of f32: bf16 where ranks send each other numbers rounded to it. Sums are made in
  // f32, each on one rank; what kAllReduce gives is rounded too.
  DType wire = DType::kFloat32;
};
struct ControlAttributes { int32_t rank; };  // this rank's number in the mesh
struct GroupedAttributes {
  int64_t experts = 0;        // E
  int64_t local_experts = 0;  // L
  int64_t expected_rows = 0;  // if tokens spread evenly: for costs
  bool gate_up = false;       // the output is gate|up
};
struct RouterBiasAttributes { double rate; };
struct AdamWAttributes { double beta1, beta2, eps, weight_decay, max_norm; };

using Attributes = std::variant<NoAttributes, NormAttributes, VocabAttributes, AttentionAttributes, RopeAttributes,
                                CollectiveAttributes, ControlAttributes, AdamWAttributes, RouterAttributes, GroupedAttributes,
                                RouterBiasAttributes, PartAttributes, LossAttributes, DropoutAttributes,
                                QuantizeAttributes>;

// Which part of the chunk's work an op is: forward, gradient of inputs, gradient of weights.
enum class Part : uint8_t { kForward, kInputGradient, kWeightGradient };

struct Op {
  OpKind kind;
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Part part = Part::kForward;
  // Writes its accumulated output afresh on the first microbatch of a step (else every run accumulates).
  bool first_writer = false;
  // Belongs to the derivative although it runs within F (head gradients made where the chunk's logits live): an
  // evaluation skips it.
  bool gradient_in_forward = false;
  // The first input's contents are unspecified afterwards: no later operation reads them.
  bool consumes_input = false;
  // A collective that is only begun here; a later kWait of the same list of operations ends it, or of F what Unshard
  // has begun, and of Reduce what the last microbatch has.
  bool asynchronous = false;
  // Of B and W: runs with the last microbatch of a step alone. It begins a collective that Reduce waits for.
  bool last_microbatch = false;
  // Number of the row chunk of the head that the op belongs to; -1: none.
  int16_t row_chunk = -1;
  // Of an operation of F, or of one that makes the same again in B: number of the layer that it belongs to; -1: none
  // (embedding, head, derivatives).
  int16_t layer = -1;

  bool recomputes() const { return layer >= 0 && part != Part::kForward; }
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_OP_H_
