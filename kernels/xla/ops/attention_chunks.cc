#include "kernels/xla/ops/attention_chunks.h"

#include <algorithm>
#include <cmath>

namespace troupe::kernels::xla {
namespace {

constexpr int64_t kLeastChunk = 128;
constexpr int64_t kMostChunks = 16;

double Scale(const AttentionOperands& of) {
  return 1.0 / std::sqrt(static_cast<double>(of.attributes.head_dim));
}

// The positions of rows [begin, end).
Tensor Positions(Function& text, const model::ContextRows& rows, int64_t begin, int64_t end) {
  std::vector<double> positions;
  for (int64_t row = begin; row < end; ++row)
    positions.push_back(static_cast<double>(rows.Position(row)));
  return text.Vector(Element::kI32, positions);
}

// Queries of a chunk with the keys that they may see. Scores have the dims [B,G,C,M,K].
class Chunk {
 public:
  Chunk(Function& text, const AttentionOperands& of, const QueryChunk& chunk)
      : text_(text), of_(of), chunk_(chunk), q(Queries(of.q)), k(Keys(of.k)), v(Keys(of.v)) {
    shape_ = {q.shape[0], q.shape[2], q.shape[1], q.shape[3], chunk.keys};
    const Tensor query_at = Positions(text, of.query_rows, chunk.begin, chunk.end);
    const Tensor key_at = text.Broadcast(Positions(text, of.key_rows, 0, chunk.keys), shape_, {4});
    seen_ = text.Compare("LE", key_at, text.Broadcast(query_at, shape_, {2}));
    if (of.documents.has_value()) {
      const Tensor first = text.Broadcast(Queries(*of.documents), shape_, {0, 2});
      seen_ = text.Binary("and", seen_, text.Compare("GE", key_at, first));
    }
  }

  // The rows of this chunk's queries, of a tensor [B,Tq,…].
  Tensor Queries(const Tensor& x) const { return text_.Slice(x, 1, chunk_.begin, chunk_.end); }
  Tensor Keys(const Tensor& x) const { return text_.Slice(x, 1, 0, chunk_.keys); }

  // [B,C,G,M,D] times [B,K,G,D] over D.
  Tensor WithKeys(const Tensor& a, const Tensor& keys) const {
    return text_.Dot(text_.Convert(a, of_.compute), keys,
                     {.batch = {{0, 0}, {2, 2}}, .contracted = {{4, 3}}});
  }
  // Scores, with -infinity where a key is not seen.
  Tensor Scores() const {
    return text_.Select(seen_, text_.Multiply(WithKeys(q, k), Scale(of_)),
                        text_.Constant(Element::kF32, {}, -INFINITY));
  }
  // Weights [B,G,C,M,K] times [B,K,G,D] over K → [B,C,G,M,D].
  Tensor OverKeys(const Tensor& weights, const Tensor& keys) const {
    const Tensor sum = text_.Dot(text_.Convert(weights, of_.compute), keys,
                                 {.batch = {{0, 0}, {1, 2}}, .contracted = {{4, 1}}});
    return text_.Transpose(sum, {0, 2, 1, 3, 4});
  }
  // Weights times [B,C,G,M,D] over C and M → [B,K,G,D], with zero rows up to Tk.
  Tensor OverQueries(const Tensor& weights, const Tensor& queries) const {
    const Tensor sum =
        text_.Dot(text_.Convert(weights, of_.compute), text_.Convert(queries, of_.compute),
                  {.batch = {{0, 0}, {1, 2}}, .contracted = {{2, 1}, {3, 3}}});
    return text_.Pad(text_.Transpose(sum, {0, 2, 1, 3}), 1, 0, of_.k.shape[1] - chunk_.keys);
  }
  // [B,C,G,M] as [B,G,C,M], and for every key.
  Tensor ByHead(const Tensor& rows) const { return text_.Transpose(rows, {0, 2, 1, 3}); }
  Tensor EachKey(const Tensor& by_head) const {
    return text_.Broadcast(by_head, shape_, {0, 1, 2, 3});
  }
  const Tensor& seen() const { return seen_; }

 private:
  Function& text_;
  const AttentionOperands& of_;
  const QueryChunk chunk_;
  Shape shape_;
  Tensor seen_;

 public:
  const Tensor q, k, v;
};

Tensor EachDim(Function& text, const Tensor& rows, int64_t width) {
  Shape shape = rows.shape;
  shape.push_back(width);
  return text.Broadcast(rows, shape, {0, 1, 2, 3});
}

// A query that sees no key, here or before, does not exist.
AttentionResult ForwardOf(Function& text, const AttentionOperands& of, const QueryChunk& range,
                          const std::optional<AttentionResult>& before) {
  const Chunk chunk(text, of, range);
  const Tensor scores = chunk.Scores();
  Tensor max = text.Reduce("maximum", scores, {4});
  std::optional<Tensor> lse_before;
  if (before.has_value()) {
    lse_before = chunk.ByHead(chunk.Queries(before->lse));
    max = text.Binary("maximum", max, *lse_before);
  }
  const Tensor weights = text.Unary("exponential", text.Subtract(scores, chunk.EachKey(max)));
  Tensor total = text.Reduce("add", weights, {4});
  Tensor output = chunk.OverKeys(weights, chunk.v);
  if (before.has_value()) {
    const Tensor share = text.Unary("exponential", text.Subtract(*lse_before, max));
    total = text.Add(total, share);
    output = text.Add(output, text.Multiply(chunk.Queries(before->output),
                                            EachDim(text, chunk.ByHead(share), output.shape[4])));
  }
  // Transposing twice gives the rows' own order back.
  return {text.Divide(output, EachDim(text, chunk.ByHead(total), output.shape[4])),
          chunk.ByHead(text.Add(max, text.Unary("log", total)))};
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

AttentionResult AttentionForward(Function& text, const AttentionOperands& of,
                                 const std::optional<AttentionResult>& before) {
  std::vector<Tensor> outputs, lses;
  AttentionOperands next = of;
  for (const QueryChunk& range :
       QueryChunks(of.query_rows, of.key_rows, ChunkSize(of.attributes.tokens))) {
    AttentionResult result;
    if (range.keys > 0) {
      // One chunk after the other: a TPU's compiler would hold the scores of all at once.
      if (!outputs.empty()) {
        const Function::State state = text.Barrier({next.q, outputs.back(), lses.back()});
        next.q = state[0], outputs.back() = state[1], lses.back() = state[2];
      }
      result = ForwardOf(text, next, range, before);
    } else {
      result = {text.Slice(before->output, 1, range.begin, range.end),
                text.Slice(before->lse, 1, range.begin, range.end)};
    }
    outputs.push_back(result.output);
    lses.push_back(result.lse);
  }
  return {text.Concatenate(outputs, 1), text.Concatenate(lses, 1)};
}

AttentionGradient AttentionBackward(Function& text, const AttentionOperands& of,
                                    const Tensor& doutput, const Tensor& output,
                                    const Tensor& lse) {
  const Tensor delta = text.Reduce("add", text.Multiply(doutput, output), {4});  // [B,Tq,G,M]
  Tensor dk = text.Constant(Element::kF32, of.k.shape, 0), dv = dk;
  std::vector<Tensor> dqs;
  AttentionOperands next = of;
  for (const QueryChunk& range :
       QueryChunks(of.query_rows, of.key_rows, ChunkSize(of.attributes.tokens))) {
    if (range.keys == 0) {
      Shape shape = of.q.shape;
      shape[1] = range.end - range.begin;
      dqs.push_back(text.Constant(Element::kF32, shape, 0));
      continue;
    }
    if (!dqs.empty()) {
      const Function::State state = text.Barrier({next.q, dqs.back(), dk, dv});
      next.q = state[0], dqs.back() = state[1], dk = state[2], dv = state[3];
    }
    const Chunk chunk(text, next, range);
    const Tensor dout = chunk.Queries(doutput);
    const Tensor weights =
        text.Unary("exponential",
                   text.Subtract(chunk.Scores(), chunk.EachKey(chunk.ByHead(chunk.Queries(lse)))));
    const Tensor dweights = text.Subtract(chunk.WithKeys(dout, chunk.v),
                                          chunk.EachKey(chunk.ByHead(chunk.Queries(delta))));
    const Tensor dscores = text.Multiply(text.Multiply(weights, dweights), Scale(of));
    dqs.push_back(chunk.OverKeys(dscores, chunk.k));
    dk = text.Add(dk, chunk.OverQueries(dscores, chunk.q));
    dv = text.Add(dv, chunk.OverQueries(weights, dout));
  }
  return {text.Concatenate(dqs, 1), dk, dv};
}

}  // namespace troupe::kernels::xla
