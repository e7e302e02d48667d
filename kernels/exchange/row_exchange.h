// The exchange of kExchangeHeads: which bytes of a value go to which rank, and where received bytes
// are placed.
//
// One side has some rows of all columns, the other all rows of some columns. A sample consists of
// 2·ranks chunks of `chunk_rows` tokens; rank i holds chunks i and 2·ranks - 1 - i. Columns are
// grouped in segments; rank j holds the j-th part of each. Elements may have any one size.
// Immutable, thread-safe.
#ifndef TROUPE_KERNELS_EXCHANGE_ROW_EXCHANGE_H_
#define TROUPE_KERNELS_EXCHANGE_ROW_EXCHANGE_H_

#include <cstddef>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/exchange/row_moves.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels {

class RowExchange {
 public:
  // Describes a kExchangeHeads of `program`, with elements of `element_bytes`.
  RowExchange(const model::Program& program, const model::Op& op, size_t element_bytes);

  // Bytes of the input, equal to those of the output.
  size_t bytes() const { return bytes_; }
  // The moves if the group has several ranks.
  const RowMoves& moves() const { return moves_; }

  // Exchanges `input` into `output`. Collective. `send` and `receive` are scratch of bytes() each.
  // A null communicator stands for a group of one.
  Status Run(const char* input, char* output, char* send, char* receive,
             Communicator* communicator) const;

 private:
  Purpose purpose_;
  size_t bytes_ = 0;
  RowMoves moves_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_EXCHANGE_ROW_EXCHANGE_H_
