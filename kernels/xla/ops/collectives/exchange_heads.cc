// Rows of all columns ↔ all rows of some columns (kernels/exchange/row_exchange.h): the parts that
// ranks send to each other are equal, and the text is the same on all.
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/ops/slice_group.h"

namespace troupe::kernels::xla {
namespace {

struct Exchange {
  int64_t ranks, samples, chunk_rows;
  std::vector<int64_t> segments;  // columns of one rank's part of each segment
  int64_t part = 0;               // their sum

  int64_t rows() const { return samples * 2 * chunk_rows; }  // of a rank's two chunks
};

Exchange ExchangeOf(const Lowering& lowering) {
  const auto& attributes = lowering.attributes<model::ExchangeHeadsAttributes>();
  const model::Value& whole = attributes.to_rows ? lowering.Input(0) : lowering.Output(0);
  Exchange of{GroupSizeOf(lowering), attributes.samples, 0, {}};
  of.chunk_rows = whole.dims[0].local / (of.samples * 2 * of.ranks);
  if (whole.segments.empty()) of.segments = {whole.dims[1].local};
  for (const model::Segment& segment : whole.segments) of.segments.push_back(segment.local);
  for (const int64_t columns : of.segments) of.part += columns;
  return of;
}

// [rows,n·part] → [n,rows,part]: the columns of each rank.
Tensor ColumnsByRank(Function& text, const Exchange& of, const Tensor& x) {
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (const int64_t columns : of.segments) {
    const Tensor segment = text.Slice(x, 1, first, first + of.ranks * columns);
    parts.push_back(text.Reshape(segment, {of.rows(), of.ranks, columns}));
    first += of.ranks * columns;
  }
  return text.Transpose(text.Concatenate(parts, 2), {1, 0, 2});
}

// The inverse.
Tensor ColumnsOfAll(Function& text, const Exchange& of, const Tensor& x) {
  const Tensor by_row = text.Transpose(x, {1, 0, 2});  // [rows,n,part]
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (const int64_t columns : of.segments) {
    const Tensor segment = text.Slice(by_row, 2, first, first + columns);
    parts.push_back(text.Reshape(segment, {of.rows(), of.ranks * columns}));
    first += columns;
  }
  return text.Concatenate(parts, 1);
}

// [n,rows,part] → [n·rows,part]: the ranks' chunks in the order of their positions.
Tensor RowsOfAll(Function& text, const Exchange& of, const Tensor& x) {
  const Tensor chunks = text.Reshape(x, {of.ranks, of.samples, 2, of.chunk_rows, of.part});
  const Tensor heads = text.Slice(chunks, 2, 0, 1);
  const Tensor tails = text.Slice(chunks, 2, 1, 2);
  std::vector<Tensor> ordered;
  for (int64_t i = 0; i < of.ranks; ++i) ordered.push_back(text.Slice(heads, 0, i, i + 1));
  for (int64_t i = of.ranks; i-- > 0;) ordered.push_back(text.Slice(tails, 0, i, i + 1));
  const Tensor all = text.Transpose(text.Concatenate(ordered, 0), {1, 0, 2, 3, 4});
  return text.Reshape(all, {of.ranks * of.rows(), of.part});
}

// The inverse.
Tensor RowsByRank(Function& text, const Exchange& of, const Tensor& x) {
  const Tensor chunks = text.Reshape(x, {of.samples, 2 * of.ranks, of.chunk_rows, of.part});
  const Shape one = {1, of.samples, 1, of.chunk_rows, of.part};
  std::vector<Tensor> ranks;
  for (int64_t i = 0; i < of.ranks; ++i) {
    const int64_t tail = 2 * of.ranks - 1 - i;
    ranks.push_back(text.Concatenate({text.Reshape(text.Slice(chunks, 1, i, i + 1), one),
                                      text.Reshape(text.Slice(chunks, 1, tail, tail + 1), one)},
                                     2));
  }
  return text.Reshape(text.Concatenate(ranks, 0), {of.ranks, of.rows(), of.part});
}

}  // namespace

Status ExchangeHeads(const Lowering& lowering) {
  if (!HasPeers(lowering)) return Copy(lowering);
  Function& text = lowering.text;
  TROUPE_RETURN_IF_ERROR(ExpectEqualExtents(lowering));
  const Exchange of = ExchangeOf(lowering);
  const Tensor x = lowering.In(0);
  const bool to_rows = lowering.attributes<model::ExchangeHeadsAttributes>().to_rows;
  const Tensor sent = to_rows ? RowsByRank(text, of, x) : ColumnsByRank(text, of, x);
  const Tensor received = text.AllToAll(sent, PartitionGroups(lowering));
  lowering.Out(0, to_rows ? ColumnsOfAll(text, of, received) : RowsOfAll(text, of, received));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
