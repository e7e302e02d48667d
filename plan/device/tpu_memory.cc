#include "plan/device/tpu_memory.h"

#include <algorithm>
#include <map>
#include <variant>
#include <vector>

#include "model/program/attention_chunks.h"
#include "model/program/context_rows.h"
#include "model/program/op_rules.h"

namespace troupe {
namespace {

using model::AttentionChunks;
using model::ContextRows;
using model::Op;
using model::Program;
using model::QueryChunk;

// The chunks of an attention on each rank of the stage that computes it otherwise: whole samples
// are the same on all, but the parts of a ring differ, and one program has those of every rank.
std::vector<AttentionChunks> ChunksOfRanks(const Program& program, const Op& op) {
  const model::AttentionAttributes& attention = *model::FindAttention(op.attributes);
  const auto* const part = std::get_if<model::PartAttributes>(&op.attributes);
  const int ranks = part == nullptr ? 1 : program.mesh.degrees[model::Axis::kContext];
  std::vector<AttentionChunks> of_ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const int of_keys = part == nullptr ? rank : ((rank - part->shift) % ranks + ranks) % ranks;
    of_ranks.push_back(model::ChunksOf(attention, ContextRows::Of(attention.tokens, ranks, rank),
                                       ContextRows::Of(attention.tokens, ranks, of_keys)));
  }
  return of_ranks;
}

bool IsAttentionGradient(const Op& op) {
  return op.kind == model::OpKind::kAttentionGrad || op.kind == model::OpKind::kAttentionPartGrad;
}

// Collectives are no part of compiled programs, nor are views.
bool HasCode(const Op& op) {
  return op.kind != model::OpKind::kCopy && op.kind != model::OpKind::kWait &&
         !model::RulesOf(op.kind).collective.has_value();
}

// The number of chunks whose code a program has, or as many as a loop over all has code.
int64_t ChunksOfCode(const AttentionChunks& of) {
  if (of.loops) return kTpuLoopChunks;
  return std::ranges::count_if(of.chunks, [](const QueryChunk& chunk) { return chunk.keys > 0; });
}

int64_t CodeBytes(const Program& program, const std::vector<Op>& ops) {
  int64_t bytes = 0;
  for (const Op& op : ops) {
    if (!HasCode(op)) continue;
    bytes += kTpuOperationCodeBytes;
    if (model::FindAttention(op.attributes) == nullptr) continue;
    for (const AttentionChunks& of_rank : ChunksOfRanks(program, op)) {
      bytes += ChunksOfCode(of_rank) *
               (IsAttentionGradient(op) ? kTpuGradientChunkCodeBytes : kTpuAttentionChunkCodeBytes);
    }
  }
  return bytes;
}

int64_t LargestActivation(const Program& program, const std::vector<Op>& ops) {
  int64_t bytes = 0;
  for (const Op& op : ops) {
    for (const model::ValueId id : op.outputs) {
      const model::Value& value = program.value(id);
      if (value.role == model::Role::kActivation && value.dtype == model::DType::kBFloat16)
        bytes = std::max(bytes, value.bytes());
    }
  }
  return bytes;
}

// The scores of a chunk of every sample in float32, of all its keys or of one block, and as many
// numbers computed from them: the weights, and for a gradient those of both.
int64_t LargestScores(const Program& program, const std::vector<Op>& ops) {
  int64_t bytes = 0;
  for (const Op& op : ops) {
    const auto* const attention = model::FindAttention(op.attributes);
    if (attention == nullptr) continue;
    for (const AttentionChunks& of_rank : ChunksOfRanks(program, op)) {
      const int64_t rows = program.value(op.outputs[0]).dims[0].local;
      const int64_t samples = rows / of_rank.chunks.back().end;
      int64_t keys = of_rank.size;
      if (!of_rank.by_blocks) keys = std::ranges::max(of_rank.chunks, {}, &QueryChunk::keys).keys;
      const int64_t scores = samples * attention->query_heads * of_rank.size * keys;
      bytes = std::max(bytes, (IsAttentionGradient(op) ? 4 : 2) * scores * int64_t{sizeof(float)});
    }
  }
  return bytes;
}

// In bfloat16; other gradients are not converted.
int64_t LargestGatedGradient(const Program& program, const std::vector<Op>& ops) {
  int64_t bytes = 0;
  for (const Op& op : ops) {
    if (op.kind != model::OpKind::kSwiGluGrad) continue;
    const model::Value& gradient = program.value(op.outputs[0]);
    if (gradient.dtype == model::DType::kBFloat16) bytes = std::max(bytes, gradient.bytes());
  }
  return bytes;
}

int64_t LargestRepeatedSum(const Program& program, const std::vector<Op>& ops) {
  std::map<model::ValueId, int> sums;
  int64_t bytes = 0;
  for (const Op& op : ops) {
    const int output = model::RulesOf(op.kind).accumulated_output;
    if (output < 0) continue;
    const model::ValueId sum = op.outputs[static_cast<size_t>(output)];
    if (program.value(sum).role != model::Role::kGradient) continue;
    if (++sums[sum] > 1) bytes = std::max(bytes, program.value(sum).bytes());
  }
  return bytes;
}

}  // namespace

int64_t TpuWorkingBytes(const Program& program) {
  int64_t most = 0;
  for (const auto& pieces : program.ops) {
    for (const std::vector<Op>& ops : pieces)
      most = std::max({most, LargestScores(program, ops), 2 * LargestGatedGradient(program, ops),
                       LargestActivation(program, ops) + LargestRepeatedSum(program, ops)});
  }
  return most;
}

int64_t TpuReserveBytes(const v1::Plan&, const Program& program) {
  int64_t bytes = static_cast<int64_t>(program.parameters.size()) * kTpuParameterCodeBytes;
  for (size_t chunk = 0; chunk < program.ops.size(); ++chunk) {
    const auto index = static_cast<int>(chunk);
    bytes += CodeBytes(program, program.Ops(index, model::Piece::kForward)) +
             CodeBytes(program, program.Ops(index, model::Piece::kBackward));
  }
  return bytes;
}

}  // namespace troupe
