#include "plan/job/foreign_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text/edit_distance.h"

namespace troupe {
namespace {

// Notes of several rows.
constexpr std::string_view kFraction = "a fraction of optimizer.lr";
constexpr std::string_view kSamplesOfStep = "samples of a step, over all ranks";
constexpr std::string_view kSamplesOfRank = "samples that a rank computes at once";
constexpr std::string_view kAccumulation =
    "a step accumulates all microbatches of training.global_batch_size: state that and "
    "training.micro_batch_size";
constexpr std::string_view kEpochs =
    "state training.steps: an epoch has as many steps as the data have samples / "
    "training.global_batch_size";
constexpr std::string_view kDtypes = "float32 or bfloat16";
constexpr std::string_view kFloat16 =
    "no job trains in float16: training.compute_dtype can be bfloat16, which needs no loss scale";
constexpr std::string_view kInSamples = "in samples";
constexpr std::string_view kLayers = "\"(AD)x4\" has 4 layers";
constexpr std::string_view kNotModelFolder =
    "model.from is for the directory of a Hugging Face model";
constexpr std::string_view kModelFolder = "the directory of a Hugging Face model";
constexpr std::string_view kTokenizer =
    "`troupe data prepare --tokenizer FILE` tokenizes the data before training";
constexpr std::string_view kPrefix = "the prefix of a dataset of `troupe data prepare`";
constexpr std::string_view kNotShards =
    "parallelism.data_parallel_shard_degree is for ranks that shard as those of ZeRO and FSDP do";
constexpr std::string_view kRanks =
    "the degrees in parallelism, multiplied, are the number of ranks, each on a device";
constexpr std::string_view kReaders =
    "leave it out: each rank reads its own rows, ahead of the step that needs them";
constexpr std::string_view kRecomputation = "selective or full";
constexpr std::string_view kInitialLoad =
    "the path of a checkpoint; `troupe resume` continues a job that ended";
constexpr std::string_view kAdam = "its name is adamw, and optimizer.weight_decay: 0 makes it Adam";
constexpr std::string_view kCuda = "its value is then cuda";
constexpr std::string_view kSteps =
    "every step is recorded, and `troupe watch` shows it: leave the key out";
constexpr std::string_view kTensorboard =
    "`troupe watch JOB --tensorboard DIR` writes the steps of a job for TensorBoard";
constexpr std::string_view kTrackers =
    "examples/python/log_run.py sends the steps of a job to W&B or MLflow";

constexpr ForeignKey kForeignKeys[] = {
    {"learning_rate", "optimizer.lr", ""},
    {"max_lr", "optimizer.lr", ""},
    {"peak_lr", "optimizer.lr", ""},
    {"wd", "optimizer.weight_decay", ""},
    {"betas", "optimizer.beta1", "the second one is optimizer.beta2"},
    {"adam_beta1", "optimizer.beta1", ""},
    {"adam_beta2", "optimizer.beta2", ""},
    {"adam_eps", "optimizer.eps", ""},
    {"adam_epsilon", "optimizer.eps", ""},
    {"epsilon", "optimizer.eps", ""},
    {"optim", "optimizer.name", ""},
    {"optimizer_type", "optimizer.name", ""},
    {"optimizer.type", "optimizer.name", ""},
    {"sgd_momentum", "optimizer.momentum", ""},
    {"adam", "optimizer", kAdam},
    {"adamw", "optimizer", kAdam},
    {"min_lr", "lr_schedule.min_lr_factor", kFraction},
    {"min_learning_rate", "lr_schedule.min_lr_factor", kFraction},
    {"min_lr_ratio", "lr_schedule.min_lr_factor", ""},
    {"lr_scheduler_type", "lr_schedule.decay_type", ""},
    {"lr_decay_style", "lr_schedule.decay_type", ""},
    {"lr_schedule.type", "lr_schedule.decay_type", ""},
    {"lr_schedule.name", "lr_schedule.decay_type", ""},
    {"lr_schedule.scheduler", "lr_schedule.decay_type", ""},
    {"lr_schedule.schedule", "lr_schedule.decay_type", ""},
    {"lr_schedule.decay", "lr_schedule.decay_type", ""},
    {"lr_schedule.style", "lr_schedule.decay_type", ""},
    {"lr_schedule.max_steps", "lr_schedule.decay_steps", ""},
    {"lr_schedule.total_steps", "lr_schedule.decay_steps", ""},
    {"scheduler_type", "lr_schedule.decay_type", ""},
    {"scheduler", "lr_schedule", ""},
    {"lr_scheduler", "lr_schedule", ""},
    {"lr_decay_iters", "lr_schedule.decay_steps", ""},
    {"lr_decay_steps", "lr_schedule.decay_steps", ""},
    {"warmup", "lr_schedule.warmup_steps", ""},
    {"warmup_iters", "lr_schedule.warmup_steps", ""},
    {"lr_warmup_iters", "lr_schedule.warmup_steps", ""},
    {"lr_warmup_steps", "lr_schedule.warmup_steps", ""},
    {"num_warmup_steps", "lr_schedule.warmup_steps", ""},
    {"warmup_ratio", "lr_schedule.warmup_steps", "in steps, the ratio times training.steps"},
    {"batch_size", "training.global_batch_size", kSamplesOfStep},
    {"train_batch_size", "training.global_batch_size", kSamplesOfStep},
    {"gbs", "training.global_batch_size", kSamplesOfStep},
    {"per_device_train_batch_size", "training.micro_batch_size", kSamplesOfRank},
    {"per_device_batch_size", "training.micro_batch_size", kSamplesOfRank},
    {"device_batch_size", "training.micro_batch_size", kSamplesOfRank},
    {"train_micro_batch_size_per_gpu", "training.micro_batch_size", kSamplesOfRank},
    {"micro_batch", "training.micro_batch_size", kSamplesOfRank},
    {"mbs", "training.micro_batch_size", kSamplesOfRank},
    {"gradient_accumulation_steps", "", kAccumulation},
    {"gradient_accumulation", "", kAccumulation},
    {"grad_accum_steps", "", kAccumulation},
    {"accumulate_grad_batches", "", kAccumulation},
    {"max_steps", "training.steps", ""},
    {"max_iters", "training.steps", ""},
    {"train_iters", "training.steps", ""},
    {"train_steps", "training.steps", ""},
    {"num_steps", "training.steps", ""},
    {"total_steps", "training.steps", ""},
    {"iterations", "training.steps", ""},
    {"epochs", "", kEpochs},
    {"num_epochs", "", kEpochs},
    {"max_epochs", "", kEpochs},
    {"num_train_epochs", "", kEpochs},
    {"seed", "training.seed", ""},
    {"random_seed", "training.seed", ""},
    {"manual_seed", "training.seed", ""},
    {"max_seq_length", "training.sequence_length", ""},
    {"max_seq_len", "training.sequence_length", ""},
    {"max_length", "training.sequence_length", ""},
    {"seq_len", "training.sequence_length", ""},
    {"seq_length", "training.sequence_length", ""},
    {"context_length", "training.sequence_length", ""},
    {"block_size", "training.sequence_length", ""},
    {"n_ctx", "training.sequence_length", ""},
    {"n_positions", "training.sequence_length", ""},
    {"cutoff_len", "training.sequence_length", ""},
    {"max_grad_norm", "training.max_norm", ""},
    {"gradient_clipping", "training.max_norm", ""},
    {"gradient_clip_val", "training.max_norm", ""},
    {"grad_clip", "training.max_norm", ""},
    {"clip_grad", "training.max_norm", ""},
    {"clip_grad_norm", "training.max_norm", ""},
    {"dtype", "training.compute_dtype", kDtypes},
    {"torch_dtype", "training.compute_dtype", kDtypes},
    {"precision", "training.compute_dtype", kDtypes},
    {"bf16", "training.compute_dtype", "its value is then bfloat16"},
    {"fp16", "", kFloat16},
    {"float16", "", kFloat16},
    {"loss_scale", "", "no job trains in float16, so there is no loss scale: leave the key out"},
    {"fp8", "training.float8.recipe", ""},
    {"eval_steps", "training.validation_interval", ""},
    {"eval_interval", "training.validation_interval", ""},
    {"val_interval", "training.validation_interval", ""},
    {"val_check_interval", "training.validation_interval", ""},
    {"validation_steps", "training.validation_interval", ""},
    {"eval_iters", "training.validation_samples", kInSamples},
    {"limit_val_batches", "training.validation_samples", kInSamples},
    {"z_loss", "training.z_loss_coef", ""},
    {"z_loss_weight", "training.z_loss_coef", ""},
    {"num_hidden_layers", "model.pattern", kLayers},
    {"num_layers", "model.pattern", kLayers},
    {"n_layers", "model.pattern", kLayers},
    {"n_layer", "model.pattern", kLayers},
    {"n_embd", "model.hidden_size", ""},
    {"n_embed", "model.hidden_size", ""},
    {"d_model", "model.hidden_size", ""},
    {"embed_dim", "model.hidden_size", ""},
    {"hidden_dim", "model.hidden_size", ""},
    {"model_dim", "model.hidden_size", ""},
    {"model.dim", "model.hidden_size", ""},
    {"n_heads", "model.num_attention_heads", ""},
    {"n_head", "model.num_attention_heads", ""},
    {"num_heads", "model.num_attention_heads", ""},
    {"n_kv_heads", "model.num_key_value_heads", ""},
    {"n_kv_head", "model.num_key_value_heads", ""},
    {"num_kv_heads", "model.num_key_value_heads", ""},
    {"num_query_groups", "model.num_key_value_heads", ""},
    {"d_head", "model.head_dim", ""},
    {"kv_channels", "model.head_dim", ""},
    {"ffn_hidden_size", "model.intermediate_size", ""},
    {"ffn_dim", "model.intermediate_size", ""},
    {"d_ff", "model.intermediate_size", ""},
    {"n_inner", "model.intermediate_size", ""},
    {"n_vocab", "model.vocab_size", ""},
    {"vocabulary_size", "model.vocab_size", ""},
    {"init_std", "model.initializer_range", ""},
    {"init_method_std", "model.initializer_range", ""},
    {"initializer_std", "model.initializer_range", ""},
    {"rms_norm_eps", "model.norm_eps", ""},
    {"layer_norm_eps", "model.norm_eps", ""},
    {"layer_norm_epsilon", "model.norm_eps", ""},
    {"layernorm_epsilon", "model.norm_eps", ""},
    {"norm_epsilon", "model.norm_eps", ""},
    {"rope_base", "model.rope_theta", ""},
    {"rotary_base", "model.rope_theta", ""},
    {"rotary_emb_base", "model.rope_theta", ""},
    {"tie_embeddings", "model.tie_word_embeddings", ""},
    {"tied_embeddings", "model.tie_word_embeddings", ""},
    {"untie_embeddings_and_output_weights", "model.tie_word_embeddings", "its opposite"},
    {"dropout", "model.hidden_dropout", ""},
    {"hidden_dropout_prob", "model.hidden_dropout", ""},
    {"resid_pdrop", "model.hidden_dropout", ""},
    {"num_local_experts", "model.num_experts", ""},
    {"n_routed_experts", "model.num_experts", ""},
    {"moe_num_experts", "model.num_experts", ""},
    {"top_k", "model.num_experts_per_tok", ""},
    {"moe_router_topk", "model.num_experts_per_tok", ""},
    {"n_shared_experts", "model.num_shared_experts", ""},
    {"aux_loss_coef", "model.router_aux_loss_coef", ""},
    {"moe_aux_loss_coeff", "model.router_aux_loss_coef", ""},
    {"moe_z_loss_coeff", "model.router_z_loss_coef", ""},
    {"model.name", "model.preset", kNotModelFolder},
    {"model_name", "model.preset", kNotModelFolder},
    {"model.path", "model.from", kModelFolder},
    {"model.dir", "model.from", kModelFolder},
    {"model_name_or_path", "model.from", kModelFolder},
    {"pretrained_model_name_or_path", "model.from", kModelFolder},
    {"base_model", "model.from", kModelFolder},
    {"tokenizer", "", kTokenizer},
    {"tokenizer_path", "", kTokenizer},
    {"tokenizer_name", "", kTokenizer},
    {"tokenizer_model", "", kTokenizer},
    {"data.dir", "data.train", kPrefix},
    {"data.path", "data.train", kPrefix},
    {"data_dir", "data.train", kPrefix},
    {"data_path", "data.train", kPrefix},
    {"dataset", "data.train", kPrefix},
    {"dataset_name", "data.train", kPrefix},
    {"dataset_path", "data.train", kPrefix},
    {"train_data", "data.train", kPrefix},
    {"train_data_path", "data.train", kPrefix},
    {"train_file", "data.train", kPrefix},
    {"train_files", "data.train", kPrefix},
    {"eval_data", "data.validation", kPrefix},
    {"eval_dataset", "data.validation", kPrefix},
    {"valid_data", "data.validation", kPrefix},
    {"valid_data_path", "data.validation", kPrefix},
    {"validation_file", "data.validation", kPrefix},
    {"val_fraction", "data.validation_fraction", ""},
    {"validation_split", "data.validation_fraction", ""},
    {"tp", "parallelism.tensor_parallel_degree", ""},
    {"tp_size", "parallelism.tensor_parallel_degree", ""},
    {"tensor_parallel", "parallelism.tensor_parallel_degree", ""},
    {"tensor_parallel_size", "parallelism.tensor_parallel_degree", ""},
    {"tensor_model_parallel_size", "parallelism.tensor_parallel_degree", ""},
    {"pp", "parallelism.pipeline_parallel_degree", ""},
    {"pp_size", "parallelism.pipeline_parallel_degree", ""},
    {"pipeline_parallel", "parallelism.pipeline_parallel_degree", ""},
    {"pipeline_parallel_size", "parallelism.pipeline_parallel_degree", ""},
    {"pipeline_model_parallel_size", "parallelism.pipeline_parallel_degree", ""},
    {"virtual_pipeline_model_parallel_size", "parallelism.pipeline_parallel_chunks", ""},
    {"pipeline_schedule", "parallelism.pipeline_parallel_schedule", ""},
    {"dp", "parallelism.data_parallel_replicate_degree", kNotShards},
    {"dp_size", "parallelism.data_parallel_replicate_degree", kNotShards},
    {"data_parallel", "parallelism.data_parallel_replicate_degree", kNotShards},
    {"data_parallel_size", "parallelism.data_parallel_replicate_degree", kNotShards},
    {"data_parallel_degree", "parallelism.data_parallel_replicate_degree", kNotShards},
    {"dp_replicate", "parallelism.data_parallel_replicate_degree", ""},
    {"ddp", "parallelism.data_parallel_replicate_degree", ""},
    {"dp_shard", "parallelism.data_parallel_shard_degree", ""},
    {"fsdp", "parallelism.data_parallel_shard_degree", ""},
    {"fsdp_size", "parallelism.data_parallel_shard_degree", ""},
    {"cp", "parallelism.context_parallel_degree", ""},
    {"cp_size", "parallelism.context_parallel_degree", ""},
    {"context_parallel", "parallelism.context_parallel_degree", ""},
    {"context_parallel_size", "parallelism.context_parallel_degree", ""},
    {"ep", "parallelism.expert_parallel_degree", ""},
    {"ep_size", "parallelism.expert_parallel_degree", ""},
    {"expert_parallel", "parallelism.expert_parallel_degree", ""},
    {"expert_parallel_size", "parallelism.expert_parallel_degree", ""},
    {"expert_model_parallel_size", "parallelism.expert_parallel_degree", ""},
    {"etp", "parallelism.expert_tensor_parallel_degree", ""},
    {"expert_tensor_parallel_size", "parallelism.expert_tensor_parallel_degree", ""},
    {"sp", "parallelism.sequence_parallel", ""},
    {"zero_optimization", "parallelism.zero_stage", ""},
    {"num_gpus", "", kRanks},
    {"n_gpus", "", kRanks},
    {"gpus", "", kRanks},
    {"num_devices", "", kRanks},
    {"num_nodes", "", kRanks},
    {"nnodes", "", kRanks},
    {"nproc_per_node", "", kRanks},
    {"world_size", "", kRanks},
    {"workers", "", kRanks},
    {"data.num_workers", "", kReaders},
    {"dataloader_num_workers", "", kReaders},
    {"num_workers", "", kRanks},
    {"gpu", "devices", kCuda},
    {"cuda", "devices", kCuda},
    {"use_cuda", "devices", kCuda},
    {"use_cpu", "devices", "its value is then cpu"},
    {"device", "devices", ""},
    {"device_type", "devices", ""},
    {"accelerator", "devices", ""},
    {"gradient_checkpointing", "activation_recomputation.mode", kRecomputation},
    {"activation_checkpointing", "activation_recomputation.mode", kRecomputation},
    {"recompute_granularity", "activation_recomputation.mode", kRecomputation},
    {"recompute_num_layers", "activation_recomputation.num_layers", ""},
    {"dir", "checkpoint.folder", "for the checkpoints; data.train names the data"},
    {"checkpoint.dir", "checkpoint.folder", ""},
    {"checkpoint.path", "checkpoint.folder", ""},
    {"output_dir", "checkpoint.folder", ""},
    {"out_dir", "checkpoint.folder", ""},
    {"save_dir", "checkpoint.folder", ""},
    {"save_path", "checkpoint.folder", ""},
    {"checkpoint_dir", "checkpoint.folder", ""},
    {"checkpoint_path", "checkpoint.folder", ""},
    {"ckpt_dir", "checkpoint.folder", ""},
    {"save_steps", "checkpoint.interval", ""},
    {"save_interval", "checkpoint.interval", ""},
    {"save_every", "checkpoint.interval", ""},
    {"checkpoint_interval", "checkpoint.interval", ""},
    {"checkpoint_every", "checkpoint.interval", ""},
    {"save_total_limit", "checkpoint.keep_latest_k", ""},
    {"keep_last", "checkpoint.keep_latest_k", ""},
    {"resume_from_checkpoint", "checkpoint.initial_load", kInitialLoad},
    {"resume_from", "checkpoint.initial_load", kInitialLoad},
    {"load_checkpoint", "checkpoint.initial_load", kInitialLoad},
    {"max_retries", "fault_tolerance.max_restarts", ""},
    {"max_failures", "fault_tolerance.max_restarts", ""},
    {"job_name", "name", ""},
    {"run_name", "name", ""},
    {"experiment_name", "name", ""},
    {"namespace", "name", "NAMESPACE.NAME"},
    {"logging_steps", "", kSteps},
    {"log_interval", "", kSteps},
    {"log_every", "", kSteps},
    {"logging_dir", "", kTensorboard},
    {"tensorboard", "", kTensorboard},
    {"tensorboard_dir", "", kTensorboard},
    {"report_to", "", kTrackers},
    {"wandb", "", kTrackers},
    {"wandb_project", "", kTrackers},
    {"mlflow", "", kTrackers},
};

constexpr size_t kLeastNearLetters = 6;  // a shorter word is near to too many others

// Returns the path as the table writes names.
std::string Normalised(std::string_view path) {
  std::string known(path);
  for (char& c : known)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return known;
}

std::string_view LastWordOf(std::string_view path) { return path.substr(path.rfind('.') + 1); }

std::string TextOfRow(const ForeignKey& row) {
  if (row.key.empty()) return fmt::format("; {}", row.note);
  const std::string note = row.note.empty() ? "" : fmt::format(": {}", row.note);
  return fmt::format("; it is called {} here{}", row.key, note);
}

}  // namespace

std::span<const ForeignKey> ForeignKeys() { return kForeignKeys; }

std::string ForeignKeyText(std::string_view path) {
  const std::string known = Normalised(path);
  auto row = std::ranges::find(kForeignKeys, known, &ForeignKey::name);
  if (row == std::end(kForeignKeys))
    row = std::ranges::find(kForeignKeys, LastWordOf(known), &ForeignKey::name);
  return row == std::end(kForeignKeys) ? "" : TextOfRow(*row);
}

std::string NearForeignKeyText(std::string_view path) {
  const std::string known = Normalised(path);
  for (const ForeignKey& row : kForeignKeys) {
    const bool is_path = row.name.find('.') != std::string_view::npos;
    const std::string_view typed = is_path ? known : LastWordOf(known);
    if (std::min(row.name.size(), typed.size()) < kLeastNearLetters) continue;
    if (EditDistance(typed, row.name) <= 1) return TextOfRow(row);
  }
  return "";
}

}  // namespace troupe
