// An exchange of rows among the ranks of a group as data: which bytes are packed for whom, and where what comes is put.
// Immutable, thread-safe.
#ifndef TROUPE_KERNELS_ROW_MOVES_H_
#define TROUPE_KERNELS_ROW_MOVES_H_

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/row_move.h"

namespace troupe::kernels {

struct RowMoves {
  std::vector<RowMove> pack;    // from the input to what is sent
  std::vector<RowMove> stay;    // from the input to the output
  std::vector<RowMove> unpack;  // from what was received to the output
  std::vector<size_t> send_bytes, receive_bytes;  // by rank of the group, blocks one after the other

  // Moves `input` to `output` of all ranks. `send` and `receive`: working memory of as many bytes as go out and come in.
  Status Run(const char* input, char* output, char* send, char* receive, Communicator& communicator,
             Purpose purpose) const;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_ROW_MOVES_H_
