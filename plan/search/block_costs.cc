#include "plan/search/block_costs.h"

#include <algorithm>
#include <set>
#include <vector>

#include "model/build.h"
#include "model/program/storage.h"
#include "plan/layout/mesh.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

using model::Piece;
using model::Program;
using model::ValueId;

// The most context ranks whose ring is measured as a whole.
constexpr int kLongRing = 8;
// The most groups of rows of the head that are measured.
constexpr int64_t kHeadGroups = 32;

// The bytes that are in use at the end of F and are read, written or sent later.
double SavedBytes(const Program& program, const std::vector<ValueId>& roots, int chunk_index) {
  std::set<ValueId> forward, saved;
  const auto touch = [&](ValueId id, bool by_forward) {
    const model::Value& root = program.value(roots[id]);
    // A chunk reads the channels of its samples once, however many of its blocks read them.
    if (model::IsPersistent(root) || root.role == model::Role::kInput) return;
    if (by_forward) {
      forward.insert(roots[id]);
    } else if (forward.contains(roots[id])) {
      saved.insert(roots[id]);
    }
  };
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    for (const model::Op& op : program.Ops(chunk_index, piece)) {
      for (const ValueId id : op.inputs) touch(id, piece == Piece::kForward);
      for (const ValueId id : op.outputs) touch(id, piece == Piece::kForward);
    }
  }
  // Neighbouring stages write and read these at any time.
  const model::ChunkInterface& chunk = program.chunks[static_cast<size_t>(chunk_index)];
  for (const ValueId id :
       {chunk.input, chunk.output, chunk.output_gradient, chunk.input_gradient}) {
    if (id != model::kNoValue) saved.insert(roots[id]);
  }
  double bytes = 0;
  for (const ValueId root : saved) bytes += static_cast<double>(program.value(root).bytes());
  return bytes;
}

std::vector<ChunkCosts> CostsByChunkIndex(const Program& program, const Mesh& mesh,
                                          const LeastSeconds& seconds) {
  const std::vector<ValueId> roots = model::StorageRoots(program);
  std::vector<ChunkCosts> costs(program.chunks.size());
  for (size_t c = 0; c < costs.size(); ++c) {
    const int index = static_cast<int>(c);
    seconds.Add(program, mesh, program.Ops(index, Piece::kForward), &costs[c].forward);
    seconds.Add(program, mesh, program.Ops(index, Piece::kBackward), &costs[c].backward);
    costs[c].saved_bytes = SavedBytes(program, roots, index);
  }
  for (const model::ParameterEntry& entry : program.parameters) {
    if (!entry.trained()) continue;
    ChunkCosts& chunk = costs[static_cast<size_t>(program.value(entry.value).chunk)];
    chunk.elements += static_cast<double>(program.value(entry.value).elements());
    ++chunk.tensors;
  }
  return costs;
}

}  // namespace

ChunkCosts& ChunkCosts::operator+=(const ChunkCosts& other) {
  forward += other.forward;
  backward += other.backward;
  saved_bytes += other.saved_bytes;
  elements += other.elements;
  tensors += other.tensors;
  return *this;
}

ChunkCosts ChunkCosts::operator*(double factor) const {
  return {forward * factor, backward * factor, saved_bytes * factor, elements * factor,
          tensors * factor};
}

ChunkCosts ChunkCosts::operator-(const ChunkCosts& other) const {
  return {forward - other.forward, backward - other.backward, saved_bytes - other.saved_bytes,
          elements - other.elements, tensors - other.tensors};
}

StatusOr<BlockCosts> BlockCosts::Measure(const DecodedJob& job, const LeastSeconds& seconds) {
  const int context = job.mesh.degree(model::Axis::kContext);
  if (job.choices.context_method != v1::CONTEXT_METHOD_RING || context <= kLongRing)
    return MeasureWhole(job, context, seconds);
  // A program has the operations of every step of a ring, and all steps after the first are equal:
  // two short rings of ranks with as many tokens give the costs of a long one.
  const auto of_ring = [&](int ranks) -> StatusOr<BlockCosts> {
    v1::JobSpec shorter = job.spec;
    shorter.mutable_parallelism()->set_context_parallel_degree(ranks);
    shorter.mutable_training()->set_sequence_length(job.batch.sequence_length / context * ranks);
    TROUPE_ASSIGN_OR_RETURN(const DecodedJob short_ring, DecodeJob(std::move(shorter)));
    return MeasureWhole(short_ring, context, seconds);
  };
  TROUPE_ASSIGN_OR_RETURN(const BlockCosts half, of_ring(kLongRing / 2));
  TROUPE_ASSIGN_OR_RETURN(BlockCosts costs, of_ring(kLongRing));
  const double further = static_cast<double>(context - kLongRing) / (kLongRing / 2);
  for (auto& [kind, chunk] : costs.alone_) chunk += (chunk - half.alone_.at(kind)) * further;
  for (auto& [kinds, chunk] : costs.junctions_)
    chunk += (chunk - half.junctions_.at(kinds)) * further;
  return costs;
}

StatusOr<BlockCosts> BlockCosts::MeasureWhole(const DecodedJob& job, int context,
                                              const LeastSeconds& seconds) {
  // The planner's options for one stage of unsharded parameters without replicas.
  v1::Plan plan;
  *plan.mutable_mesh() = job.mesh.ToProto();
  plan.mutable_mesh()->set_pipe(1);
  plan.mutable_mesh()->set_data_shard(1);
  plan.mutable_mesh()->set_data_replicate(1);
  plan.set_tensor_parallel_parts(job.tensor_parts);
  TROUPE_ASSIGN_OR_RETURN(model::BuildOptions options, MakeStageBuildOptions(job, plan, 0));
  options.zero_stage = 0;
  options.shard_run = 0;
  options.whole_matrices = false;
  options.no_weight_decay.clear();
  // Some blocks may be frozen, and others not: the least costs are those of frozen ones.
  if (!options.trained.globs.empty()) options.trained = model::TrainedParameters::None();
  options.runs = false;
  // The head of a large microbatch would have thousands of groups of rows. Fewer groups take fewer
  // launches and read the table less often.
  const int64_t rows = options.micro_batch_size * options.sequence_length /
                       options.mesh.degrees[model::Axis::kContext];
  options.head_rows = std::max(options.head_rows, (rows + kHeadGroups - 1) / kHeadGroups);
  options.model.tie_word_embeddings = false;
  const std::string letters = std::move(options.model.blocks);
  const std::set<char> kinds(letters.begin(), letters.end());
  std::set<std::pair<char, char>> junctions;
  for (size_t i = 1; i < letters.size(); ++i) junctions.emplace(letters[i - 1], letters[i]);

  // The first chunk has the embedding and the model's first block, the last one the model's last
  // block and the head.
  std::vector<std::string> chunks = {letters.substr(0, 1)};
  for (const char kind : kinds) chunks.emplace_back(1, kind);
  for (const auto& [before, after] : junctions) chunks.push_back({before, after});
  chunks.push_back(letters.substr(letters.size() - 1));
  options.model.blocks.clear();
  options.chunks.clear();
  for (size_t c = 0; c < chunks.size(); ++c) {
    options.chunks.push_back({.chunk = static_cast<int>(c),
                              .first_block = static_cast<int>(options.model.blocks.size()),
                              .block_count = static_cast<int>(chunks[c].size()),
                              .has_embedding = c == 0,
                              .has_head = c + 1 == chunks.size()});
    options.model.blocks += chunks[c];
  }
  TROUPE_ASSIGN_OR_RETURN(const Program program, model::BuildProgram(options));
  model::PerAxis degrees = program.mesh.degrees;
  degrees[model::Axis::kContext] = context;
  const std::vector<ChunkCosts> costs = CostsByChunkIndex(program, Mesh(degrees), seconds);

  BlockCosts measured;
  size_t next = 1;
  for (const char kind : kinds) measured.alone_[kind] = costs[next++];
  for (const auto& junction : junctions) {
    measured.junctions_[junction] =
        costs[next++] - measured.alone_[junction.first] - measured.alone_[junction.second];
  }
  measured.embedding_ = costs.front() - measured.alone_[letters.front()];
  measured.head_ = costs.back() - measured.alone_[letters.back()];
  return measured;
}

ChunkCosts BlockCosts::Of(std::string_view letters, bool has_embedding, bool has_head) const {
  ChunkCosts sum;
  for (size_t i = 0; i < letters.size(); ++i) {
    sum += alone_.at(letters[i]);
    if (i > 0) sum += junctions_.at({letters[i - 1], letters[i]});
  }
  if (has_embedding) sum += embedding_;
  if (has_head) sum += head_;
  return sum;
}

}  // namespace troupe
