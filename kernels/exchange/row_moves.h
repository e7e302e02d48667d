// An exchange of rows among the ranks of a group, as data: which bytes are packed for which rank,
// and where received bytes are placed. Immutable, thread-safe.
#ifndef TROUPE_KERNELS_EXCHANGE_ROW_MOVES_H_
#define TROUPE_KERNELS_EXCHANGE_ROW_MOVES_H_

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/exchange/row_move.h"

namespace troupe::kernels {

struct RowMoves {
  std::vector<RowMove> pack;                      // from the input to the send buffer
  std::vector<RowMove> stay;                      // from the input to the output
  std::vector<RowMove> unpack;                    // from the receive buffer to the output
  std::vector<size_t> send_bytes, receive_bytes;  // indexed by rank in the group; contiguous blocks

  // Exchanges `input` into `output`. Collective. `send` and `receive` are scratch of the sums of
  // send_bytes and receive_bytes.
  Status Run(const char* input, char* output, char* send, char* receive, Communicator& communicator,
             Purpose purpose) const;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_EXCHANGE_ROW_MOVES_H_
