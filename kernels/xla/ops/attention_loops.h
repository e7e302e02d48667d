// Loops of attention: over blocks of keys, and over chunks of queries. To run one appends to the
// text and changes nothing else.
#ifndef TROUPE_KERNELS_XLA_OPS_ATTENTION_LOOPS_H_
#define TROUPE_KERNELS_XLA_OPS_ATTENTION_LOOPS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/xla/text/function.h"

namespace troupe::kernels::xla {

// Tensors of a chunk's queries. N rows: a row for each query and each of the M heads that read the
// same key head, so that every matmul is one of matrices for each sample and key head.
struct Queries {
  Tensor q;                     // [B,G,N,D]
  Tensor at;                    // i[N]: positions
  std::optional<Tensor> first;  // i[B,N]: the first position that is visible
};

struct Keys {
  Tensor k, v;  // [B,G,K,D]
  Tensor at;    // i[K]: positions
};

// Loops over the blocks of keys that some query of a chunk sees: from the first that documents do
// not hide from all of them to block `last`, a scalar.
class BlockLoop {
 public:
  using State = Function::State;
  using Body = std::function<State(const State& state, const State& constants,
                                   const Queries& queries, const Keys& keys, const Tensor& begin)>;

  // `size`: keys of a block. The references must outlive this object.
  BlockLoop(Function& text, int64_t size, const Queries& queries, const Keys& keys,
            const Tensor& last)
      : text_(text), size_(size), queries_(queries), keys_(keys), last_(last) {}

  // Replaces `state` by body(…) for each block; `constants` are tensors that the body reads, and
  // `begin` is the first key of the block. Returns the last state.
  State Run(const State& state, const State& constants, const Body& body) const;

 private:
  Tensor FirstBlock() const;

  Function& text_;
  const int64_t size_;
  const Queries& queries_;
  const Keys& keys_;
  const Tensor last_;
};

// Loops over the chunks of queries, which have equal sizes.
class ChunkLoop {
 public:
  using State = Function::State;
  struct Chunk {
    Tensor first_row;  // a scalar: where its rows begin among those of all queries
    Queries queries;
    Keys keys;    // all
    Tensor last;  // a scalar: the number of blocks of keys that it sees
    State rows;   // the chunk's of the tensors `by_rows`
  };
  using Body = std::function<State(const State& state, const Chunk& chunk)>;

  // `rows`: rows of a chunk. `lasts`: Chunk::last of each. `queries` and `keys`: all of them.
  ChunkLoop(Function& text, int64_t rows, std::vector<double> lasts, const Queries& queries,
            const Keys& keys)
      : text_(text), rows_(rows), lasts_(std::move(lasts)), queries_(queries), keys_(keys) {}

  // Replaces `state` by body(…) for each chunk. `by_rows`: tensors whose dim 2 has the rows of all
  // queries. Returns the last state.
  State Run(const State& state, const State& by_rows, const Body& body) const;

 private:
  Function& text_;
  const int64_t rows_;
  const std::vector<double> lasts_;
  const Queries queries_;
  const Keys keys_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_ATTENTION_LOOPS_H_
