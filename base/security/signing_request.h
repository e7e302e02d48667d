// A request for a certificate (PKCS #10, in PEM): the public key of its sender, signed with the
// private key. Only the key is taken from a request: names, extensions and times of the certificate
// are the signer's. Thread-safe.
#ifndef TROUPE_BASE_SECURITY_SIGNING_REQUEST_H_
#define TROUPE_BASE_SECURITY_SIGNING_REQUEST_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/security/openssl.h"
#include "base/status.h"

namespace troupe {

// Upper bound of the bytes of a request.
inline constexpr size_t kMostSigningRequestBytes = 16384;

// A request and the private key of its sender, in PEM.
struct SigningRequest {
  std::string request;
  std::string key;
};

// Makes a key on the curve P-256 and a request for it.
StatusOr<SigningRequest> MakeSigningRequest();

// Returns the public key of the request. INVALID_ARGUMENT, with the relation that fails, if the
// request is too long, is not PEM, or is not signed with the key, or if the key is none of P-256,
// P-384, and RSA with 2048 to 8192 bits.
StatusOr<openssl::Key> RequestedKey(std::string_view request);

// INVALID_ARGUMENT if the request is for the key of the first certificate in `certificate`, both in
// PEM, or if one of the two cannot be read.
Status CheckKeyIsNew(std::string_view request, std::string_view certificate);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_SIGNING_REQUEST_H_
