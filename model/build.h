// From a model's numbers and a rank's place to its stage program.
//
// Pure; 12 layers take a few milliseconds.
#ifndef TROUPE_MODEL_BUILD_H_
#define TROUPE_MODEL_BUILD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/config.h"
#include "model/passes/passes.h"
#include "model/program/program.h"

namespace troupe::model {

// One of this rank's chunks.
struct ChunkSpec {
  int chunk = 0;  // global number, in model order
  int first_block = 0;
  int block_count = 0;
  bool has_embedding = false;  // first chunk of the model
  bool has_head = false;       // last chunk of the model
};

struct BuildOptions {
  ModelConfig model;
  MeshView mesh;
  std::vector<ChunkSpec> chunks;  // ascending chunk numbers
  int64_t micro_batch_size = 1;   // samples
  int64_t sequence_length = 0;    // tokens
  // Between products the rows of activations are sharded over tensor, whose sums are then scattered
  // and gathered instead of reduced whole: the same traffic, norms and residuals by parts.
  bool sequence_parallel = false;
  // Equal parts of a microbatch's rows of which one travels between tensor ranks while a product computes another;
  // 1: a product's rows travel whole. Of models without experts.
  int tensor_parts = 1;
  // Experts are spread over expert × tensor, nothing of them is split; else the weights of each are split
  // over tensor. Needs sequence_parallel.
  bool spread_experts_over_tensor = false;
  // All rows of the ranks over which experts are spread are gathered on each, which works on its own experts'
  // choices and scatters the sums; else only what is routed travels, by all_to_all.
  bool gather_dispatch = false;
  // Over context attention sends keys and values round a ring; else rows are exchanged against heads.
  bool ring_attention = false;
  // Documents packed into a sample do not see each other: chunks have the input `documents`.
  bool document_mask = false;
  DType compute_dtype = DType::kFloat32;
  // In which matrices are gathered over data_shard and expert and, rounded to it, computed with; absent: compute_dtype. In
  // float32 beside compute_dtype bf16 it changes only what is gathered.
  std::optional<DType> param_dtype;
  DType buffer_dtype = DType::kFloat32;  // to which sines and cosines of positions are rounded
  // In which gradients travel between data, context and expert ranks and between owners; they are added up,
  // over microbatches and ranks, in float32.
  DType reduce_dtype = DType::kFloat32;
  // Of the linear layers of blocks; needs compute_dtype bfloat16.
  Float8Recipe float8 = Float8Recipe::kNone;
  double z_loss_coef = 0;  // of the head's logits (LossAttributes)
  int64_t head_rows = 1024;  // of which logits are there at once, at least, where there are as many
  uint64_t seed = 0;       // of dropout
  AdamWAttributes optimizer = {0.9, 0.95, 1e-8, 0.1, 1.0};
  std::vector<std::string> no_weight_decay;  // model/program/weight_decay.h
  // Elements of a bucket of gradients that are reduced at once; at least one parameter each.
  int64_t bucket_elements = 40'000'000;
  // Where gradients are in memory, and where the blocks of a sharded parameter begin.
  BucketLayout bucket_layout;
  Recomputation recomputation;
  // What of dense parameters is sharded over the ranks of data_shard × expert, by rows: 0 nothing,
  // 1 the optimizer and its float32 masters, 2 gradients too, 3 parameters too.
  int zero_stage = 0;
  // Of stage 3: data_shard is cut into runs of so many neighbours (0: it is not). Rows are cut by place in a run (×
  // expert) first and over the runs inside that: once a step a rank gathers what the runs have of its place and holds
  // it, F and B gather within the run alone, and gradients are scattered within it before they are across.
  int shard_run = 0;
  // Matrices (vocabulary tables apart) are not cut between the ranks that shard them: each is whole, within its tensor
  // slice, on one of them, as optimizers of matrices need it at Update; a bank's experts lie whole on several. Of
  // stages 1 to 3.
  bool whole_matrices = false;
  // After a step that is not finite no later one is applied either: for a host that learns of a step once the next is
  // on its way.
  bool halts = false;
  // The schedule has overlapped pairs, of which F runs interleaved with the backward of another
  // chunk of the rank.
  bool interleaves_pairs = false;
  // Off in tests and benchmarks only: every collective is waited for where it is begun.
  bool overlap = true;
  // Off in tests only: the unfused program is the reference of the fused one.
  bool fuse = true;
};

// The verified program of one rank. A non-finite loss or gradient anywhere makes Update change
// nothing (control lane nonfinite); whether the job then fails or goes on is the executor's
// decision.
//
// INVALID_ARGUMENT names the number and the relation that fails: heads not divisible by the tensor degree, key-value heads
// neither divisible by it nor a divisor, intermediate_size or vocab_size (with sequence parallelism the rows of
// a microbatch) below it, an odd head_dim, chunks
// that are not consecutive, axes that this builder does not spread over.
StatusOr<Program> BuildProgram(const BuildOptions& options);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BUILD_H_
