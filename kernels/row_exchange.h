// The exchange of kExchangeHeads: what of a value goes to which rank, and where what comes from it lies.
//
// One side has some rows of all columns, the other all rows of some columns. Rows are those of
// samples of 2·ranks chunks of `chunk_rows` tokens, of which rank i has chunks i and 2·ranks - 1 - i;
// columns are segments, of each of which rank j has the j-th part. Elements are of any one size.
// Immutable, thread-safe.
#ifndef TROUPE_KERNELS_ROW_EXCHANGE_H_
#define TROUPE_KERNELS_ROW_EXCHANGE_H_

#include <cstddef>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/row_moves.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels {

class RowExchange {
 public:
  // Of a kExchangeHeads of `program`, with elements of `element_bytes`.
  RowExchange(const model::Program& program, const model::Op& op, size_t element_bytes);

  // Bytes of the input, and of the output.
  size_t bytes() const { return bytes_; }
  // Among several ranks.
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

#endif  // TROUPE_KERNELS_ROW_EXCHANGE_H_
