// The arguments of kernels, one struct per operation: addresses and extents, identical for all
// backends whose kernels compute on plain arrays. A pointer is const void* where the element type
// is the compute dtype (float32 or bfloat16). The shape letters are those of
// model/program/op_kinds.def. OpArguments (kernels/backend/op_arguments.h) fills the structs in.
#ifndef TROUPE_KERNELS_BACKEND_ARGUMENTS_H_
#define TROUPE_KERNELS_BACKEND_ARGUMENTS_H_

#include <cstdint>

#include "model/program/context_rows.h"
#include "model/program/float8.h"
#include "model/program/router_attributes.h"

namespace troupe::kernels {

struct EmbeddingArgs {
  const int32_t* tokens;  // i[R]
  const void* table;      // c[V,H]
  void* y;                // c[R,H]
  int64_t rows, vocabulary, hidden, vocab_offset;
};
struct EmbeddingGradArgs {
  const int32_t* tokens;  // i[R]
  const void* dy;         // c[R,H]
  float* gradient;        // f[V,H]
  int64_t rows, vocabulary, hidden, vocab_offset;
  bool accumulate;
};
struct RmsNormArgs {
  const void* a;   // c[R,H]
  const void* b;   // c[R,H], added to a before the norm; null: the norm of a alone
  const float* w;  // f[H]
  void* sum;       // c[R,H]: a + b, if b is given
  void* y;         // c[R,H]
  float* rstd;     // f[R]
  int64_t rows, hidden;
  float eps;
};
struct RmsNormGradArgs {
  const void* dy;     // c[R,H]
  const void* x;      // c[R,H]
  const float* w;     // f[H]
  const float* rstd;  // f[R]
  const void* dres;   // c[R,H] or null
  void* dx;           // c[R,H]
  float* dw;          // f[H]
  float* partial;     // scratch f[threads, H]
  int64_t rows, hidden;
  bool accumulate;
};
struct AddArgs {
  const void *a, *b;
  void* y;
  int64_t count;
};
struct AccumulateArgs {
  const float* x;
  float* y;  // += x
  int64_t count;
  bool accumulate;
};
struct CastArgs {
  const float* x;
  void* y;  // bf16
  int64_t count;
};
struct RopeArgs {
  const void* x;             // c[R,(Q+2G)D]
  const int32_t* positions;  // i[R]
  void* y;                   // like x, may be x
  const float*
      table;  // f[table_rows][D]: cosines of the D/2 pairs, then their sines; row = position
  const double* frequencies;  // d[D/2], used for positions beyond the table
  int64_t rows, rotated_heads, copied_heads, head_dim, table_rows;
  bool inverse;
};
struct DropoutArgs {
  const void* x;           // c[R,H]
  const int32_t* samples;  // i[B,2]
  void* y;                 // like x, may be x
  int64_t rows, hidden;
  model::TensorRows own;
  model::ContextRows held;  // rows of each sample
  uint64_t key;
  uint32_t threshold;  // elements with a smaller draw are dropped
  float scale;         // multiplies the elements that are kept
};
struct SplitHeadsArgs {  // `join`: writes qkv from q and kv; otherwise splits qkv
  void* qkv;             // [R, q_bytes + kv_bytes]
  void* q;
  void* kv;
  int64_t rows, q_bytes, kv_bytes;
  bool join;
};
// The query and key rows of each sample; a sample has `tokens` positions.
struct AttentionRows {
  int64_t samples, tokens, query_heads, key_value_heads, head_dim;
  model::ContextRows queries, keys;  // rows of each sample
  const int32_t* documents;          // i[samples·tokens] with a document mask, else null
};
struct AttentionArgs {
  const void *q, *k, *v;               // c; rows are q_stride and kv_stride elements apart
  void* o;                             // c[R,QD], or f if wide_output
  float* lse;                          // f[R,Q]
  const float *merged_o, *merged_lse;  // f[R,QD], f[R,Q] of the softmax's other keys; or null
  char* scratch;                       // AttentionScratchBytes for each thread, contiguous
  int64_t q_stride, kv_stride;
  bool wide_output;
  AttentionRows rows;
};
struct AttentionGradArgs {
  const void* output_gradient;  // c[R,QD]
  const void *q, *k, *v;        // c
  const void* o;                // c[R,QD]
  const float* lse;             // f[R,Q]
  void *dq, *dk, *dv;           // like q, k and v
  char* scratch;
  int64_t q_stride, kv_stride;
  AttentionRows rows;
};
struct SwiGluArgs {
  const void* gu;  // c[R,2F]
  void* y;         // c[R,F]
  int64_t rows, ffn;
  const int32_t* counts;  // i[C], whose sum replaces `rows`; or null
  int64_t num_counts;
};
struct SwiGluGradArgs {
  const void* dy;  // c[R,F]
  const void* gu;  // c[R,2F]
  void* dgu;       // c[R,2F], may be gu
  int64_t rows, ffn;
  const int32_t* counts;  // as in SwiGluArgs
  int64_t num_counts;
};
// Quantises a tensor to FP8 in up to two forms: as stored and transposed.
struct QuantizeArgs {
  model::QuantizeSource source;  // the computation of x; x is bf16[R,K]
  const void* x;                 // x itself, for kValue
  const void* dy;                // bf16[R,K/2], for kSwiGluGrad
  const void* gu;                // bf16[R,2K] for kSwiGlu, bf16[R,K] for kSwiGluGrad
  const float* history;          // f[16] for delayed scaling, or null
  uint8_t* rows_form;            // [R,K] or null
  uint8_t* columns_form;         // [K,R] or null
  float* rows_scale;             // scales of each form, or null; one scale: both the same
  float* columns_scale;
  float* amax;     // f[1], updated by max, or null
  float* partial;  // scratch: amax of parts of the tensor
  int64_t rows, columns;
  int32_t block_rows;  // as in QuantizeAttributes
  bool e5m2;           // else E4M3
  bool accumulate;     // amax = max(amax, new) instead of amax = new
};
struct AmaxHistoryEntry {
  const float* amax;  // f[1]
  float* history;     // f[16]
};
// Dequantises an FP8 operand to bfloat16.
struct DequantizeArgs {
  const uint8_t* q;    // [R,K]
  const float* scale;  // laid out by block_rows, as in QuantizeAttributes
  void* y;             // bf16[R,K], or [K,R] if `transpose`
  int64_t rows, columns;
  int32_t block_rows;
  bool e5m2, transpose;
};
// The matmuls of a linear layer, or of L experts' linear layers whose weight matrices are
// contiguous. With several experts, the counts are the numbers of consecutive rows of each expert.
enum class MatmulKind : uint8_t { kForward, kInputGradient, kWeightGradient };
struct MatmulArgs {
  MatmulKind kind;
  const void* a;  // x c[R,K] for kForward, else dy c[R,N]
  const void* b;  // w c[L·N,K], or x c[R,K] for kWeightGradient
  void* c;        // y c[R,N], dx c[R,K] or dw f[L·N,K]
  int64_t rows, k, n;
  const int32_t* counts;  // i[C]: lengths of consecutive runs of rows; null: one expert has all
  int64_t num_counts, experts;  // count i belongs to expert i mod experts
  bool accumulate;              // for kWeightGradient
};
struct RouterLogitsArgs {
  const void* x;   // c[R,H]
  const float* w;  // f[E,H]
  float* logits;   // f[R,E]
  int64_t rows, hidden, experts;
};
struct RouterLogitsGradInputArgs {
  const float* dlogits;  // f[R,E]
  const float* w;        // f[E,H]
  void* dx;              // c[R,H]
  int64_t rows, hidden, experts;
};
struct RouterLogitsGradWeightArgs {
  const float* dlogits;  // f[R,E]
  const void* x;         // c[R,H]
  float* dw;             // f[E,H]
  int64_t rows, hidden, experts;
  bool accumulate;
};
struct RouterTopKArgs {
  const float* logits;  // f[R,E]
  const float* bias;    // f[E] or null
  float* weights;       // f[R,k]
  int32_t* expert_ids;  // i[R,k] expert of each assignment
  int32_t* slots;       // i[R,k]
  int32_t* counts;      // i[E]
  int64_t rows;
  model::RouterAttributes router;
};
struct RouterTopKGradArgs {
  const float* dweights;      // f[R,k]
  const float* logits;        // f[R,E]
  const int32_t* expert_ids;  // i[R,k]
  float* dlogits;             // f[R,E]
  int64_t rows;
  model::RouterAttributes router;
};
struct RouterLoadArgs {
  const int32_t* expert_ids;  // i[R,k]
  const float* weights;       // f[all rows of the tensor ranks]
  float* load;                // f[B,E+1]
  int64_t rows;               // R
  int64_t samples;            // B
  model::RouterAttributes router;
};
struct RouterSlotsArgs {
  const int32_t* expert_ids;  // i[R,k] of all ranks
  const int32_t* slots;       // i[R,k] of all ranks
  int32_t* own;               // i[R,k]
  int32_t* counts;            // i[L]
  int64_t assignments;        // R·k
  model::RouterAttributes router;
};
struct RouterLossArgs {
  const float* logits;      // f[R,E]
  const float* own_load;    // f[B,E+1], of this rank's rows
  const float* whole_load;  // f[B,E+1]
  const int32_t* counts;    // i[E]
  double* totals;           // d[3+E]
  int64_t rows;
  int64_t samples;
  model::RouterAttributes router;
  bool accumulate;
};
struct RouterLossGradArgs {
  const float* logits;      // f[R,E]
  const float* whole_load;  // f[B,E+1]
  float* dlogits;           // f[R,E]
  int64_t rows;
  model::RouterAttributes router;
};
struct RouterBiasArgs {
  const double* control;  // d[lanes]
  const double* totals;   // d[3+E]
  float* bias;            // f[E]
  int64_t experts;
  double rate;
};
struct PermuteArgs {
  const void* x;         // c[R,H]
  const int32_t* slots;  // i[R,k]
  void* y;               // c[S,H]
  int64_t rows, top_k, hidden;
};
struct CombineArgs {
  const void* x;         // c[S,H]
  const int32_t* slots;  // i[R,k]
  const float* weights;  // f[R,k], or null: 1 each (kPermuteGrad)
  void* y;               // c[R,H]
  int64_t rows, top_k, hidden;
};
struct CombineGradArgs {
  const void* dy;        // c[R,H]
  const void* x;         // c[S,H]
  const int32_t* slots;  // i[R,k]
  const float* weights;  // f[R,k]
  void* dx;              // c[S,H]
  float* dweights;       // f[R,k]
  int64_t rows, top_k, hidden;
};
struct CopyRoutedRowsArgs {  // kGatherRouted and kScatterRouted in a group of one rank
  const void* x;             // c[S,H]
  void* y;                   // c[S,H]
  const int32_t* counts;     // i[C]; their sum is the number of rows copied
  int64_t num_counts;
  int64_t rows, row_bytes;  // rows: upper bound of that sum
};
struct SoftmaxStatsArgs {
  const void* logits;      // c[R,V]
  const int32_t* targets;  // i[R]
  float* max;              // f[R]
  float* sums;             // f[2,R]
  int64_t rows, vocabulary, vocab_offset;
};
struct SoftmaxStatsGradArgs {
  const void* logits;      // c[R,V]
  const int32_t* targets;  // i[R]
  const float* max;        // f[R]
  const float* dsums;      // f[2,R]
  void* dlogits;           // c[R,V], may be logits
  int64_t rows, vocabulary, vocab_offset;
};
struct SoftmaxStatsAndGradArgs {
  const void* logits;      // c[R,V]
  const int32_t* targets;  // i[R]
  const float* weights;    // f[R]
  void* dlogits;           // c[R,V], may be logits
  float* max;              // f[R]
  float* sums;             // f[2,R]
  int64_t rows, vocabulary;
  double z_loss_coef;
};
struct SoftmaxRescaleArgs {
  const float* sums;        // f[2,R]
  const float* max;         // f[R]
  const float* global_max;  // f[R]
  float* y;                 // f[2,R]
  int64_t rows;
};
struct CrossEntropyArgs {
  const float* global_max;  // f[R]
  const float* sums;        // f[2,R]
  const float* weights;     // f[R]
  double* totals;           // d[2]
  int64_t rows;
  bool accumulate;
};
struct CrossEntropyGradArgs {
  const float* sums;     // f[2,R]
  const float* weights;  // f[R]
  float* dsums;          // f[2,R]
  int64_t rows;
  const float* global_max;  // f[R], with a z-loss; else null
  double z_loss_coef;
};
struct SumOfSquaresArgs {
  const float* x;
  int64_t count;
  double* partial;  // d[threads]: each thread adds its part's sum
};
// The most values that an optimizer keeps of each parameter.
inline constexpr int kKeptStates = 2;
// Elements of one parameter that are all decayed or all not.
struct UpdateArgs {
  float* parameter;
  float* states[kKeptStates];  // in the order of OptimizerKind::states
  const float* gradient;
  void* copy;  // bf16 compute copy, or null
  int64_t count;
  bool decays;
};
struct AdamWArgs {
  float gradient_scale, beta1, beta2, eps;
  float decay;               // 1 - lr·weight_decay, for elements that decay
  float step_size;           // lr / (1 - beta1^step)
  float inverse_correction;  // 1 / sqrt(1 - beta2^step)
};
struct SgdArgs {
  float gradient_scale, rate, momentum;
  float decay;  // weight_decay, for elements that decay
  bool nesterov;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_ARGUMENTS_H_
