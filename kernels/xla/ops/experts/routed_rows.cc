// Rows routed between ranks, as many as run-time counts state. Between ranks blocks of a fixed
// number of rows are sent, which are large enough for any counts; the receiver puts each block over
// the rows in excess of the one before.
#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/ops/slice_group.h"

namespace troupe::kernels::xla {
namespace {

// In a group of one rank: as many rows as the counts state; the others stay.
Status CopyRows(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor before = lowering.read(lowering.op.outputs[0]);
  const Tensor rows = WithRows(text, lowering.In(0), before.shape[0]);
  const Tensor counted =
      text.Broadcast(Counted(text, lowering.In(1), before.shape[0]), before.shape, {0});
  lowering.Out(0, text.Select(counted, rows, before));
  return OkStatus();
}

// The first row of each rank of n, scalars; counts i32[n·C].
std::vector<Tensor> FirstRows(Function& text, const Tensor& counts, int64_t ranks) {
  const Tensor by_rank = text.Reshape(counts, {ranks, counts.shape[0] / ranks});
  const Tensor firsts = SumsBefore(text, text.Reduce("add", by_rank, {1}));
  std::vector<Tensor> scalars;
  for (int64_t r = 0; r < ranks; ++r)
    scalars.push_back(text.Reshape(text.Slice(firsts, 0, r, r + 1), {}));
  return scalars;
}

// x [S,H] → [n·block,H]: the rows of each rank, followed by any others.
Tensor SentBlocks(Function& text, const Tensor& x, const std::vector<Tensor>& firsts,
                  int64_t block) {
  const Tensor longer = WithRows(text, x, x.shape[0] + block);
  std::vector<Tensor> blocks;
  for (const Tensor& first : firsts) blocks.push_back(text.SliceAt(longer, first, block));
  return text.Concatenate(blocks, 0);
}

// The inverse: [n·block,H] → [rows,H], of which those after the last rank's are unspecified.
Tensor ReceivedRows(Function& text, const Tensor& blocks, const std::vector<Tensor>& firsts,
                    int64_t rows) {
  const int64_t block = blocks.shape[0] / std::ssize(firsts);
  Tensor all = text.Constant(blocks.element, {rows + block, blocks.shape[1]}, 0);
  for (int64_t r = 0; r < std::ssize(firsts); ++r) {
    all = text.UpdateAt(all, text.Slice(blocks, 0, r * block, (r + 1) * block),
                        firsts[static_cast<size_t>(r)]);
  }
  return text.Slice(all, 0, 0, rows);
}

}  // namespace

Status GatherRouted(const Lowering& lowering) {
  if (!HasPeers(lowering)) return CopyRows(lowering);
  TROUPE_RETURN_IF_ERROR(ExpectEqualExtents(lowering));
  Function& text = lowering.text;
  const Tensor all = text.AllGather(lowering.In(0), PartitionGroups(lowering));
  const std::vector<Tensor> firsts = FirstRows(text, lowering.In(1), GroupSizeOf(lowering));
  lowering.Out(0, ReceivedRows(text, all, firsts, lowering.Output(0).dims[0].local));
  return OkStatus();
}

Status ScatterRouted(const Lowering& lowering) {
  if (!HasPeers(lowering)) return CopyRows(lowering);
  TROUPE_RETURN_IF_ERROR(ExpectEqualExtents(lowering));
  Function& text = lowering.text;
  const std::vector<Tensor> firsts = FirstRows(text, lowering.In(1), GroupSizeOf(lowering));
  const Tensor blocks = SentBlocks(text, lowering.In(0), firsts, lowering.Output(0).dims[0].local);
  lowering.Out(0, text.ReduceScatter(blocks, PartitionGroups(lowering)));
  return OkStatus();
}

Status AllToAll(const Lowering& lowering) {
  Function& text = lowering.text;
  const int64_t rows = lowering.Output(0).dims[0].local;
  if (!HasPeers(lowering)) {  // the output may be a view of the input
    lowering.Out(0, WithRows(text, lowering.In(0), rows));
    return OkStatus();
  }
  TROUPE_RETURN_IF_ERROR(ExpectEqualExtents(lowering));
  const Function::Groups groups = PartitionGroups(lowering);
  if (lowering.inputs() == 1) {
    lowering.Out(0, text.AllToAll(lowering.In(0), groups));
    return OkStatus();
  }
  // The larger buffer has room for as many rows from each rank as a rank can send to another
  // (RoutingOf in model/blocks/experts.cc).
  const int64_t ranks = GroupSizeOf(lowering);
  const Tensor x = lowering.In(0);
  const int64_t block = (std::max(x.shape[0], rows) + ranks - 1) / ranks;
  const Tensor blocks = SentBlocks(text, x, FirstRows(text, lowering.In(1), ranks), block);
  lowering.Out(0, ReceivedRows(text, text.AllToAll(blocks, groups),
                               FirstRows(text, lowering.In(2), ranks), rows));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
