#include "plan/search/chunk_bound.h"

#include <algorithm>

#include "model/pattern.h"
#include "plan/cost/estimate.h"
#include "plan/job/job_choices.h"
#include "plan/validate/reshard.h"

namespace troupe {
namespace {

using model::Axis;

// Parameter tensors of a block, each of which is gathered and reduced separately.
constexpr double kTensorsOfBlock = 3;

}  // namespace

ChunkContents ContentsOf(const model::ModelConfig& model, int first_block, int end_block) {
  ChunkContents chunk;
  const auto kind_of = [&model](int block) {
    return &model::BlockKindOf(model.blocks[static_cast<size_t>(block)]);
  };
  for (const model::BlockKind* kind : model::BlockKinds()) {
    BlockCount blocks = {.kind = kind};
    for (int block = first_block; block < end_block; ++block) {
      if (kind_of(block) != kind) continue;
      ++blocks.count;
      if (block + 1 == end_block) continue;
      const model::BlockKind* const next = kind_of(block + 1);
      blocks.continued += kind->begins_layer && !next->begins_layer && next->outline != nullptr;
    }
    if (blocks.count > 0) chunk.blocks.push_back(blocks);
  }
  chunk.has_embedding = first_block == 0;
  chunk.has_head = end_block == model.num_blocks();
  chunk.owns_head = chunk.has_head && !(model.tie_word_embeddings && chunk.has_embedding);
  return chunk;
}

ChunkBound::ChunkBound(const model::ModelConfig& model, const v1::DeviceProfile& profile,
                       double flops, const v1::JobSpec& spec)
    : model_(model),
      profile_(profile),
      spec_(spec),
      mesh_(spec.parallelism()),
      flops_(flops),
      inner_link_(profile.island()) {
  const v1::LinkProfile& fabric = profile.fabric();
  inner_link_.set_bytes_per_second(
      std::max(inner_link_.bytes_per_second(), fabric.bytes_per_second()));
  inner_link_.set_latency_seconds(
      std::min(inner_link_.latency_seconds(), fabric.latency_seconds()));
  const v1::TrainingSpec& training = spec.training();
  const JobChoices choices = ChoicesOf(spec);
  element_ = choices.compute_dtype == model::DType::kBFloat16 ? 2 : 4;
  held_ = element_;
  float8_ = choices.float8 != model::Float8Recipe::kNone;
  reduced_ = choices.reduce_dtype == model::DType::kBFloat16 ? 2 : 4;
  const auto degree = [&](Axis axis) { return static_cast<double>(mesh_.degree(axis)); };
  pipe_ = degree(Axis::kPipe);
  tensor_ = degree(Axis::kTensor);
  context_ = degree(Axis::kContext);
  expert_ = degree(Axis::kExpert);
  shards_ = degree(Axis::kDataShard);
  replicas_ = static_cast<double>(mesh_.ranks()) / (pipe_ * tensor_ * shards_);
  rows_ = static_cast<double>(training.micro_batch_size() * training.sequence_length()) / context_;
  const int64_t inside = int64_t{mesh_.degree(Axis::kExpert)} * mesh_.degree(Axis::kTensor);
  const int64_t context = mesh_.degree(Axis::kContext), shards = mesh_.degree(Axis::kDataShard);
  tensor_span_ = mesh_.degree(Axis::kTensor) - 1;
  context_span_ = (context - 1) * inside;
  shard_span_ = (shards - 1) * context * inside;
  replica_span_ =
      (mesh_.degree(Axis::kDataReplicate) - 1) * shards * context * inside + context_span_;
  const int stage_ranks = mesh_.ranks() / mesh_.degree(Axis::kPipe);
  is_aligned_ = mesh_.degree(Axis::kPipe) == 1 || stage_ranks % profile.devices_per_island() == 0;
  norm_rows_ = spec.parallelism().sequence_parallel() ? rows_ / tensor_ : rows_;
  hidden_ = static_cast<double>(model.hidden_size);
  vocab_ = static_cast<double>(model.vocab_size) / tensor_;
  if (shards_ * expert_ > 1) {
    zero_stage_ = static_cast<int>(spec.parallelism().zero_stage());
    if (KeepsGathered(spec.parallelism())) zero_stage_ = std::min(zero_stage_, 2);
    run_ = ShardRun(spec.parallelism());
    if (run_ > 0) shard_span_ = (run_ - 1) * context * inside;
    runs_span_ = (shards - run_) * context * inside;
  }
  if (choices.param_dtype == model::DType::kBFloat16) held_ = 2;
  if (choices.param_dtype == model::DType::kFloat32 && zero_stage_ > 0) held_ = 4;
  rings_ = context_ > 1 && choices.context_method == v1::CONTEXT_METHOD_RING;
  recomputes_ = choices.recomputation != Recomputation::kNone;
  if (!spec.activation_recomputation().has_num_layers()) recomputation_ = choices.recomputation;
}

double ChunkBound::Total(const Work& work) const {
  if (profile_.transfers_need_cores()) return work.compute + work.within + work.across;
  return std::max({work.compute + work.waits, is_aligned_ ? work.within : 0, work.across});
}

void ChunkBound::Send(int64_t span, double seconds, Work* work) const {
  (span < profile_.devices_per_island() ? work->within : work->across) += seconds;
}

double ChunkBound::Pass(double elements) const {
  return element_ * elements / profile_.memory_bytes_per_second() + profile_.launch_seconds();
}

double ChunkBound::Product(double m, double n, double k, double bytes_of_result) const {
  const double bytes = (float8_ ? 1 : element_) * (m * k + k * n) + bytes_of_result * m * n;
  return std::max(2 * m * n * k / flops_, bytes / profile_.memory_bytes_per_second()) +
         profile_.launch_seconds();
}

double ChunkBound::Attention(double passes, double queries) const {
  const double tokens = static_cast<double>(spec_.training().sequence_length());
  // Scores and values, over half of the square.
  return passes * 2 * rows_ * tokens * queries / flops_ +
         (rings_ ? context_ : 1) * profile_.launch_seconds();
}

const v1::LinkProfile& ChunkBound::LinkOver(int64_t span) const {
  return span < profile_.devices_per_island() ? inner_link_ : profile_.fabric();
}

double ChunkBound::HalfSum() const {
  if (tensor_ <= 1) return 0;
  const v1::LinkProfile& link = LinkOver(tensor_span_);
  return (tensor_ - 1) *
         (link.latency_seconds() + rows_ * hidden_ * element_ / tensor_ / link.bytes_per_second());
}

double ChunkBound::WholeSum() const {
  // Two ranks exchange their data in one step.
  const double saved = tensor_ == 2 ? LinkOver(tensor_span_).latency_seconds() : 0;
  return 2 * HalfSum() - saved;
}

double ChunkBound::RingOfShards(double parameters, double tensors, double bytes) const {
  const double ranks = run_ > 0 ? run_ : shards_;
  const v1::LinkProfile& link = LinkOver(shard_span_);
  return (ranks - 1) *
         (tensors * link.latency_seconds() + bytes * parameters / ranks / link.bytes_per_second());
}

double ChunkBound::RingAcrossRuns(double parameters, double tensors, double bytes) const {
  if (run_ == 0) return 0;
  const v1::LinkProfile& link = LinkOver(runs_span_);
  return (shards_ / run_ - 1) * (tensors * link.latency_seconds() +
                                 bytes * parameters / shards_ / link.bytes_per_second());
}

double ChunkBound::SumOverReplicas(double parameters) const {
  if (replicas_ <= 1) return 0;
  return reduced_ * parameters / shards_ * 2 * (replicas_ - 1) / replicas_ /
         LinkOver(replica_span_).bytes_per_second();
}

double ChunkBound::TransferSeconds() const {
  const v1::LinkProfile& link = LinkOver(int64_t{mesh_.ranks()} / mesh_.degree(Axis::kPipe) *
                                         (mesh_.degree(Axis::kPipe) - 1));
  return link.latency_seconds() + norm_rows_ * hidden_ * element_ / link.bytes_per_second();
}

std::vector<ChunkBound::OutlinedBlocks> ChunkBound::OutlinedOf(const ChunkContents& chunk) const {
  std::vector<OutlinedBlocks> outlined;
  for (const BlockCount& blocks : chunk.blocks) {
    if (blocks.kind->outline == nullptr) continue;
    OutlinedBlocks& of_kind = outlined.emplace_back();
    of_kind.count = blocks.count;
    of_kind.continued = blocks.continued;
    of_kind.attends = blocks.kind->attends;
    of_kind.outline = blocks.kind->outline(model_, tensor_);
    const double first_out = of_kind.outline.first_out, last_in = of_kind.outline.last_in;
    if (of_kind.attends) {
      of_kind.relayout = (rings_ ? 2 : 1) * Pass(2 * rows_ * first_out);
      of_kind.middle_forward = Attention(1, last_in);
      of_kind.middle_backward = Attention(2, last_in);
    } else {
      of_kind.relayout = 0;
      of_kind.middle_forward = Pass(rows_ * (first_out + last_in));
      of_kind.middle_backward = Pass(rows_ * (2 * first_out + last_in));
    }
  }
  return outlined;
}

double ChunkBound::ParametersOf(const std::vector<OutlinedBlocks>& blocks) const {
  double columns = 0;
  for (const OutlinedBlocks& of_kind : blocks) {
    columns += of_kind.count * (of_kind.outline.first_out + of_kind.outline.last_in);
  }
  return hidden_ * columns;
}

double ChunkBound::LargestParameter(const ChunkContents& chunk,
                                    const std::vector<OutlinedBlocks>& blocks) const {
  double largest = 0;
  for (const OutlinedBlocks& of_kind : blocks) {
    largest = std::max(largest, hidden_ * of_kind.outline.first_out);
  }
  if (chunk.has_embedding || chunk.has_head) largest = std::max(largest, table());
  return largest;
}

ChunkSeconds ChunkBound::Seconds(const ChunkContents& chunk) const {
  const std::vector<OutlinedBlocks> outlined = OutlinedOf(chunk);
  double blocks = 0, continued = 0;
  for (const OutlinedBlocks& of_kind : outlined) {
    blocks += of_kind.count;
    continued += of_kind.continued;
  }
  const bool by_rows = norm_rows_ < rows_;  // sequence parallelism
  const double half = HalfSum();            // one half of a pair, with sequence parallelism
  const double sum = by_rows ? 2 * half : WholeSum();

  // Norms read the residual and a block's output, and write their sum and the block's input.
  const double norm = Pass(4 * norm_rows_ * hidden_);

  Work forward;
  for (const OutlinedBlocks& of_kind : outlined) {
    forward.compute += of_kind.count * (norm + First(of_kind) + of_kind.relayout +
                                        of_kind.middle_forward + Last(of_kind));
  }
  // Rows that are exchanged in parts overlap with the matmuls of other parts.
  const bool in_parts = spec_.parallelism().tensor_parallel_parts() > 1;
  const double waits_for_half = in_parts ? 0 : half, waits_for_sum = in_parts ? 0 : sum;
  Send(tensor_span_, blocks * sum, &forward);
  forward.waits = blocks * waits_for_sum;

  Work backward;
  for (const OutlinedBlocks& of_kind : outlined) {
    backward.compute += of_kind.count * (norm + LastGradients(of_kind) + of_kind.middle_backward +
                                         of_kind.relayout + FirstGradients(of_kind));
  }
  Send(tensor_span_, blocks * sum, &backward);
  // A gradient of rows is gathered directly before the matmul that reads it; reductions may overlap
  // with the matmuls of weight gradients.
  backward.waits = by_rows ? blocks * waits_for_half : 0;

  for (const OutlinedBlocks& of_kind : outlined) {
    if (!rings_ || !of_kind.attends) continue;
    const v1::LinkProfile& link = LinkOver(context_span_);
    const double queries = of_kind.outline.last_in, keys = of_kind.outline.keys;
    const double round = (context_ - 1) * (link.latency_seconds() +
                                           rows_ * 2 * keys * element_ / link.bytes_per_second());
    // Keys and values are in flight while attention processes the previous ones; in backward they
    // are sent again, with their gradients, and overlap with the two preceding matmuls too.
    Send(context_span_, of_kind.count * round, &forward);
    forward.waits +=
        of_kind.count * std::max(0.0, round - of_kind.middle_forward * (context_ - 1) / context_);
    Send(context_span_, of_kind.count * 2 * round, &backward);
    backward.waits +=
        of_kind.count * std::max(0.0, 2 * round - of_kind.middle_backward - LastGradients(of_kind));
    backward.compute +=
        of_kind.count * (context_ - 1) * (Pass(3 * rows_ * queries) + Pass(6 * rows_ * keys));
  }
  if (recomputation_ == Recomputation::kSelective) {
    // With FP8, SwiGLU is fused with the quantisation of its output, and the FP8 tensor is saved.
    double recomputed = 0;
    for (const OutlinedBlocks& of_kind : outlined) {
      if (of_kind.attends || !float8_) recomputed += of_kind.count * of_kind.middle_forward;
    }
    backward.compute += recomputed;
  } else if (recomputation_ == Recomputation::kFull) {
    // In a layer only the last matmul and its reduction need not be recomputed.
    double recomputed = 0;
    for (const OutlinedBlocks& of_kind : outlined) {
      recomputed += of_kind.count * (First(of_kind) + of_kind.relayout + of_kind.middle_forward);
      recomputed += of_kind.continued * Last(of_kind);
    }
    backward.compute += recomputed;
    const double again = by_rows ? (blocks + continued) * half : continued * sum;
    Send(tensor_span_, again, &backward);
    backward.waits += in_parts ? 0 : again;
  }
  bool has_experts = false;
  for (const BlockCount& of_kind : chunk.blocks) {
    has_experts |= of_kind.kind->has_experts;
    if (of_kind.kind->outline != nullptr) continue;
    const double tokens = static_cast<double>(spec_.training().sequence_length());
    const double flops = of_kind.kind->flops(model_, rows_ / tokens, tokens).total();
    const double products = of_kind.count * flops / tensor_ / flops_;
    forward.compute += products + of_kind.count * norm;
    backward.compute += 2 * products + of_kind.count * norm;
  }
  if (chunk.has_embedding) {
    forward.compute += Pass(table());
    backward.compute += Pass(4 / element_ * table());
    Send(tensor_span_, by_rows ? half : sum, &forward);
    forward.waits += by_rows ? waits_for_half : waits_for_sum;
    if (by_rows) {
      Send(tensor_span_, half, &backward);
      backward.waits += waits_for_half;
    }
  }
  if (chunk.has_head) {
    // The head computes its gradients while the logits exist.
    forward.compute += Forward(rows_, vocab_, hidden_) + Gradients(rows_, vocab_, hidden_) +
                       Pass((tensor_ > 1 ? 3 : 2) * rows_ * vocab_);
    Send(tensor_span_, sum, &forward);
    if (by_rows) forward.waits += waits_for_half;
  }

  const double of_blocks = ParametersOf(outlined), tensors = kTensorsOfBlock * blocks;
  const double of_embedding = chunk.has_embedding ? table() : 0;
  const double of_head = chunk.owns_head ? table() : 0;
  const double all = of_blocks + of_embedding + of_head;
  Work before, after;  // gathers before the first microbatch, reductions after the last
  if (!model::HasExperts(model_.blocks)) {
    if (zero_stage_ == 3) {
      Send(shard_span_, RingOfShards(all, tensors, held_), &forward);
      Send(shard_span_, RingOfShards(of_blocks, tensors, held_), &backward);
      Send(runs_span_, RingAcrossRuns(all, tensors, held_), &before);
    } else if (zero_stage_ > 0) {
      Send(shard_span_, RingOfShards(all, tensors, held_), &before);
    }
    if (zero_stage_ >= 2) {
      Send(shard_span_, RingOfShards(of_head, 0, reduced_), &forward);
      Send(shard_span_, RingOfShards(of_blocks + of_embedding, tensors, reduced_), &backward);
      Send(runs_span_, RingAcrossRuns(of_head, 0, reduced_), &forward);
      Send(runs_span_, RingAcrossRuns(of_blocks + of_embedding, tensors, reduced_), &backward);
      forward.compute += 8 * of_head / shards_ / profile_.memory_bytes_per_second();
      backward.compute +=
          8 * (of_blocks + of_embedding) / shards_ / profile_.memory_bytes_per_second();
    } else if (zero_stage_ == 1) {
      Send(shard_span_, RingOfShards(all, tensors, reduced_), &after);
    }
    Send(replica_span_, SumOverReplicas(all), &after);
  }

  ChunkSeconds seconds;
  seconds.forward = Total(forward);
  seconds.backward = Total(backward);
  // At best they overlap with forward and backward.
  const auto together = [&](Work work, const Work& end) {
    work.within += end.within;
    work.across += end.across;
    return Total(work);
  };
  seconds.once =
      together(forward, before) - seconds.forward + together(backward, after) - seconds.backward;
  // AdamW reads a gradient, reads and writes two moments and the parameter, and writes its copy.
  const double update_bytes = held_ < 4 ? 30 : 28;
  const double owned = has_experts ? of_blocks / expert_ : of_blocks;
  const double tables = all - of_blocks;
  seconds.once += update_bytes * (owned + tables / expert_) / (zero_stage_ > 0 ? shards_ : 1) /
                  profile_.memory_bytes_per_second();
  return seconds;
}

ChunkBytes ChunkBound::Bytes(const ChunkContents& chunk) const {
  const std::vector<OutlinedBlocks> outlined = OutlinedOf(chunk);
  double parameters = ParametersOf(outlined);
  if (chunk.has_embedding) parameters += table();
  if (chunk.owns_head) parameters += table();
  const double whole = held_;  // bytes of a gathered copy
  const double spread = zero_stage_ > 0 ? shards_ * expert_ : 1;
  double of_parameter = held_ < 4 ? 18 : 16;
  switch (zero_stage_) {
    case 1:
      of_parameter = whole + 4 + (held_ < 4 ? 12 : 8) / spread;
      break;
    case 2:
      of_parameter = whole + (held_ < 4 ? 16 : 12) / spread;
      break;
    case 3:
      of_parameter = of_parameter / spread;
      // With runs, a rank keeps the run's share of the copies instead of its own block of them.
      if (run_ > 0) of_parameter += whole * (1 / (run_ * expert_) - 1 / spread);
      break;
    default:
      break;
  }
  // A gathered matrix of another dtype is converted once a step, or where it is used.
  if (zero_stage_ < 3 && held_ != element_) of_parameter += element_;
  ChunkBytes bytes;
  bytes.state = static_cast<int64_t>(parameters * of_parameter);
  double blocks = 0;
  for (const BlockCount& of_kind : chunk.blocks) {
    blocks += of_kind.count;
    if (of_kind.kind->outline != nullptr) continue;
    const auto elements = static_cast<double>(of_kind.kind->parameters(model_));
    bytes.state +=
        static_cast<int64_t>(12.0 * of_kind.count * elements / (tensor_ * expert_ * shards_));
  }

  // Saved for a microbatch: the input of each block and of its first matmul, what that matmul
  // writes (heads, or both halves of SwiGLU), and what the last matmul reads.
  const double factor = (float8_ ? 1 : element_) / element_;  // size of a saved matmul operand
  double outlined_blocks = 0, continued = 0, first_outs = 0, last_ins = 0, widest = 0;
  for (const OutlinedBlocks& of_kind : outlined) {
    const model::BlockOutline& outline = of_kind.outline;
    outlined_blocks += of_kind.count;
    continued += of_kind.continued;
    first_outs += of_kind.count * outline.first_out;
    last_ins += of_kind.count * (of_kind.attends ? 1 : factor) * outline.last_in;
    if (!of_kind.attends) widest = std::max(widest, outline.last_in);
  }
  double saved = 0;
  switch (recomputation_) {
    case Recomputation::kNone:
      saved = blocks * norm_rows_ * hidden_ + factor * outlined_blocks * rows_ * hidden_ +
              rows_ * (first_outs + last_ins);
      break;
    case Recomputation::kSelective:
      saved = blocks * norm_rows_ * hidden_ + rows_ * first_outs;
      break;
    case Recomputation::kFull:
      saved = (blocks - continued) * norm_rows_ * hidden_;
      break;
  }
  if (spec_.activation_recomputation().has_num_layers() && recomputes_) saved = 0;
  bytes.saved = static_cast<int64_t>(element_ * saved);

  // The gradient of the SwiGLU output. The gradient of both its halves overwrites the saved halves,
  // or has its own memory where everything is recomputed.
  const bool makes_all_again =
      recomputation_ == Recomputation::kFull && !spec_.activation_recomputation().has_num_layers();
  double temporary = element_ * (makes_all_again ? 2 : 1) * widest * rows_;
  if (zero_stage_ >= 2) temporary = std::max(temporary, 4 * LargestParameter(chunk, outlined));
  bytes.temporary = static_cast<int64_t>(temporary);
  return bytes;
}

}  // namespace troupe
