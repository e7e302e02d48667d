#include "plan/search/shard_costs.h"

#include <algorithm>

#include "model/blocks/pattern.h"

namespace troupe {

using model::Axis;

ShardCosts::ShardCosts(const DecodedJob& job, const LeastSeconds& seconds) : seconds_(seconds) {
  const JobChoices& choices = job.choices;
  const Mesh& mesh = job.mesh;
  const auto bytes_of = [](model::DType dtype) { return dtype == model::DType::kBFloat16 ? 2 : 4; };
  element_ = bytes_of(choices.compute_dtype);
  reduced_ = bytes_of(choices.reduce_dtype);
  held_ = element_;
  const int64_t shards = mesh.degree(Axis::kDataShard), context = mesh.degree(Axis::kContext);
  const int64_t inside = int64_t{mesh.degree(Axis::kExpert)} * mesh.degree(Axis::kTensor);
  shards_ = static_cast<double>(shards);
  expert_ = mesh.degree(Axis::kExpert);
  replicas_ = static_cast<double>(mesh.degree(Axis::kDataReplicate) * context);
  shard_span_ = (shards - 1) * context * inside;
  replica_span_ =
      (mesh.degree(Axis::kDataReplicate) - 1) * shards * context * inside + (context - 1) * inside;
  has_experts_ = model::HasExperts(job.model.blocks);
  if (shards_ * expert_ > 1) {
    zero_stage_ = job.stage_of_programs();
    run_ = job.shard_run;
  }
  if (run_ > 0) {
    shard_span_ = (run_ - 1) * context * inside;
    runs_span_ = (shards - run_) * context * inside;
  }
  if (choices.param_dtype == model::DType::kBFloat16) held_ = 2;
  if (choices.param_dtype == model::DType::kFloat32 && zero_stage_ > 0) held_ = 4;
  optimizer_ = model::BytesOfOptimizer(job.optimizer, /*copies=*/held_ < 4);
}

double ShardCosts::StateBytes(double elements) const {
  const double spread = shards_ * expert_;
  // In float32 the master of a gathered parameter is a block of the gathered copy.
  const double states = optimizer_.state, moments = held_ < 4 ? 4 + states : states;
  const double all = (held_ < 4 ? 10 : 8) + states;
  double bytes = all;
  if (zero_stage_ == 1) bytes = held_ + 4 + moments / spread;
  if (zero_stage_ == 2) bytes = held_ + (moments + 4) / spread;
  if (zero_stage_ == 3) bytes = all / spread;
  // With runs, a rank keeps the run's share of the copies instead of its own block of them.
  if (zero_stage_ == 3 && run_ > 0) bytes += held_ * (1 / (run_ * expert_) - 1 / spread);
  // A gathered matrix of another dtype is converted once a step, or where it is used.
  if (zero_stage_ < 3 && held_ != element_) bytes += element_;
  return elements * bytes;
}

LinkUse ShardCosts::OverShards(double elements, double tensors, double bytes) const {
  const double ranks = run_ > 0 ? run_ : shards_;
  return {(ranks - 1) * tensors, (ranks - 1) / ranks * elements * bytes};
}

LinkUse ShardCosts::AcrossRuns(double elements, double tensors, double bytes) const {
  if (run_ == 0) return {};
  const double runs = shards_ / run_;
  return {(runs - 1) * tensors, (runs - 1) / shards_ * elements * bytes};
}

ShardCosts::Ends ShardCosts::Add(const ShardedElements& of, ChunkCosts* chunk) const {
  Ends ends;
  if (has_experts_) return ends;
  const auto send = [this](int64_t span, const LinkUse& use, Work* work) {
    seconds_.Add(use, span, /*asynchronous=*/true, work);
  };
  const double all = of.blocks + of.embedding + of.head;
  if (zero_stage_ == 3) {
    send(shard_span_, OverShards(all, of.tensors, held_), &chunk->forward);
    send(shard_span_, OverShards(of.blocks, of.tensors, held_), &chunk->backward);
    send(runs_span_, AcrossRuns(all, of.tensors, held_), &ends.before);
  } else if (zero_stage_ > 0) {
    send(shard_span_, OverShards(all, of.tensors, held_), &ends.before);
  }
  if (zero_stage_ >= 2) {
    // The head's gradients are made in forward.
    const double later = of.blocks + of.embedding;
    send(shard_span_, OverShards(of.head, 0, reduced_), &chunk->forward);
    send(runs_span_, AcrossRuns(of.head, 0, reduced_), &chunk->forward);
    send(shard_span_, OverShards(later, of.tensors, reduced_), &chunk->backward);
    send(runs_span_, AcrossRuns(later, of.tensors, reduced_), &chunk->backward);
    // The rank's block is added to a float32 sum.
    chunk->forward.compute += 8 * of.head / shards_ / seconds_.memory_bytes_per_second();
    chunk->backward.compute += 8 * later / shards_ / seconds_.memory_bytes_per_second();
  } else if (zero_stage_ == 1) {
    send(shard_span_, OverShards(all, of.tensors, reduced_), &ends.after);
  }
  send(replica_span_,
       {0, reduced_ * all / shards_ * 2 * (replicas_ - 1) / std::max(1.0, replicas_)}, &ends.after);
  return ends;
}

double ShardCosts::UpdateSeconds(double elements) const {
  return optimizer_.moved * elements / expert_ / (zero_stage_ > 0 ? shards_ : 1) /
         seconds_.memory_bytes_per_second();
}

}  // namespace troupe
