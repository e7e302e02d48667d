#include "kernels/exchange/row_moves.h"

#include <cstring>

namespace troupe::kernels {
namespace {

void Move(const std::vector<RowMove>& moves, const char* from, char* to) {
  for (const RowMove& move : moves) {
    for (int64_t row = 0; row < move.rows; ++row) {
      std::memcpy(to + move.to + row * move.to_stride, from + move.from + row * move.from_stride,
                  static_cast<size_t>(move.row_bytes));
    }
  }
}

}  // namespace

Status RowMoves::Run(const char* input, char* output, char* send, char* receive,
                     Communicator& communicator, Purpose purpose) const {
  Move(pack, input, send);
  Move(stay, input, output);
  TROUPE_RETURN_IF_ERROR(communicator.AllToAll(send, receive, send_bytes, receive_bytes, purpose));
  Move(unpack, receive, output);
  return OkStatus();
}

}  // namespace troupe::kernels
