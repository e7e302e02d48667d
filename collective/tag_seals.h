// Secret numbers by which a rank knows the sender of a message.
//
// A transport may deliver whatever reaches its port, and the tag that a message states is all that
// it shows of its sender. The tags of every pair of ranks are therefore combined with a number that
// only these two know: it follows from the epoch's key and from the nonces that they exchanged in
// their handshake. A message of anybody else has a tag that nobody awaits.
#ifndef TROUPE_COLLECTIVE_TAG_SEALS_H_
#define TROUPE_COLLECTIVE_TAG_SEALS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::collective_internal {

// By global rank; 0 for ranks without a connection.
struct TagSeals {
  explicit TagSeals(int ranks)
      : outgoing(static_cast<size_t>(ranks), 0), incoming(static_cast<size_t>(ranks), 0) {}

  std::vector<uint64_t> outgoing;
  std::vector<uint64_t> incoming;
};

}  // namespace troupe::collective_internal

#endif  // TROUPE_COLLECTIVE_TAG_SEALS_H_
