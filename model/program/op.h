// Operations of a stage program. Their kinds, with the meaning and the shapes of each, are listed
// in op_kinds.def. One file in model/ops/ per kind (or pair of a kind and its gradient) holds the
// shape rule, placement rule, derivative rule and cost; kernels/<backend>/ has a file of the same
// name.
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
#define TROUPE_OP(Kind, name, cpu, cuda) k##Kind,
#include "model/program/op_kinds.def"
};
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
enum class CollectivePurpose : uint8_t {
  kTensor,
  kSequence,
  kContext,
  kDispatch,
  kUnshard,
  kGradient,
  kPipe,
  kControl
};
const char* Name(CollectivePurpose purpose);

struct NoAttributes {};
struct NormAttributes {
  double eps;
};
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
  ChunkLayout from() const {
    return to_head_tail ? ChunkLayout::kContiguous : ChunkLayout::kHeadTail;
  }
  ChunkLayout to() const {
    return to_head_tail ? ChunkLayout::kHeadTail : ChunkLayout::kContiguous;
  }
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
struct ControlAttributes {
  int32_t rank;
};  // this rank's number in the mesh
struct GroupedAttributes {
  int64_t experts = 0;        // E
  int64_t local_experts = 0;  // L
  int64_t expected_rows = 0;  // if tokens spread evenly, for costs
  bool gate_up = false;       // the output is gate|up
};
struct RouterBiasAttributes {
  double rate;
};
struct AdamWAttributes {
  double beta1, beta2, eps, weight_decay, max_norm;
};

using Attributes =
    std::variant<NoAttributes, NormAttributes, VocabAttributes, AttentionAttributes, RopeAttributes,
                 CollectiveAttributes, ControlAttributes, AdamWAttributes, RouterAttributes,
                 GroupedAttributes, RouterBiasAttributes, PartAttributes, LossAttributes,
                 DropoutAttributes, QuantizeAttributes>;

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
