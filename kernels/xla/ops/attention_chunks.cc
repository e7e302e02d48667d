#include "kernels/xla/ops/attention_chunks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/xla/ops/largest.h"

namespace troupe::kernels::xla {
namespace {

constexpr int64_t kLeastChunk = 128;
constexpr int64_t kMostChunks = 16;
constexpr double kNoPosition = std::numeric_limits<int32_t>::max();  // no query sees it

// The positions of rows [begin, end), each `times` times.
std::vector<double> Positions(const model::ContextRows& rows, int64_t begin, int64_t end,
                              int64_t times) {
  std::vector<double> positions;
  for (int64_t row = begin; row < end; ++row)
    positions.insert(positions.end(), times, static_cast<double>(rows.Position(row)));
  return positions;
}

// Tensors of a chunk's queries. N rows: a row for each query and each of the M heads that read the
// same key head, so that every matmul is one of matrices for each sample and key head.
struct Queries {
  Tensor q;                     // [B,G,N,D]
  Tensor at;                    // i[N]: positions
  std::optional<Tensor> first;  // i[B,N]: the first position that is seen
};

struct Keys {
  Tensor k, v;  // [B,G,K,D]
  Tensor at;    // i[K]: positions
};

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

  // f[B,G,N,K], with -infinity where a key is not seen.
  Tensor Scores(const Queries& queries, const Keys& keys) const {
    const Tensor scores = text_.Multiply(EachKey(queries.q, keys.k), scale_);
    const Tensor key_at = text_.Broadcast(keys.at, scores.shape, {3});
    Tensor seen = text_.Compare("LE", key_at, text_.Broadcast(queries.at, scores.shape, {2}));
    if (queries.first.has_value()) {
      const Tensor first = text_.Broadcast(*queries.first, scores.shape, {0, 2});
      seen = text_.Binary("and", seen, text_.Compare("GE", key_at, first));
    }
    return text_.Select(seen, scores, text_.Constant(Element::kF32, {}, -INFINITY));
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
      : text_(text), of_(of), size_(ChunkSize(of.attributes.tokens)), q_(RowsByHead(of.q)) {
    const int64_t rows = of.key_rows.rows;
    const int64_t spare = skips_documents() ? blocks(rows) * size_ - rows : 0;
    const auto by_head = [&](const Tensor& x) {
      return text.Pad(text.Transpose(x, {0, 2, 1, 3}), 2, 0, spare);
    };
    keys_.k = by_head(of.k);
    keys_.v = by_head(of.v);
    std::vector<double> at = Positions(of.key_rows, 0, rows, 1);
    at.insert(at.end(), spare, kNoPosition);
    keys_.at = text.Vector(Element::kI32, at);
  }

  int64_t size() const { return size_; }
  int64_t blocks(int64_t keys) const { return (keys + size_ - 1) / size_; }
  // Whether a loop over blocks of keys leaves out those that documents hide.
  bool skips_documents() const { return of_.documents.has_value() && of_.key_rows.rows > size_; }
  const Keys& keys() const { return keys_; }
  Keys FirstKeys(int64_t count) const {
    return {text_.Slice(keys_.k, 2, 0, count), text_.Slice(keys_.v, 2, 0, count),
            text_.Slice(keys_.at, 0, 0, count)};
  }

  // x [B,Tq,G,M,…] as [B,G,Tq,M,…], and of this the rows [B,G,N,…] of a chunk.
  Tensor RowsByHead(const Tensor& x) const {
    if (x.shape.size() == 4) return text_.Transpose(x, {0, 2, 1, 3});
    return text_.Transpose(x, {0, 2, 1, 3, 4});
  }
  Tensor RowsOf(const Tensor& by_head, const QueryChunk& chunk) const {
    const Tensor rows = text_.Slice(by_head, 2, chunk.begin, chunk.end);
    Shape shape = {rows.shape[0], rows.shape[1], rows.shape[2] * rows.shape[3]};
    if (rows.shape.size() == 5) shape.push_back(rows.shape[4]);
    return text_.Reshape(rows, shape);
  }
  Queries QueriesOf(const QueryChunk& chunk) const {
    const int64_t heads = of_.q.shape[3], count = chunk.end - chunk.begin;
    Queries queries;
    queries.q = RowsOf(q_, chunk);
    queries.at =
        text_.Vector(Element::kI32, Positions(of_.query_rows, chunk.begin, chunk.end, heads));
    if (!of_.documents.has_value()) return queries;
    const Tensor first = text_.Slice(*of_.documents, 1, chunk.begin, chunk.end);
    const int64_t samples = first.shape[0];
    queries.first = text_.Reshape(text_.Broadcast(first, {samples, count, heads}, {0, 1}),
                                  {samples, count * heads});
    return queries;
  }

  // The inverse of RowsByHead and RowsOf for the parts of all chunks.
  Tensor InOrder(const std::vector<Tensor>& parts) const {
    const Tensor all = text_.Concatenate(parts, 2);
    const Shape& q = of_.q.shape;
    Shape shape = {q[0], q[2], q[1], q[3]};
    if (all.shape.size() == 3) return text_.Transpose(text_.Reshape(all, shape), {0, 2, 1, 3});
    shape.push_back(q[4]);
    return text_.Transpose(text_.Reshape(all, shape), {0, 2, 1, 3, 4});
  }

 private:
  Function& text_;
  const AttentionOperands& of_;
  const int64_t size_;
  const Tensor q_;
  Keys keys_;
};

// Loops over the blocks of keys that documents do not hide from all queries of a chunk: from the
// first that one of them sees to the last that `range` counts.
class BlockLoop {
 public:
  BlockLoop(Function& text, const Operands& operands, const Queries& queries,
            const QueryChunk& range)
      : text_(text), operands_(operands), queries_(queries), last_(operands.blocks(range.keys)) {}

  using State = Function::State;
  using Body = std::function<State(const State& state, const State& constants,
                                   const Queries& queries, const Keys& keys, const Tensor& begin)>;
  // Replaces `state` by body(…) for each block; `constants` are tensors that the body reads, and
  // `begin` is the first key of the block. Returns the last state.
  State Run(const State& state, const State& constants, const Body& body) const {
    State all = {FirstBlock()};
    const Keys& keys = operands_.keys();
    for (const Tensor& tensor : {queries_.q, queries_.at, *queries_.first, keys.k, keys.v, keys.at})
      all.push_back(tensor);
    all.insert(all.end(), constants.begin(), constants.end());
    all.insert(all.end(), state.begin(), state.end());
    const size_t first_constant = 7, first_state = first_constant + constants.size();
    const State end = text_.While(
        all,
        [&](const State& now) { return text_.Compare("LT", now[0], static_cast<double>(last_)); },
        [&](const State& now) {
          const auto size = static_cast<double>(operands_.size());
          const Tensor begin =
              text_.Binary("multiply", now[0], text_.Constant(Element::kI32, {}, size));
          const auto block = [&](const Tensor& x, int dim) {
            return text_.SliceAt(x, begin, operands_.size(), dim);
          };
          State next = now;
          const State made = body({now.begin() + first_state, now.end()},
                                  {now.begin() + first_constant, now.begin() + first_state},
                                  {now[1], now[2], now[3]},
                                  {block(now[4], 2), block(now[5], 2), block(now[6], 0)}, begin);
          next[0] = text_.Add(now[0], 1);
          std::ranges::copy(made, next.begin() + first_state);
          return next;
        });
    return {end.begin() + first_state, end.end()};
  }

 private:
  // The block of the first key that a query of the chunk sees: keys are in order of positions.
  Tensor FirstBlock() const {
    const Tensor least = text_.Reduce("minimum", *queries_.first, {0, 1});
    const Tensor hidden =
        text_.Convert(text_.Compare("LT", operands_.keys().at, least), Element::kI32);
    return text_.Binary("divide", text_.Reduce("add", hidden, {0}),
                        text_.Constant(Element::kI32, {}, static_cast<double>(operands_.size())));
  }

  Function& text_;
  const Operands& operands_;
  const Queries& queries_;
  const int64_t last_;
};

Running MergeByDocuments(Function& text, const Attending& attending, const BlockLoop& loop,
                         const Queries& queries, const std::optional<Running>& before) {
  const Shape& rows = queries.q.shape;
  const Shape each = {rows[0], rows[1], rows[2]};
  const auto all = [&](const Shape& shape, double value) {
    return text.Constant(Element::kF32, shape, value);
  };
  // A block may show a query no key: the lowest number, unlike -infinity, leaves weights of 0 then.
  const Running start = before.value_or(
      Running{all(each, std::numeric_limits<float>::lowest()), all(each, 0), all(rows, 0)});
  const Function::State end =
      loop.Run({start.max, start.total, start.output}, {},
               [&](const Function::State& now, const Function::State&, const Queries& of,
                   const Keys& keys, const Tensor&) -> Function::State {
                 const Running next = attending.Merge(Running{now[0], now[1], now[2]}, of, keys);
                 return {next.max, next.total, next.output};
               });
  return {end[0], end[1], end[2]};
}

}  // namespace

std::vector<QueryChunk> QueryChunks(const model::ContextRows& queries,
                                    const model::ContextRows& keys, int64_t most) {
  std::vector<QueryChunk> chunks;
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += most) {
      const int64_t last = std::min(end, first + most);
      chunks.push_back({first, last, keys.CountBefore(queries.Position(last - 1) + 1)});
    }
  };
  add(0, queries.chunk);
  add(queries.chunk, queries.rows);
  return chunks;
}

int64_t ChunkSize(int64_t tokens) { return std::max(kLeastChunk, tokens / kMostChunks); }

// A query that sees no key, here or before, does not exist.
AttentionResult AttentionForward(Function& text, const AttentionOperands& of,
                                 const std::optional<AttentionResult>& before) {
  const Operands operands(text, of);
  const Attending attending(text, of);
  std::optional<AttentionResult> earlier;
  if (before.has_value())
    earlier = {operands.RowsByHead(before->output), operands.RowsByHead(before->lse)};
  std::vector<Tensor> outputs, lses;
  for (const QueryChunk& range : QueryChunks(of.query_rows, of.key_rows, operands.size())) {
    std::optional<Running> start;
    if (earlier.has_value()) {
      const Tensor lse = operands.RowsOf(earlier->lse, range);
      start = {lse, text.Constant(Element::kF32, lse.shape, 1),
               operands.RowsOf(earlier->output, range)};
    }
    if (range.keys == 0) {
      outputs.push_back(start->output);
      lses.push_back(start->max);
      continue;
    }
    Queries queries = operands.QueriesOf(range);
    // One chunk after the other: a TPU's compiler would hold the scores of all at once.
    if (!outputs.empty()) {
      const Function::State state = text.Barrier({queries.q, outputs.back(), lses.back()});
      queries.q = state[0], outputs.back() = state[1], lses.back() = state[2];
    }
    const Running end =
        operands.skips_documents()
            ? MergeByDocuments(text, attending, BlockLoop(text, operands, queries, range), queries,
                               start)
            : attending.Merge(start, queries, operands.FirstKeys(range.keys));
    outputs.push_back(text.Divide(end.output, attending.Along(end.total, end.output.shape[3])));
    lses.push_back(text.Add(end.max, text.Unary("log", end.total)));
  }
  return {operands.InOrder(outputs), operands.InOrder(lses)};
}

AttentionGradient AttentionBackward(Function& text, const AttentionOperands& of,
                                    const Tensor& doutput, const Tensor& output,
                                    const Tensor& lse) {
  const Operands operands(text, of);
  const Attending attending(text, of);
  const Tensor douts = operands.RowsByHead(doutput), lses = operands.RowsByHead(lse);
  const Tensor deltas =
      operands.RowsByHead(text.Reduce("add", text.Multiply(doutput, output), {4}));
  const Shape& all_keys = operands.keys().k.shape;
  Tensor dk = text.Constant(Element::kF32, all_keys, 0), dv = dk;
  std::vector<Tensor> dqs;
  for (const QueryChunk& range : QueryChunks(of.query_rows, of.key_rows, operands.size())) {
    Queries queries = operands.QueriesOf(range);
    const Tensor none = text.Constant(Element::kF32, queries.q.shape, 0);
    if (range.keys == 0) {
      dqs.push_back(none);
      continue;
    }
    if (!dqs.empty()) {
      const Function::State state = text.Barrier({queries.q, dqs.back(), dk, dv});
      queries.q = state[0], dqs.back() = state[1], dk = state[2], dv = state[3];
    }
    const Tensor dout = operands.RowsOf(douts, range), delta = operands.RowsOf(deltas, range);
    const Tensor row_lse = operands.RowsOf(lses, range);
    if (operands.skips_documents()) {
      const Function::State end =
          BlockLoop(text, operands, queries, range)
              .Run({none, dk, dv}, {dout, row_lse, delta},
                   [&](const Function::State& now, const Function::State& constants,
                       const Queries& rows, const Keys& keys,
                       const Tensor& begin) -> Function::State {
                     const auto part = attending.Differentiate(rows, keys, constants[0],
                                                               constants[1], constants[2]);
                     const auto add = [&](const Tensor& sum, const Tensor& more) {
                       const Tensor old = text.SliceAt(sum, begin, operands.size(), 2);
                       return text.UpdateAt(sum, text.Add(old, more), begin, 2);
                     };
                     return {text.Add(now[0], part.q), add(now[1], part.k), add(now[2], part.v)};
                   });
      dqs.push_back(end[0]);
      dk = end[1];
      dv = end[2];
      continue;
    }
    const auto part =
        attending.Differentiate(queries, operands.FirstKeys(range.keys), dout, row_lse, delta);
    const auto add = [&](const Tensor& sum, const Tensor& more) {
      return text.Add(sum, text.Pad(more, 2, 0, all_keys[2] - range.keys));
    };
    dqs.push_back(part.q);
    dk = add(dk, part.k);
    dv = add(dv, part.v);
  }
  const auto rows = [&](const Tensor& by_head) {
    return text.Transpose(text.Slice(by_head, 2, 0, of.key_rows.rows), {0, 2, 1, 3});
  };
  return {operands.InOrder(dqs), rows(dk), rows(dv)};
}

}  // namespace troupe::kernels::xla
