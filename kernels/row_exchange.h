// The exchange of kExchangeHeads: what of a value goes to which rank, and where what comes from it lies.
//
// One side has some rows of all columns, the other all rows of some columns. Rows are those of
// samples of 2·ranks chunks of `chunk_rows` tokens, of which rank i has chunks i and 2·ranks - 1 - i;
// columns are segments, of each of which rank j has the j-th part. Elements are of any one size.
// Immutable, thread-safe.
#ifndef TROUPE_KERNELS_ROW_EXCHANGE_H_
#define TROUPE_KERNELS_ROW_EXCHANGE_H_

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels {

class RowExchange {
 public:
  // Of a kExchangeHeads of `program`, with elements of `element_bytes`.
  RowExchange(const model::Program& program, const model::Op& op, size_t element_bytes);

  // Bytes of the input, and of the output.
  size_t bytes() const { return static_cast<size_t>(ranks_) * block_bytes_; }

  // Moves `input` to `output` of all ranks; `send` and `receive`: working memory of bytes() each. A
  // null communicator is a group of one.
  Status Run(const char* input, char* output, char* send, char* receive,
             Communicator* communicator) const;

 private:
  enum class Direction { kPack, kUnpack };
  // Between `block` and the columns of `rank` of the side that has all columns.
  void CopyColumns(Direction direction, int rank, char* side, char* block) const;
  // Between `block` and the rows of `rank` of the side that has all rows.
  void CopyRows(Direction direction, int rank, char* side, char* block) const;

  bool to_rows_;
  Purpose purpose_;
  int ranks_;
  int64_t samples_;
  int64_t chunk_rows_;
  // Bytes of each segment of one row that one rank has.
  std::vector<size_t> segment_bytes_;
  size_t part_bytes_ = 0;   // their sum
  size_t block_bytes_ = 0;  // of what one rank sends to another
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_ROW_EXCHANGE_H_
