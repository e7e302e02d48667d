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

#include "model/program/collective_attributes.h"
#include "model/program/context_rows.h"
#include "model/program/float8.h"
#include "model/program/optimizer_attributes.h"
#include "model/program/rope_scaling.h"
#include "model/program/router_attributes.h"
#include "model/program/value.h"

namespace troupe::model {

enum class OpKind : uint8_t {
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) k##Kind,
#include "model/program/op_kinds.def"
};
const char* Name(OpKind kind);  // "matmul_grad_weight"
// The reason why devices of XLA do not run this kind; null if they do.
const char* WhyNotOnXla(OpKind kind);

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

using Attributes =
    std::variant<NoAttributes, NormAttributes, VocabAttributes, AttentionAttributes, RopeAttributes,
                 CollectiveAttributes, AllReduceAttributes, ReduceScatterAttributes,
                 AllGatherAttributes, RoutedRowsAttributes, ExchangeHeadsAttributes,
                 RelayoutAttributes, ShiftAttributes, ControlAttributes, AdamWAttributes,
                 SgdAttributes, RouterAttributes, GroupedAttributes, RouterBiasAttributes,
                 PartAttributes, LossAttributes, DropoutAttributes, QuantizeAttributes>;

// Whether operations of `kind` have attributes of this type, by the list of op_kinds.def.
bool AreAttributesOf(OpKind kind, const Attributes& attributes);

// Whether operations of `kind` are collectives or kCopy: whether their attributes, by the same
// list, have a group.
bool IsCollective(OpKind kind);
// The part that all collectives have in common; null for attributes of other operations.
const CollectiveAttributes* FindCollective(const Attributes& attributes);

// The attributes of attention, whole or in parts, forward or backward; null for those of other
// operations.
const AttentionAttributes* FindAttention(const Attributes& attributes);

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

// REQUIRES: `op` is a collective or kCopy.
const CollectiveAttributes& CollectiveOf(const Op& op);
// The way in which a reduction combines its terms, and the dtype in which ranks send them; a sum
// sent as it is for other operations.
ReduceKind ReduceOf(const Op& op);
DType WireOf(const Op& op);
// The number of parts in which a gather or reduce-scatter handles its rows; 1 for other operations.
int RowPartsOf(const Op& op);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_OP_H_
