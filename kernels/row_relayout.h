// What kRelayout moves: each rank has two chunks of every sample, and sends those that another rank is
// to have, to that rank alone. Elements are of any one size. Immutable, thread-safe.
#ifndef TROUPE_KERNELS_ROW_RELAYOUT_H_
#define TROUPE_KERNELS_ROW_RELAYOUT_H_

#include <cstddef>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/row_moves.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels {

class RowRelayout {
 public:
  // Of a kRelayout of `program`, with elements of `element_bytes`.
  RowRelayout(const model::Program& program, const model::Op& op, size_t element_bytes);

  // Bytes of the input, and of the output.
  size_t bytes() const { return bytes_; }
  // Among several ranks. Nothing is sent to and comes from this rank itself.
  const RowMoves& moves() const { return moves_; }

  // Moves `input` to `output` of all ranks; `send` and `receive`: working memory of bytes() each. A
  // null communicator is a group of one.
  Status Run(const char* input, char* output, char* send, char* receive,
             Communicator* communicator) const;

 private:
  Purpose purpose_;
  size_t bytes_ = 0;
  RowMoves moves_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_ROW_RELAYOUT_H_
