#include "plan/device/tpu_memory.h"

#include <algorithm>
#include <map>
#include <vector>

#include "model/program/op_rules.h"

namespace troupe {
namespace {

using model::Op;
using model::Program;

// The queries of a chunk into which kernels/xla/ops/attention_chunks.h divides a sample.
int64_t ChunkSize(int64_t tokens) {
  constexpr int64_t kLeastChunk = 128, kMostChunks = 16;
  return std::max(kLeastChunk, tokens / kMostChunks);
}

bool IsAttentionGradient(const Op& op) {
  return op.kind == model::OpKind::kAttentionGrad || op.kind == model::OpKind::kAttentionPartGrad;
}

// Collectives are no part of compiled programs, nor are views.
bool HasCode(const Op& op) {
  return op.kind != model::OpKind::kCopy && op.kind != model::OpKind::kWait &&
         !model::RulesOf(op.kind).collective.has_value();
}

int64_t CodeBytes(const std::vector<Op>& ops) {
  int64_t bytes = 0;
  for (const Op& op : ops) {
    if (!HasCode(op)) continue;
    bytes += kTpuOperationCodeBytes;
    const auto* const attention = model::FindAttention(op.attributes);
    if (attention == nullptr) continue;
    const int64_t chunk = ChunkSize(attention->tokens);
    bytes += (attention->tokens + chunk - 1) / chunk *
             (IsAttentionGradient(op) ? kTpuGradientChunkCodeBytes : kTpuAttentionChunkCodeBytes);
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

// The scores of a chunk of every sample in float32, and as many numbers computed from them: the
// weights, and for a gradient those of both.
int64_t LargestScores(const Program& program, const std::vector<Op>& ops) {
  int64_t bytes = 0;
  for (const Op& op : ops) {
    const auto* const attention = model::FindAttention(op.attributes);
    if (attention == nullptr) continue;
    const int64_t rows = program.value(op.outputs[0]).dims[0].local;
    const int64_t scores = rows * attention->query_heads * ChunkSize(attention->tokens);
    bytes = std::max(bytes, (IsAttentionGradient(op) ? 4 : 2) * scores * int64_t{sizeof(float)});
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
      most = std::max({most, LargestScores(program, ops),
                       LargestActivation(program, ops) + LargestRepeatedSum(program, ops)});
  }
  return most;
}

int64_t TpuReserveBytes(const v1::Plan&, const Program& program) {
  int64_t bytes = static_cast<int64_t>(program.parameters.size()) * kTpuParameterCodeBytes;
  for (size_t chunk = 0; chunk < program.ops.size(); ++chunk) {
    const auto index = static_cast<int>(chunk);
    bytes += CodeBytes(program.Ops(index, model::Piece::kForward)) +
             CodeBytes(program.Ops(index, model::Piece::kBackward));
  }
  return bytes;
}

}  // namespace troupe
