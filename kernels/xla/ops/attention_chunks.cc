#include "kernels/xla/ops/attention_chunks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/xla/ops/attention_loops.h"
#include "kernels/xla/ops/largest.h"
#include "model/program/attention_chunks.h"

namespace troupe::kernels::xla {
namespace {

using model::QueryChunk;

constexpr double kNoPosition = std::numeric_limits<int32_t>::max();  // no query sees it

// The positions of rows [begin, end), each `times` times.
std::vector<double> Positions(const model::ContextRows& rows, int64_t begin, int64_t end,
                              int64_t times) {
  std::vector<double> positions;
  for (int64_t row = begin; row < end; ++row)
    positions.insert(positions.end(), times, static_cast<double>(rows.Position(row)));
  return positions;
}

// A softmax over the keys so far, before its division by `total`.
struct Running {
  Tensor max, total;  // f[B,G,N]
  Tensor output;      // f[B,G,N,D]
};

// Writes attention of rows of queries to keys.
class Attending {
 public:
  Attending(Function& text, const AttentionOperands& of)
      : text_(text),
        compute_(of.compute),
        scale_(1.0 / std::sqrt(static_cast<double>(of.attributes.head_dim))) {}

  // f[B,G,N,K], with -infinity where a key is not visible.
  Tensor Scores(const Queries& queries, const Keys& keys) const {
    const Tensor scores = text_.Multiply(EachKey(queries.q, keys.k), scale_);
    const Tensor key_at = text_.Broadcast(keys.at, scores.shape, {3});
    Tensor visible = text_.Compare("LE", key_at, text_.Broadcast(queries.at, scores.shape, {2}));
    if (queries.first.has_value()) {
      const Tensor first = text_.Broadcast(*queries.first, scores.shape, {0, 2});
      visible = text_.Binary("and", visible, text_.Compare("GE", key_at, first));
    }
    return text_.Select(visible, scores, text_.Constant(Element::kF32, {}, -INFINITY));
  }

  // Merges further keys into `before`.
  Running Merge(const std::optional<Running>& before, const Queries& queries,
                const Keys& keys) const {
    const Tensor scores = Scores(queries, keys);
    Tensor max = Largest(text_, scores);
    if (before.has_value()) max = text_.Binary("maximum", max, before->max);
    const Tensor weights =
        text_.Unary("exponential", text_.Subtract(scores, Along(max, scores.shape[3])));
    Tensor total = text_.Reduce("add", weights, {3});
    Tensor output = Sums(weights, keys.v, 3);
    if (before.has_value()) {
      const Tensor share = text_.Unary("exponential", text_.Subtract(before->max, max));
      total = text_.Add(total, text_.Multiply(before->total, share));
      output = text_.Add(output, text_.Multiply(before->output, Along(share, output.shape[3])));
    }
    return {max, total, output};
  }

  struct Gradients {
    Tensor q;     // f[B,G,N,D]
    Tensor k, v;  // f[B,G,K,D]
  };
  // The parts of the gradients that pairs of these queries and keys contribute. dout f[B,G,N,D],
  // lse and delta f[B,G,N].
  Gradients Differentiate(const Queries& queries, const Keys& keys, const Tensor& dout,
                          const Tensor& lse, const Tensor& delta) const {
    const Tensor scores = Scores(queries, keys);
    const int64_t count = scores.shape[3];
    const Tensor weights = text_.Unary("exponential", text_.Subtract(scores, Along(lse, count)));
    const Tensor dweights = text_.Subtract(EachKey(dout, keys.v), Along(delta, count));
    const Tensor dscores = text_.Multiply(text_.Multiply(weights, dweights), scale_);
    return {Sums(dscores, keys.k, 3), Sums(dscores, queries.q, 2), Sums(weights, dout, 2)};
  }

  // f[B,G,N] for each of `count` elements of a further dim.
  Tensor Along(const Tensor& rows, int64_t count) const {
    Shape shape = rows.shape;
    shape.push_back(count);
    return text_.Broadcast(rows, shape, {0, 1, 2});
  }

 private:
  // [B,G,N,D] times [B,G,K,D] over D.
  Tensor EachKey(const Tensor& rows, const Tensor& keys) const {
    return text_.Dot(text_.Convert(rows, compute_), keys,
                     {.batch = {{0, 0}, {1, 1}}, .contracted = {{3, 3}}});
  }
  // [B,G,N,K] times x [B,G,·,D] over dim `over` of the first.
  Tensor Sums(const Tensor& weights, const Tensor& x, int over) const {
    return text_.Dot(text_.Convert(weights, compute_), text_.Convert(x, compute_),
                     {.batch = {{0, 0}, {1, 1}}, .contracted = {{over, 2}}});
  }

  Function& text_;
  const Element compute_;
  const double scale_;
};

// The operands by head, and their chunks.
class Operands {
 public:
  Operands(Function& text, const AttentionOperands& of)
      : text_(text),
        of_(of),
        chunks_(model::ChunksOf(of.attributes, of.query_rows, of.key_rows)),
        q_(RowsByHead(of.q)) {
    const int64_t rows = of.key_rows.rows;
    const int64_t spare = by_blocks() ? blocks(rows) * size() - rows : 0;
    const auto by_head = [&](const Tensor& x) {
      return text.Pad(text.Transpose(x, {0, 2, 1, 3}), 2, 0, spare);
    };
    keys_.k = by_head(of.k);
    keys_.v = by_head(of.v);
    std::vector<double> at = Positions(of.key_rows, 0, rows, 1);
    at.insert(at.end(), spare, kNoPosition);
    keys_.at = text.Vector(Element::kI32, at);
  }

  int64_t size() const { return chunks_.size; }
  const std::vector<QueryChunk>& chunks() const { return chunks_.chunks; }
  int64_t blocks(int64_t keys) const { return (keys + size() - 1) / size(); }
  bool loops() const { return chunks_.loops; }
  bool by_blocks() const { return chunks_.by_blocks; }
  const Keys& keys() const { return keys_; }
  Keys FirstKeys(int64_t count) const {
    return {text_.Slice(keys_.k, 2, 0, count), text_.Slice(keys_.v, 2, 0, count),
            text_.Slice(keys_.at, 0, 0, count)};
  }

  // x [B,Tq,G,M,…] as [B,G,Tq·M,…].
  Tensor RowsByHead(const Tensor& x) const {
    std::vector<int> dims = {0, 2, 1, 3};
    if (x.shape.size() == 5) dims.push_back(4);
    const Tensor by_head = text_.Transpose(x, dims);
    Shape shape = {x.shape[0], x.shape[2], x.shape[1] * x.shape[3]};
    if (x.shape.size() == 5) shape.push_back(x.shape[4]);
    return text_.Reshape(by_head, shape);
  }
  // The rows of a chunk of such a tensor.
  Tensor RowsOf(const Tensor& by_head, const QueryChunk& chunk) const {
    return text_.Slice(by_head, 2, chunk.begin * heads(), chunk.end * heads());
  }
  // The queries [begin, end).
  Queries QueriesOf(const QueryChunk& chunk) const {
    Queries queries;
    queries.q = RowsOf(q_, chunk);
    queries.at =
        text_.Vector(Element::kI32, Positions(of_.query_rows, chunk.begin, chunk.end, heads()));
    if (!of_.documents.has_value()) return queries;
    const int64_t count = chunk.end - chunk.begin;
    const Tensor first = text_.Slice(*of_.documents, 1, chunk.begin, chunk.end);
    const int64_t samples = first.shape[0];
    queries.first = text_.Reshape(text_.Broadcast(first, {samples, count, heads()}, {0, 1}),
                                  {samples, count * heads()});
    return queries;
  }
  ChunkLoop Loop() const {
    std::vector<double> lasts;
    for (const QueryChunk& chunk : chunks())
      lasts.push_back(static_cast<double>(blocks(chunk.keys)));
    return {text_, size() * heads(), std::move(lasts), QueriesOf({0, of_.query_rows.rows, 0}),
            keys_};
  }
  const Shape& q_shape() const { return q_.shape; }  // [B,G,Tq·M,D]
  int64_t heads() const { return of_.q.shape[3]; }   // that read the same key head

  // The inverse of RowsByHead.
  Tensor InOrder(const Tensor& rows) const {
    const Shape& q = of_.q.shape;
    Shape shape = {q[0], q[2], q[1], q[3]};
    if (rows.shape.size() == 3) return text_.Transpose(text_.Reshape(rows, shape), {0, 2, 1, 3});
    shape.push_back(q[4]);
    return text_.Transpose(text_.Reshape(rows, shape), {0, 2, 1, 3, 4});
  }
  Tensor InOrder(const std::vector<Tensor>& parts) const {
    return InOrder(text_.Concatenate(parts, 2));
  }

 private:
  Function& text_;
  const AttentionOperands& of_;
  const model::AttentionChunks chunks_;
  const Tensor q_;
  Keys keys_;
};

using State = Function::State;

Running MergeByBlocks(Function& text, const Attending& attending, const BlockLoop& loop,
                      const Shape& rows, const std::optional<Running>& before) {
  const Shape each = {rows[0], rows[1], rows[2]};
  const auto all = [&](const Shape& shape, double value) {
    return text.Constant(Element::kF32, shape, value);
  };
  // A block may show a query no key: the lowest number, unlike -infinity, leaves weights of 0 then.
  const Running start = before.value_or(
      Running{all(each, std::numeric_limits<float>::lowest()), all(each, 0), all(rows, 0)});
  const State end =
      loop.Run({start.max, start.total, start.output}, {},
               [&](const State& now, const State&, const Queries& of, const Keys& keys,
                   const Tensor&) -> State {
                 const Running next = attending.Merge(Running{now[0], now[1], now[2]}, of, keys);
                 return {next.max, next.total, next.output};
               });
  return {end[0], end[1], end[2]};
}

// The gradients of a chunk's queries, and dk and dv with what the chunk adds.
struct Summed {
  Tensor q, k, v;
};
Summed DifferentiateByBlocks(Function& text, const Attending& attending, int64_t size,
                             const BlockLoop& loop, const Summed& before, const Tensor& dout,
                             const Tensor& lse, const Tensor& delta) {
  const State end =
      loop.Run({before.q, before.k, before.v}, {dout, lse, delta},
               [&](const State& now, const State& constants, const Queries& rows, const Keys& keys,
                   const Tensor& begin) -> State {
                 const auto part =
                     attending.Differentiate(rows, keys, constants[0], constants[1], constants[2]);
                 const auto add = [&](const Tensor& sum, const Tensor& more) {
                   const Tensor old = text.SliceAt(sum, begin, size, 2);
                   return text.UpdateAt(sum, text.Add(old, more), begin, 2);
                 };
                 return {text.Add(now[0], part.q), add(now[1], part.k), add(now[2], part.v)};
               });
  return {end[0], end[1], end[2]};
}

// The result of a chunk by its running softmax.
struct Finished {
  Tensor output, lse;
};
Finished Finish(Function& text, const Attending& attending, const Running& end) {
  return {text.Divide(end.output, attending.Along(end.total, end.output.shape[3])),
          text.Add(end.max, text.Unary("log", end.total))};
}

Running RunningOf(Function& text, const Tensor& output, const Tensor& lse) {
  return {lse, text.Constant(Element::kF32, lse.shape, 1), output};
}

AttentionResult ForwardInLoop(Function& text, const Operands& operands, const Attending& attending,
                              const std::optional<AttentionResult>& earlier) {
  const Shape& shape = operands.q_shape();
  const State start = {text.Constant(Element::kF32, shape, 0),
                       text.Constant(Element::kF32, {shape[0], shape[1], shape[2]}, 0)};
  State by_rows;
  if (earlier.has_value()) by_rows = {earlier->output, earlier->lse};
  const State end = operands.Loop().Run(
      start, by_rows, [&](const State& now, const ChunkLoop::Chunk& chunk) -> State {
        std::optional<Running> before;
        if (earlier.has_value()) before = RunningOf(text, chunk.rows[0], chunk.rows[1]);
        const BlockLoop loop(text, operands.size(), chunk.queries, chunk.keys, chunk.last);
        const Finished of = Finish(
            text, attending, MergeByBlocks(text, attending, loop, chunk.queries.q.shape, before));
        return {text.UpdateAt(now[0], of.output, chunk.first_row, 2),
                text.UpdateAt(now[1], of.lse, chunk.first_row, 2)};
      });
  return {operands.InOrder(end[0]), operands.InOrder(end[1])};
}

Summed BackwardInLoop(Function& text, const Operands& operands, const Attending& attending,
                      const Tensor& douts, const Tensor& lses, const Tensor& deltas) {
  const Tensor none = text.Constant(Element::kF32, operands.q_shape(), 0);
  const Tensor no_keys = text.Constant(Element::kF32, operands.keys().k.shape, 0);
  const State end = operands.Loop().Run(
      {none, no_keys, no_keys}, {douts, lses, deltas},
      [&](const State& now, const ChunkLoop::Chunk& chunk) -> State {
        const BlockLoop loop(text, operands.size(), chunk.queries, chunk.keys, chunk.last);
        const Tensor no_rows = text.Constant(Element::kF32, chunk.queries.q.shape, 0);
        const Summed sums =
            DifferentiateByBlocks(text, attending, operands.size(), loop, {no_rows, now[1], now[2]},
                                  chunk.rows[0], chunk.rows[1], chunk.rows[2]);
        return {text.UpdateAt(now[0], sums.q, chunk.first_row, 2), sums.k, sums.v};
      });
  return {end[0], end[1], end[2]};
}

}  // namespace

// A query that sees no key, here or before, does not exist.
AttentionResult AttentionForward(Function& text, const AttentionOperands& of,
                                 const std::optional<AttentionResult>& before) {
  const Operands operands(text, of);
  const Attending attending(text, of);
  std::optional<AttentionResult> earlier;
  if (before.has_value())
    earlier = {operands.RowsByHead(before->output), operands.RowsByHead(before->lse)};
  if (operands.loops()) return ForwardInLoop(text, operands, attending, earlier);
  std::vector<Tensor> outputs, lses;
  for (const QueryChunk& range : operands.chunks()) {
    std::optional<Running> start;
    if (earlier.has_value()) {
      start = RunningOf(text, operands.RowsOf(earlier->output, range),
                        operands.RowsOf(earlier->lse, range));
    }
    if (range.keys == 0) {
      outputs.push_back(start->output);
      lses.push_back(start->max);
      continue;
    }
    Queries queries = operands.QueriesOf(range);
    // One chunk after the other: a TPU's compiler would hold the scores of all at once.
    if (!outputs.empty()) {
      const State state = text.Barrier({queries.q, outputs.back(), lses.back()});
      queries.q = state[0], outputs.back() = state[1], lses.back() = state[2];
    }
    const auto by_blocks = [&] {
      const Tensor last =
          text.Constant(Element::kI32, {}, static_cast<double>(operands.blocks(range.keys)));
      const BlockLoop loop(text, operands.size(), queries, operands.keys(), last);
      return MergeByBlocks(text, attending, loop, queries.q.shape, start);
    };
    const Finished end = Finish(
        text, attending,
        operands.by_blocks() ? by_blocks()
                             : attending.Merge(start, queries, operands.FirstKeys(range.keys)));
    outputs.push_back(end.output);
    lses.push_back(end.lse);
  }
  return {operands.InOrder(outputs), operands.InOrder(lses)};
}

namespace {

Summed BackwardOneByOne(Function& text, const Operands& operands, const Attending& attending,
                        const Tensor& douts, const Tensor& lses, const Tensor& deltas) {
  const Shape& all_keys = operands.keys().k.shape;
  Tensor dk = text.Constant(Element::kF32, all_keys, 0), dv = dk;
  std::vector<Tensor> dqs;
  for (const QueryChunk& range : operands.chunks()) {
    Queries queries = operands.QueriesOf(range);
    const Tensor none = text.Constant(Element::kF32, queries.q.shape, 0);
    if (range.keys == 0) {
      dqs.push_back(none);
      continue;
    }
    if (!dqs.empty()) {
      const State state = text.Barrier({queries.q, dqs.back(), dk, dv});
      queries.q = state[0], dqs.back() = state[1], dk = state[2], dv = state[3];
    }
    const Tensor dout = operands.RowsOf(douts, range), delta = operands.RowsOf(deltas, range);
    const Tensor lse = operands.RowsOf(lses, range);
    if (operands.by_blocks()) {
      const Tensor last =
          text.Constant(Element::kI32, {}, static_cast<double>(operands.blocks(range.keys)));
      const BlockLoop loop(text, operands.size(), queries, operands.keys(), last);
      const Summed sums = DifferentiateByBlocks(text, attending, operands.size(), loop,
                                                {none, dk, dv}, dout, lse, delta);
      dqs.push_back(sums.q);
      dk = sums.k;
      dv = sums.v;
      continue;
    }
    const auto part =
        attending.Differentiate(queries, operands.FirstKeys(range.keys), dout, lse, delta);
    const auto add = [&](const Tensor& sum, const Tensor& more) {
      return text.Add(sum, text.Pad(more, 2, 0, all_keys[2] - range.keys));
    };
    dqs.push_back(part.q);
    dk = add(dk, part.k);
    dv = add(dv, part.v);
  }
  return {text.Concatenate(dqs, 2), dk, dv};
}

}  // namespace

AttentionGradient AttentionBackward(Function& text, const AttentionOperands& of,
                                    const Tensor& doutput, const Tensor& output,
                                    const Tensor& lse) {
  const Operands operands(text, of);
  const Attending attending(text, of);
  const Tensor douts = operands.RowsByHead(doutput), lses = operands.RowsByHead(lse);
  const Tensor deltas =
      operands.RowsByHead(text.Reduce("add", text.Multiply(doutput, output), {4}));
  const Summed sums = operands.loops()
                          ? BackwardInLoop(text, operands, attending, douts, lses, deltas)
                          : BackwardOneByOne(text, operands, attending, douts, lses, deltas);
  const auto rows = [&](const Tensor& by_head) {
    return text.Transpose(text.Slice(by_head, 2, 0, of.key_rows.rows), {0, 2, 1, 3});
  };
  return {operands.InOrder(sums.q), rows(sums.k), rows(sums.v)};
}

}  // namespace troupe::kernels::xla
