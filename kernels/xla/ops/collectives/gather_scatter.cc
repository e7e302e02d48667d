// Reduce-scatter and all-gather of blocks of rows. XLA wants equal blocks: each is sent with the
// rows of the largest, and the rows in excess are cut off again.
#include <algorithm>

#include "kernels/xla/ops/collectives/bfloat16_wire.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/ops/slice_group.h"

namespace troupe::kernels::xla {
namespace {

// The rows of the group's blocks of `whole`, as a rank has it.
std::vector<model::Range> CutOf(const Lowering& rank, const model::RowCut& cut,
                                model::ValueId whole) {
  const int64_t rows = rank.program.value(whole).dims[0].local;
  const int ranks = GroupSizeOf(rank);
  std::vector<model::Range> blocks;
  for (int i = 0; i < ranks; ++i) blocks.push_back(cut.Of(rows, ranks, i));
  return blocks;
}

// The most rows of a block on any rank.
int64_t LargestBlock(const Lowering& lowering, const model::RowCut& cut, model::ValueId whole) {
  int64_t most = 0;
  for (const Lowering& rank : lowering.ranks.lowerings()) {
    for (const model::Range& block : CutOf(rank, cut, whole)) most = std::max(most, block.size());
  }
  return most;
}

Tensor WithMostRows(Function& text, const Tensor& x, int64_t rows) {
  Shape shape = x.shape;
  shape[0] = rows;
  return text.PadTo(x, shape);
}

}  // namespace

Status ReduceScatter(const Lowering& lowering) {
  if (!HasPeers(lowering)) return Copy(lowering);
  const auto& attributes = lowering.attributes<model::ReduceScatterAttributes>();
  Function& text = lowering.text;
  Ranks& ranks = lowering.ranks;
  const model::ValueId whole = lowering.op.inputs[0];
  const int64_t most = LargestBlock(lowering, attributes.cut, whole);
  if (most == 0) return OkStatus();
  const Tensor terms = ranks.EachOne([&](const Lowering& rank) {
    const Tensor x = rank.In(0);
    const std::vector<model::Range> blocks = CutOf(rank, attributes.cut, whole);
    if (std::ssize(blocks) * most == x.shape[0]) return x;
    std::vector<Tensor> parts;
    for (const model::Range& block : blocks)
      parts.push_back(WithMostRows(text, text.Slice(x, 0, block.begin, block.end), most));
    return text.Concatenate(parts, 0);
  });
  const Tensor sum = attributes.wire == model::DType::kBFloat16
                         ? ScatterOverBfloat16(text, terms, PartitionGroups(lowering))
                         : text.ReduceScatter(terms, PartitionGroups(lowering));
  ranks.EachWrites([&](const Lowering& rank) {
    rank.Out(0, text.Slice(sum, 0, 0, rank.Output(0).dims[0].local));
  });
  return OkStatus();
}

Status AllGather(const Lowering& lowering) {
  if (!HasPeers(lowering)) return Copy(lowering);
  const model::RowCut cut = lowering.attributes<model::AllGatherAttributes>().cut;
  Function& text = lowering.text;
  Ranks& ranks = lowering.ranks;
  const model::ValueId whole = lowering.op.outputs[0];
  const int64_t most = LargestBlock(lowering, cut, whole);
  if (most == 0) return OkStatus();
  const Tensor block =
      ranks.EachOne([&](const Lowering& rank) { return WithMostRows(text, rank.In(0), most); });
  const Tensor all = text.AllGather(block, PartitionGroups(lowering));
  ranks.EachWrites([&](const Lowering& rank) {
    const std::vector<model::Range> blocks = CutOf(rank, cut, whole);
    std::vector<Tensor> parts;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const int64_t begin = static_cast<int64_t>(i) * most;
      parts.push_back(text.Slice(all, 0, begin, begin + blocks[i].size()));
    }
    const bool has_all = rank.Output(0).dims[0].local == all.shape[0];
    rank.Out(0, has_all ? all : text.Concatenate(parts, 0));
  });
  return OkStatus();
}

}  // namespace troupe::kernels::xla
