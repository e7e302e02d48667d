// The handshake by which two ranks prove to each other, over a new channel, that they belong to the
// same group epoch and know its key.
//
// Each rank sends a hello with a nonce and answers the other's nonce with a proof, an HMAC-SHA256
// under the key. A proof names both ranks, their roles and the epoch, so it cannot be replayed in
// another direction, pair or epoch. The transport does not show who sent a message, so afterwards
// the tags of each pair are sealed (collective/tag_seals.h).
#ifndef TROUPE_COLLECTIVE_HANDSHAKE_H_
#define TROUPE_COLLECTIVE_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/network_options.h"
#include "collective/tag_seals.h"
#include "collective/transport.h"

namespace troupe::collective_internal {

using Nonce = std::array<uint8_t, 32>;
using Proof = std::array<uint8_t, 32>;

// Sent on the wire as stored: fixed layout, little-endian.
struct Hello {
  std::array<char, 8> magic{};
  uint64_t group_epoch = 0;
  uint32_t rank = 0;
  uint32_t ranks = 0;
  Nonce nonce{};
};
static_assert(sizeof(Hello) == 56);

// The proof that `prover` knows the key, in answer to `challenge`.
Proof MakeProof(const std::array<uint8_t, 32>& key, const Hello& prover, const Hello& challenge);

// OK if the hello of `peer` matches `own`. FAILED_PRECONDITION for another group epoch or number of
// ranks, INVALID_ARGUMENT if it is not a hello of `expected_rank`.
Status CheckHello(const Hello& own, const Hello& peer, int expected_rank);

// The handshake with a set of peers at once. Must live until the transport is closed, since its
// messages may be in flight.
class Handshake {
 public:
  Handshake(const NetworkOptions& options, std::vector<int> peers);

  // Sends and receives what is possible now. True once all peers have proved themselves.
  // PERMISSION_DENIED for a wrong proof, else the status of CheckHello or of the transport; the
  // status names the rank.
  StatusOr<bool> Advance(Transport& transport);

  // The seals of the tags of all later messages. REQUIRES: all peers have proved themselves.
  TagSeals Seals() const;

  // Peers that have not proved themselves yet.
  std::vector<int> Unproved() const;

  // Peers to or from which the transport failed to transfer a message (UNAVAILABLE).
  std::vector<int> Unreached() const;

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
