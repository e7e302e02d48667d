#include "kernels/xla/ops/attention_loops.h"

#include <algorithm>
#include <cstddef>

namespace troupe::kernels::xla {
namespace {

using State = Function::State;

// Tensors of a loop's state in the order in which they are added.
class StateList {
 public:
  void Add(const Tensor& tensor) { tensors_.push_back(tensor); }
  void Add(const State& tensors) {
    tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
  }
  size_t size() const { return tensors_.size(); }
  const State& tensors() const { return tensors_; }

 private:
  State tensors_;
};

State Flat(const Queries& queries) {
  State state = {queries.q, queries.at};
  if (queries.first.has_value()) state.push_back(*queries.first);
  return state;
}
State Flat(const Keys& keys) { return {keys.k, keys.v, keys.at}; }

// Reads tensors of a state one after the other.
class StateReader {
 public:
  explicit StateReader(const State& state) : state_(state) {}
  const Tensor& Next() { return state_[next_++]; }
  State Next(size_t count) {
    next_ += count;
    return {state_.begin() + (next_ - count), state_.begin() + next_};
  }
  Queries NextQueries(bool with_documents) {
    Queries queries;
    queries.q = Next();
    queries.at = Next();
    if (with_documents) queries.first = Next();
    return queries;
  }
  Keys NextKeys() {
    Keys keys;
    keys.k = Next();
    keys.v = Next();
    keys.at = Next();
    return keys;
  }

 private:
  const State& state_;
  size_t next_ = 0;
};

}  // namespace

State BlockLoop::Run(const State& state, const State& constants, const Body& body) const {
  StateList all;
  all.Add(FirstBlock());
  all.Add(last_);
  all.Add(Flat(queries_));
  all.Add(Flat(keys_));
  all.Add(constants);
  const size_t first_state = all.size();
  all.Add(state);
  const State end = text_.While(
      all.tensors(), [&](const State& now) { return text_.Compare("LT", now[0], now[1]); },
      [&](const State& now) {
        StateReader reader(now);
        const Tensor block = reader.Next();
        reader.Next();
        const Queries queries = reader.NextQueries(queries_.first.has_value());
        const Keys keys = reader.NextKeys();
        const Tensor begin = text_.Binary(
            "multiply", block, text_.Constant(Element::kI32, {}, static_cast<double>(size_)));
        const auto part = [&](const Tensor& x, int dim) {
          return text_.SliceAt(x, begin, size_, dim);
        };
        const State fixed = reader.Next(constants.size());
        const State made = body(reader.Next(state.size()), fixed, queries,
                                {part(keys.k, 2), part(keys.v, 2), part(keys.at, 0)}, begin);
        State next = now;
        next[0] = text_.Add(block, 1);
        std::ranges::copy(made, next.begin() + first_state);
        return next;
      });
  return {end.begin() + first_state, end.end()};
}

// The block of the first key that a query of the chunk sees: keys are in order of positions.
Tensor BlockLoop::FirstBlock() const {
  if (!queries_.first.has_value()) return text_.Constant(Element::kI32, {}, 0);
  const Tensor least = text_.Reduce("minimum", *queries_.first, {0, 1});
  const Tensor hidden = text_.Convert(text_.Compare("LT", keys_.at, least), Element::kI32);
  return text_.Binary("divide", text_.Reduce("add", hidden, {0}),
                      text_.Constant(Element::kI32, {}, static_cast<double>(size_)));
}

State ChunkLoop::Run(const State& state, const State& by_rows, const Body& body) const {
  const bool with_documents = queries_.first.has_value();
  StateList all;
  all.Add(text_.Constant(Element::kI32, {}, 0));
  all.Add(text_.Vector(Element::kI32, lasts_));
  all.Add(Flat(queries_));
  all.Add(Flat(keys_));
  all.Add(by_rows);
  const size_t first_state = all.size();
  all.Add(state);
  const auto chunks = static_cast<double>(lasts_.size());
  const State end = text_.While(
      all.tensors(), [&](const State& now) { return text_.Compare("LT", now[0], chunks); },
      [&](const State& now) {
        StateReader reader(now);
        const Tensor index = reader.Next(), last_of = reader.Next();
        Chunk chunk;
        chunk.first_row = text_.Binary(
            "multiply", index, text_.Constant(Element::kI32, {}, static_cast<double>(rows_)));
        chunk.last = text_.Reshape(text_.SliceAt(last_of, index, 1), {});
        const auto part = [&](const Tensor& x, int dim) {
          return text_.SliceAt(x, chunk.first_row, rows_, dim);
        };
        chunk.queries = reader.NextQueries(with_documents);
        chunk.queries.q = part(chunk.queries.q, 2);
        chunk.queries.at = part(chunk.queries.at, 0);
        if (with_documents) chunk.queries.first = part(*chunk.queries.first, 1);
        chunk.keys = reader.NextKeys();
        for (size_t i = 0; i < by_rows.size(); ++i) chunk.rows.push_back(part(reader.Next(), 2));
        const State made = body(reader.Next(state.size()), chunk);
        State next = now;
        next[0] = text_.Add(index, 1);
        std::ranges::copy(made, next.begin() + first_state);
        return next;
      });
  return {end.begin() + first_state, end.end()};
}

}  // namespace troupe::kernels::xla
