#include <array>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "model/passes/passes.h"

namespace troupe::model {
namespace {

constexpr std::array kPieces = {Piece::kUnshard, Piece::kForward, Piece::kBackward, Piece::kReduce};

// The number of reads of each value by operations and as an output of the chunk.
std::vector<int> Reads(const Program& program, int chunk_index) {
  std::vector<int> reads(program.values.size(), 0);
  for (const Piece piece : kPieces) {
    for (const Op& op : program.Ops(chunk_index, piece)) {
      for (const ValueId input : op.inputs) ++reads[input];
    }
  }
  const ChunkInterface& chunk = program.chunks[chunk_index];
  for (const ValueId id : {chunk.output, chunk.input_gradient}) {
    if (id != kNoValue) ++reads[id];
  }
  return reads;
}

// The source that `op`, the producer of the quantised value, allows: only operations on all rows,
// not those limited by counts.
QuantizeSource SourceOf(const Op& op) {
  for (const auto& [kind, source] : {std::pair(OpKind::kSwiGlu, QuantizeSource::kSwiGlu),
                                     std::pair(OpKind::kSwiGluGrad, QuantizeSource::kSwiGluGrad)}) {
    if (op.kind == kind && op.inputs.size() == InputsOf(source)) return source;
  }
  return QuantizeSource::kValue;
}

void QuantizeAtSource(std::vector<Op>& ops, const std::vector<int>& reads) {
  std::map<ValueId, size_t> makers;
  std::set<size_t> merged;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (SourceOf(ops[i]) != QuantizeSource::kValue) makers[ops[i].outputs[0]] = i;
    if (ops[i].kind != OpKind::kQuantize) continue;
    Op& quantize = ops[i];
    const auto maker = makers.find(quantize.inputs[0]);
    if (maker == makers.end() || reads[quantize.inputs[0]] != 1) continue;
    const Op& op = ops[maker->second];
    if (op.part != quantize.part || op.layer != quantize.layer) continue;
    std::get<QuantizeAttributes>(quantize.attributes).source = SourceOf(op);
    quantize.inputs.erase(quantize.inputs.begin());
    quantize.inputs.insert(quantize.inputs.begin(), op.inputs.begin(), op.inputs.end());
    merged.insert(maker->second);
  }
  std::vector<Op> left;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!merged.contains(i)) left.push_back(std::move(ops[i]));
  }
  ops = std::move(left);
}

}  // namespace

void QuantizeAtSource(Program& program) {
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c) {
    const std::vector<int> reads = Reads(program, c);
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      QuantizeAtSource(program.ops[c][static_cast<int>(piece)], reads);
    }
  }
}

}  // namespace troupe::model
