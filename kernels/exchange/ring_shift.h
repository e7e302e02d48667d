// kShift as an exchange in which each rank sends to one rank and receives from one.
#ifndef TROUPE_KERNELS_EXCHANGE_RING_SHIFT_H_
#define TROUPE_KERNELS_EXCHANGE_RING_SHIFT_H_

#include <cstddef>
#include <vector>

namespace troupe::kernels {

struct RingShift {
  std::vector<size_t> send_bytes, receive_bytes;  // indexed by rank in the group

  // A shift of `bytes` by `shift` places, which may be negative, as seen from rank `rank` of
  // `ranks`.
  RingShift(int ranks, int rank, int shift, size_t bytes)
      : send_bytes(static_cast<size_t>(ranks)), receive_bytes(send_bytes) {
    send_bytes[Wrap(rank + shift, ranks)] = bytes;
    receive_bytes[Wrap(rank - shift, ranks)] = bytes;
  }

 private:
  static size_t Wrap(int rank, int ranks) {
    return static_cast<size_t>((rank % ranks + ranks) % ranks);
  }
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_EXCHANGE_RING_SHIFT_H_
