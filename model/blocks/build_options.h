// The options of a stage program: the model, the rank's place in the mesh, and how the program
// is to be laid out. A plain value; model/check_options.h checks which values can be built.
#ifndef TROUPE_MODEL_BLOCKS_BUILD_OPTIONS_H_
#define TROUPE_MODEL_BLOCKS_BUILD_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/blocks/config.h"
#include "model/optimizers/optimizer_kind.h"
#include "model/passes/passes.h"
#include "model/program/program.h"
#include "model/program/trained_parameters.h"

namespace troupe::model {

// One chunk of this rank.
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
  // Shards the rows of activations over tensor between matmuls: partial sums are reduce-scattered
  // and all-gathered instead of all-reduced. The traffic is the same, and norms and residuals
  // process only a slice.
  bool sequence_parallel = false;
  // The number of equal parts of a microbatch's rows: one part is in flight between tensor ranks
  // while a matmul computes another. 1: all rows of a matmul travel at once. Only for models
  // without experts.
  int tensor_parts = 1;
  // Spreads whole experts over expert × tensor; otherwise the weights of each expert are split over
  // tensor. Needs sequence_parallel.
  bool spread_experts_over_tensor = false;
  // All-gathers the rows of the ranks over which experts are spread; each rank processes the
  // choices of its own experts, and the sums are reduce-scattered. Otherwise all_to_all sends only
  // routed rows.
  bool gather_dispatch = false;
  // Attention over context sends keys and values round a ring; otherwise rows are exchanged against
  // heads.
  bool ring_attention = false;
  // Attention is masked between documents packed into one sample: chunks have the input
  // `documents`.
  bool document_mask = false;
  DType compute_dtype = DType::kFloat32;
  // The dtype in which matrices are gathered over data_shard and expert; matmuls use values rounded
  // to it. Absent: compute_dtype. float32 with compute_dtype bf16 changes only the dtype of the
  // gather.
  std::optional<DType> param_dtype;
  DType buffer_dtype = DType::kFloat32;  // to which the sines and cosines of positions are rounded
  // The dtype in which gradients are sent between data, context and expert ranks and between owners
  // of tied parameters. They are accumulated in float32 over microbatches and ranks.
  DType reduce_dtype = DType::kFloat32;
  // For the linear layers of blocks; needs compute_dtype bfloat16.
  Float8Recipe float8 = Float8Recipe::kNone;
  double z_loss_coef = 0;  // for the head's logits (LossAttributes)
  // Minimum of rows whose logits exist at once; fewer only if a microbatch has fewer rows.
  int64_t head_rows = 1024;
  uint64_t seed = 0;  // for dropout
  OptimizerConfig optimizer;
  std::vector<std::string> no_weight_decay;  // model/program/weight_decay.h
  TrainedParameters trained;
  // Elements of a bucket of gradients that are reduced together; a bucket has at least one
  // parameter.
  int64_t bucket_elements = 40'000'000;
  // The positions of gradients in memory, and the first rows of the blocks of sharded parameters.
  BucketLayout bucket_layout;
  Recomputation recomputation;
  // Dense parameters are sharded by rows over the ranks of data_shard × expert: 0 nothing, 1 the
  // optimizer state and its float32 masters, 2 gradients too, 3 parameters too.
  int zero_stage = 0;
  // For stage 3: divides data_shard into runs of this many neighbours (0: not divided). Rows are
  // divided by position in a run (× expert) first, and each such slice then over the runs. Once per
  // step a rank gathers its position's slice from all runs and keeps it; F and B gather within the
  // run only. Gradients are reduce-scattered within the run first, then across runs.
  int shard_run = 0;
  // Matrices (except vocabulary tables) are not split among the ranks that shard them: each matrix,
  // within its tensor slice, is stored whole on one rank, as matrix optimizers need it in Update.
  // The experts of a bank are stored whole on several ranks. For stages 1 to 3.
  bool whole_matrices = false;
  // After a step that is not finite, later steps are not applied either: for a host that learns the
  // result of a step only after it has submitted the next one.
  bool halts = false;
  // The schedule has overlapped pairs: the F of one chunk interleaves with the backward of another
  // chunk of the rank.
  bool interleaves_pairs = false;
  // Off only in tests and benchmarks: then every collective is waited for immediately.
  bool overlap = true;
  // Off only in tests: the unfused program is the reference for the fused one.
  bool fuse = true;
  // Off only where a search compares the costs of many programs and runs none of them: then the
  // program is not verified, and I and W are empty (SplitBackward fills them).
  bool runs = true;
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_BUILD_OPTIONS_H_
