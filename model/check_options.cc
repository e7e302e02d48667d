#include "model/check_options.h"

#include "model/blocks/block_kind.h"
#include "model/blocks/pattern.h"

namespace troupe::model {
namespace {

Status CheckDivides(const char* name, int64_t value, int64_t tensor) {
  if (value > 0 && value % tensor == 0) return OkStatus();
  return InvalidArgument("{} {} must be a positive multiple of tensor_parallel_degree {}", name,
                         value, tensor);
}

Status CheckModel(const ModelConfig& model, int64_t tensor) {
  for (const auto& [name, value] :
       {std::pair("hidden_size", model.hidden_size), std::pair("head_dim", model.head_dim),
        std::pair("intermediate_size", model.intermediate_size),
        std::pair("vocab_size", model.vocab_size)}) {
    if (value <= 0) return InvalidArgument("{} {} must be positive", name, value);
  }
  if (model.head_dim % 2 != 0)
    return InvalidArgument("head_dim {} must be even: RoPE rotates pairs", model.head_dim);
  TROUPE_RETURN_IF_ERROR(CheckDivides("num_attention_heads", model.num_attention_heads, tensor));
  if (model.num_key_value_heads <= 0 ||
      (model.num_key_value_heads % tensor != 0 && tensor % model.num_key_value_heads != 0)) {
    return InvalidArgument(
        "num_key_value_heads {} must be positive, and a multiple or a divisor of "
        "tensor_parallel_degree {}",
        model.num_key_value_heads, tensor);
  }
  if (model.num_attention_heads % model.num_key_value_heads != 0) {
    return InvalidArgument("num_attention_heads {} must be a multiple of num_key_value_heads {}",
                           model.num_attention_heads, model.num_key_value_heads);
  }
  for (const auto& [name, value] : {std::pair("intermediate_size", model.intermediate_size),
                                    std::pair("vocab_size", model.vocab_size)}) {
    if (value < tensor)
      return InvalidArgument("{} {} is below tensor_parallel_degree {}", name, value, tensor);
  }
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    const BlockKind* const kind = FindBlockKind(model.blocks[b]);
    if (kind == nullptr || kind->build == nullptr) {
      return InvalidArgument("block {} is '{}'; the blocks of this build are {}", b,
                             model.blocks[b], BuiltLetters());
    }
  }
  return OkStatus();
}

// The coordinates, and how parameters are sharded.
Status CheckMesh(const BuildOptions& options) {
  const MeshView& mesh = options.mesh;
  for (int a = 0; a < kNumAxes; ++a) {
    if (mesh.degrees.of[a] < 1 || mesh.coordinates.of[a] < 0 ||
        mesh.coordinates.of[a] >= mesh.degrees.of[a]) {
      return InvalidArgument("coordinate {} of axis {} is not below its degree {}",
                             mesh.coordinates.of[a], Name(static_cast<Axis>(a)),
                             mesh.degrees.of[a]);
    }
  }
  if (options.zero_stage < 0 || options.zero_stage > 3)
    return InvalidArgument("zero_stage {} must be from 0 to 3", options.zero_stage);
  const int shards = mesh.degrees[Axis::kDataShard];
  if (options.shard_run != 0 && (options.zero_stage != 3 || options.shard_run < 2 ||
                                 options.shard_run >= shards || shards % options.shard_run != 0)) {
    return InvalidArgument(
        "runs of {} data_shard ranks under zero_stage {}: runs need zero_stage 3, at least two "
        "ranks, and more than one run in data_parallel_shard_degree {}",
        options.shard_run, options.zero_stage, shards);
  }
  return OkStatus();
}

// Checks how context ranks share samples, and their heads.
Status CheckContext(const BuildOptions& options) {
  if (options.micro_batch_size < 1 || options.sequence_length < 1) {
    return InvalidArgument("micro_batch_size {} and sequence_length {} must be positive",
                           options.micro_batch_size, options.sequence_length);
  }
  const int64_t context = options.mesh.degrees[Axis::kContext];
  if (options.sequence_length % (2 * context) != 0 && context > 1) {
    return InvalidArgument(
        "sequence_length {} must be a multiple of 2 · context_parallel_degree {}: every rank has a "
        "head and a tail chunk",
        options.sequence_length, context);
  }
  for (const auto& [name, heads] :
       {std::pair("num_attention_heads", options.model.num_attention_heads),
        std::pair("num_key_value_heads", options.model.num_key_value_heads)}) {
    const int64_t tensor = options.mesh.degrees[Axis::kTensor];
    if (context > 1 && !options.ring_attention && heads % (tensor * context) != 0) {
      return InvalidArgument(
          "{} {} must be a multiple of tensor_parallel_degree {} × context_parallel_degree {}: "
          "all_to_all gives each rank whole heads",
          name, heads, tensor, context);
    }
  }
  return OkStatus();
}

// Checks how tensor ranks share rows.
Status CheckTensorRows(const BuildOptions& options) {
  const int tensor = options.mesh.degrees[Axis::kTensor];
  const int64_t rows =
      options.micro_batch_size * options.sequence_length / options.mesh.degrees[Axis::kContext];
  if (options.sequence_parallel && rows < tensor) {
    return InvalidArgument(
        "{} rows (micro_batch_size {} · sequence_length {}) are below tensor_parallel_degree {}, "
        "over which sequence_parallel shards them",
        rows, options.micro_batch_size, options.sequence_length, tensor);
  }
  const int64_t shares = options.sequence_parallel ? tensor : 1;
  if (options.tensor_parts < 1 ||
      (options.tensor_parts > 1 && rows % (options.tensor_parts * shares) != 0)) {
    return InvalidArgument(
        "{} rows (micro_batch_size {} · sequence_length {}) must be a multiple of "
        "tensor_parallel_parts {} "
        "× {} ranks that shard them",
        rows, options.micro_batch_size, options.sequence_length, options.tensor_parts, shares);
  }
  if (options.tensor_parts > 1 && HasExperts(options.model.blocks)) {
    return InvalidArgument(
        "tensor_parallel_parts {} with a block E: its routers need all rows at once",
        options.tensor_parts);
  }
  return OkStatus();
}

Status CheckPrecision(const BuildOptions& options) {
  if (options.compute_dtype != DType::kFloat32 && options.compute_dtype != DType::kBFloat16) {
    return InvalidArgument("compute_dtype {} must be f32 or bf16", Name(options.compute_dtype));
  }
  for (const auto& [name, dtype] :
       {std::pair("param_dtype", options.param_dtype.value_or(DType::kFloat32)),
        std::pair("buffer_dtype", options.buffer_dtype)}) {
    if (dtype != DType::kFloat32 && dtype != DType::kBFloat16) {
      return InvalidArgument("{} {} must be f32 or bf16", name, Name(dtype));
    }
  }
  if (options.reduce_dtype != DType::kFloat32 && options.reduce_dtype != DType::kBFloat16) {
    return InvalidArgument("reduce_dtype {} must be f32 or bf16", Name(options.reduce_dtype));
  }
  if (options.float8 != Float8Recipe::kNone && options.compute_dtype != DType::kBFloat16) {
    return InvalidArgument("float8 {} with compute_dtype {}: outputs of FP8 matmuls are bf16",
                           Name(options.float8), Name(options.compute_dtype));
  }
  return OkStatus();
}

Status CheckChunks(const BuildOptions& options) {
  if (options.chunks.empty()) return InvalidArgument("a rank must own at least one chunk");
  int last_chunk = -1;
  for (const ChunkSpec& chunk : options.chunks) {
    const int end = chunk.first_block + chunk.block_count;
    if (chunk.chunk <= last_chunk || chunk.first_block < 0 || chunk.block_count < 0 ||
        end > options.model.num_blocks() || (chunk.has_embedding && chunk.first_block != 0) ||
        (chunk.has_head && end != options.model.num_blocks())) {
      return InvalidArgument("chunk {} of blocks [{}, {}){}{} does not fit a model of {} blocks",
                             chunk.chunk, chunk.first_block, end,
                             chunk.has_embedding ? " with embedding" : "",
                             chunk.has_head ? " with head" : "", options.model.num_blocks());
    }
    if (chunk.block_count == 0 && !chunk.has_embedding && !chunk.has_head) {
      return InvalidArgument("chunk {} is empty", chunk.chunk);
    }
    last_chunk = chunk.chunk;
  }
  return OkStatus();
}

}  // namespace

Status CheckOptions(const BuildOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckMesh(options));
  TROUPE_RETURN_IF_ERROR(CheckContext(options));
  if (!(options.model.hidden_dropout >= 0 && options.model.hidden_dropout < 1)) {
    return InvalidArgument("hidden_dropout {} must be in [0, 1)", options.model.hidden_dropout);
  }
  if (!(options.z_loss_coef >= 0)) {
    return InvalidArgument("z_loss_coef {} is negative", options.z_loss_coef);
  }
  TROUPE_RETURN_IF_ERROR(CheckTensorRows(options));
  TROUPE_RETURN_IF_ERROR(CheckPrecision(options));
  if (options.bucket_elements < 1)
    return InvalidArgument("bucket elements {} must be positive", options.bucket_elements);
  if (options.bucket_layout.alignment < 1 || options.bucket_layout.padding < 1) {
    return InvalidArgument("bucket alignment {} and padding {} must be positive",
                           options.bucket_layout.alignment, options.bucket_layout.padding);
  }
  TROUPE_RETURN_IF_ERROR(CheckChunks(options));
  TROUPE_RETURN_IF_ERROR(CheckModel(options.model, options.mesh.degrees[Axis::kTensor]));
  if (options.whole_matrices &&
      options.model.num_key_value_heads < options.mesh.degrees[Axis::kTensor]) {
    return InvalidArgument(
        "whole matrices with num_key_value_heads {} below tensor_parallel_degree {}: ranks that "
        "share a head would split it differently",
        options.model.num_key_value_heads, options.mesh.degrees[Axis::kTensor]);
  }
  const int expert = options.mesh.degrees[Axis::kExpert];
  if (expert > 1 && !HasExperts(options.model.blocks)) {
    return InvalidArgument("expert_parallel_degree {} without a block E", expert);
  }
  for (const BlockKind* kind : BlockKinds()) {
    if (kind->check == nullptr || options.model.blocks.find(kind->letter) == std::string::npos)
      continue;
    TROUPE_RETURN_IF_ERROR(kind->check(options));
  }
  return OkStatus();
}

}  // namespace troupe::model
