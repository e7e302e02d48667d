#include "collective/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/check.h"

namespace troupe::collective_internal {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'R', 'P', 'H', 'E', 'L', 'O', '1'};
constexpr std::string_view kProofContext = "troupe group epoch proof 1";
constexpr std::string_view kSealContext = "troupe message tag seal 1";

// Tags with group prefix 0, which no group uses.
uint64_t HelloTag(int sender) { return (static_cast<uint64_t>(sender) << 16) | 1; }
uint64_t ProofTag(int sender) { return (static_cast<uint64_t>(sender) << 16) | 2; }

// HMAC-SHA256 of the two hellos in this order, for the purpose that `context` names.
Proof Authenticate(const std::array<uint8_t, 32>& key, std::string_view context, const Hello& first,
                   const Hello& second) {
  std::vector<uint8_t> text(context.begin(), context.end());
  for (const Hello* hello : {&first, &second}) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(hello);
    text.insert(text.end(), bytes, bytes + sizeof(Hello));
  }
  Proof proof{};
  unsigned length = 0;
  const unsigned char* made = ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                     text.data(), text.size(), proof.data(), &length);
  TROUPE_CHECK(made != nullptr && length == proof.size(), "HMAC-SHA256 gave {} bytes", length);
  return proof;
}

// The seal of the tags of messages from one rank to another.
uint64_t MakeSeal(const std::array<uint8_t, 32>& key, const Hello& sender, const Hello& receiver) {
  const Proof code = Authenticate(key, kSealContext, sender, receiver);
  uint64_t seal = 0;
  std::memcpy(&seal, code.data(), sizeof seal);
  return seal;
}

}  // namespace

Proof MakeProof(const std::array<uint8_t, 32>& key, const Hello& prover, const Hello& challenge) {
  return Authenticate(key, kProofContext, prover, challenge);
}

Status CheckHello(const Hello& own, const Hello& peer, int expected_rank) {
  if (peer.magic != own.magic)
    return InvalidArgument("rank {} sent no hello of this protocol", expected_rank);
  if (peer.group_epoch != own.group_epoch) {
    return FailedPrecondition("rank {} belongs to group epoch {}, not to {}", expected_rank,
                              peer.group_epoch, own.group_epoch);
  }
  if (peer.rank != static_cast<uint32_t>(expected_rank)) {
    return InvalidArgument("the process at the address of rank {} states that it is rank {}",
                           expected_rank, peer.rank);
  }
  if (peer.ranks != own.ranks) {
    return FailedPrecondition("rank {} belongs to a job of {} ranks, not of {}", expected_rank,
                              peer.ranks, own.ranks);
  }
  return OkStatus();
}

Handshake::Handshake(const NetworkOptions& options, std::vector<int> peers) : options_(options) {
  for (const int rank : peers) {
    auto peer = std::make_unique<Peer>();
    peer->rank = rank;
    peer->own.magic = kMagic;
    peer->own.group_epoch = options.group_epoch;
    peer->own.rank = static_cast<uint32_t>(options.rank);
    peer->own.ranks = static_cast<uint32_t>(options.ranks);
    peers_.push_back(std::move(peer));
  }
}

StatusOr<bool> Handshake::Advance(Transport& transport) {
  bool all = true;
  for (const auto& peer : peers_) {
    if (!peer->proved) TROUPE_RETURN_IF_ERROR(AdvancePeer(transport, peer.get()));
    all = all && peer->proved;
  }
  return all;
}

Status Handshake::AdvancePeer(Transport& transport, Peer* peer) {
  const auto annotate = [&](const Status& status) {
    return Annotate(status, fmt::format("handshake with rank {}", peer->rank));
  };
  if (!peer->started) {
    if (::RAND_bytes(peer->own.nonce.data(), static_cast<int>(peer->own.nonce.size())) != 1) {
      return Unavailable("no random bytes are available for the handshake with rank {}",
                         peer->rank);
    }
    peer->started = true;
    transport.Send(peer->rank, HelloTag(options_.rank), &peer->own, sizeof(Hello),
                   &peer->hello_out);
    transport.Receive(peer->rank, HelloTag(peer->rank), &peer->hello, sizeof(Hello),
                      &peer->hello_in);
  }
  if (peer->hello_out.done) TROUPE_RETURN_IF_ERROR(annotate(peer->hello_out.status));
  if (!peer->hello_in.done) return OkStatus();
  TROUPE_RETURN_IF_ERROR(annotate(peer->hello_in.status));
  if (!peer->answered) {
    TROUPE_RETURN_IF_ERROR(CheckHello(peer->own, peer->hello, peer->rank));
    peer->answered = true;
    peer->sent_proof = MakeProof(options_.group_key, peer->own, peer->hello);
    transport.Send(peer->rank, ProofTag(options_.rank), peer->sent_proof.data(),
                   peer->sent_proof.size(), &peer->proof_out);
    transport.Receive(peer->rank, ProofTag(peer->rank), peer->proof.data(), peer->proof.size(),
                      &peer->proof_in);
  }
  if (!peer->proof_in.done || !peer->proof_out.done || !peer->hello_out.done) return OkStatus();
  TROUPE_RETURN_IF_ERROR(annotate(peer->proof_out.status));
  TROUPE_RETURN_IF_ERROR(annotate(peer->proof_in.status));
  const Proof expected = MakeProof(options_.group_key, peer->hello, peer->own);
  if (::CRYPTO_memcmp(expected.data(), peer->proof.data(), expected.size()) != 0) {
    return PermissionDenied("rank {} does not know the key of group epoch {}", peer->rank,
                            options_.group_epoch);
  }
  peer->proved = true;
  return OkStatus();
}

TagSeals Handshake::Seals() const {
  TagSeals seals(options_.ranks);
  for (const auto& peer : peers_) {
    const auto rank = static_cast<size_t>(peer->rank);
    seals.outgoing[rank] = MakeSeal(options_.group_key, peer->own, peer->hello);
    seals.incoming[rank] = MakeSeal(options_.group_key, peer->hello, peer->own);
  }
  return seals;
}

std::vector<int> Handshake::Unproved() const {
  std::vector<int> ranks;
  for (const auto& peer : peers_) {
    if (!peer->proved) ranks.push_back(peer->rank);
  }
  return ranks;
}

std::vector<int> Handshake::Unreached() const {
  std::vector<int> ranks;
  for (const auto& peer : peers_) {
    const auto transfers = {&peer->hello_out, &peer->hello_in, &peer->proof_out, &peer->proof_in};
    const bool failed = std::any_of(transfers.begin(), transfers.end(), [](const Transfer* one) {
      return one->done && one->status.code() == StatusCode::kUnavailable;
    });
    if (failed) ranks.push_back(peer->rank);
  }
  return ranks;
}

}  // namespace troupe::collective_internal
