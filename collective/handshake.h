// How two ranks prove to each other, over a fresh channel, that they belong to the same group epoch
// and know its key.
//
// Each sends a hello with a nonce; each answers the other's nonce with a proof, an HMAC-SHA256
// under the key. A proof names both ranks, their roles and the epoch, so it is of no use in another
// direction, pair or epoch.
#ifndef TROUPE_COLLECTIVE_HANDSHAKE_H_
#define TROUPE_COLLECTIVE_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/network.h"
#include "collective/transport.h"

namespace troupe::collective_internal {

using Nonce = std::array<uint8_t, 32>;
using Proof = std::array<uint8_t, 32>;

// Fixed layout, little-endian, on the wire as it is.
struct Hello {
  std::array<char, 8> magic{};
  uint64_t group_epoch = 0;
  uint32_t rank = 0;
  uint32_t ranks = 0;
  Nonce nonce{};
};
static_assert(sizeof(Hello) == 56);

// That `prover` knows the key, for the one who sent `challenge`.
Proof MakeProof(const std::array<uint8_t, 32>& key, const Hello& prover, const Hello& challenge);

// OK if `peer`'s hello fits ours. FAILED_PRECONDITION for another group epoch or number of ranks,
// INVALID_ARGUMENT for what is no hello of `expected_rank`.
Status CheckHello(const Hello& own, const Hello& peer, int expected_rank);

// The handshake with a set of peers at once. Lives until the transport is closed, for its messages
// may be under way.
class Handshake {
 public:
  Handshake(const NetworkOptions& options, std::vector<int> peers);

  // Sends and takes what it can. True once all peers have proved themselves. PERMISSION_DENIED for
  // a wrong proof, else the status of CheckHello or of the transport, naming the rank.
  StatusOr<bool> Advance(Transport& transport);

  // Peers that have not proved themselves yet.
  std::vector<int> Unproved() const;

 private:
  struct Peer {
    int rank = 0;
    bool started = false;
    bool answered = false;
    bool proved = false;
    Hello own;
    Hello hello;
    Proof sent_proof{};
    Proof proof{};
    Transfer hello_out;
    Transfer hello_in;
    Transfer proof_out;
    Transfer proof_in;
  };

  Status AdvancePeer(Transport& transport, Peer* peer);

  const NetworkOptions options_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace troupe::collective_internal

#endif  // TROUPE_COLLECTIVE_HANDSHAKE_H_
