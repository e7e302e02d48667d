// The token with which a new worker joins a cluster, once: a line of text that an operator brings
// to the worker's host. It has a secret, which the coordinator keeps only as a hash, and the hash
// of the authority's certificate, with which the host recognizes the coordinator. Pure, except for
// MakeJoinToken.
#ifndef TROUPE_BASE_SECURITY_JOIN_TOKEN_H_
#define TROUPE_BASE_SECURITY_JOIN_TOKEN_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Upper bound of the characters of a token's text.
inline constexpr size_t kMostJoinTokenBytes = 512;

struct JoinToken {
  std::string cluster;
  std::string id;              // 16 lower-case hexadecimal digits
  std::string secret;          // 64 lower-case hexadecimal digits, of 256 random bits
  std::string authority_hash;  // CertificateHash of the authority

  bool operator==(const JoinToken&) const = default;
};

// Makes a token with a random id and secret.
StatusOr<JoinToken> MakeJoinToken(std::string cluster, std::string authority_hash);

// Returns "troupe-join:1:CLUSTER:ID:SECRET:HASH".
std::string ToText(const JoinToken& token);

// Ignores white space around the token. INVALID_ARGUMENT, without any part of `text`, which may be
// a secret, unless it is the text of a token.
StatusOr<JoinToken> ParseJoinToken(std::string_view text);

// Returns the SHA-256 of the secret, in hexadecimal digits.
StatusOr<std::string> SecretHash(const JoinToken& token);

// Compares two hashes in a time that does not depend on where they differ.
bool SameHash(std::string_view a, std::string_view b);

// Returns the SHA-256 of the DER form of the first certificate in `pem`, in hexadecimal digits.
// INVALID_ARGUMENT unless every block of `pem` is a certificate.
StatusOr<std::string> CertificateHash(std::string_view pem);

// Returns the PEM of the certificate in `pem` with this hash. NOT_FOUND if none has it.
StatusOr<std::string> CertificateWithHash(std::string_view pem, std::string_view hash);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_JOIN_TOKEN_H_
