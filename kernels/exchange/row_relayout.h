// The row moves of kRelayout: each rank holds two chunks of every sample and sends each chunk only
// to the rank that holds it in the new layout. Elements may have any one size. Immutable,
// thread-safe.
#ifndef TROUPE_KERNELS_EXCHANGE_ROW_RELAYOUT_H_
#define TROUPE_KERNELS_EXCHANGE_ROW_RELAYOUT_H_

#include <cstddef>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/exchange/row_moves.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels {

class RowRelayout {
 public:
  // Describes a kRelayout of `program`, with elements of `element_bytes`.
  RowRelayout(const model::Program& program, const model::Op& op, size_t element_bytes);

  // Bytes of the input, equal to those of the output.
  size_t bytes() const { return bytes_; }
  // The moves if the group has several ranks. This rank sends nothing to itself.
  const RowMoves& moves() const { return moves_; }

  // Moves `input` into `output`. Collective. `send` and `receive` are scratch of bytes() each. A
  // null communicator stands for a group of one.
  Status Run(const char* input, char* output, char* send, char* receive,
             Communicator* communicator) const;

 private:
  Purpose purpose_;
  size_t bytes_ = 0;
  RowMoves moves_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_EXCHANGE_ROW_RELAYOUT_H_
