// Reads certificates and checks how they relate to keys and authorities, in PEM. Thread-safe; the
// time is an argument.
#ifndef TROUPE_BASE_SECURITY_CERTIFICATE_H_
#define TROUPE_BASE_SECURITY_CERTIFICATE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/security/identity.h"
#include "base/status.h"

namespace troupe {

struct CertificateFacts {
  Identity identity;
  int64_t not_before = 0;  // Unix time in seconds
  int64_t not_after = 0;   // Unix time in seconds
  std::string serial;      // lower-case hexadecimal
  std::string issuer;      // "CN=troupe lab"
};

// Returns the facts of the first certificate in `pem`. INVALID_ARGUMENT if there is none, or if it
// does not have exactly one identity.
StatusOr<CertificateFacts> ReadCertificate(std::string_view pem);

// Returns "valid from BEGIN to END, and it is NOW here", for readers who compare clocks.
std::string ValidityText(int64_t not_before, int64_t not_after, int64_t now_seconds);

// INVALID_ARGUMENT, with the relation that fails, unless now is in [not_before, not_after].
Status CheckValidAt(const CertificateFacts& facts, int64_t now_seconds);

// INVALID_ARGUMENT unless every block of `pem` is a certificate and there is at least one.
Status CheckCertificates(std::string_view pem);

// INVALID_ARGUMENT unless `key_pem` is an unencrypted private key.
Status CheckKey(std::string_view key_pem);

// INVALID_ARGUMENT unless the key is the one of the first certificate in `certificate_pem`.
// REQUIRES: CheckCertificates and CheckKey accept the two.
Status CheckKeyBelongs(std::string_view key_pem, std::string_view certificate_pem);

// INVALID_ARGUMENT unless the first certificate in `certificate_pem` is signed, through the others
// in it, by an authority of `authority_pem`, this chain is valid at `now_seconds`, and it may be
// used by a server (the role coordinator) or a client (the other roles).
// REQUIRES: CheckCertificates accepts the two.
Status CheckSigned(std::string_view certificate_pem, std::string_view authority_pem, Role role,
                   int64_t now_seconds);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_CERTIFICATE_H_
