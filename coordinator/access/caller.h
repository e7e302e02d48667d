// The caller of an RPC on a connection with TLS: as its certificate or its token proves it, or
// anonymous. Pure.
#ifndef TROUPE_COORDINATOR_ACCESS_CALLER_H_
#define TROUPE_COORDINATOR_ACCESS_CALLER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/security/certificate.h"
#include "base/security/identity.h"

namespace troupe {

struct Caller {
  std::optional<Identity> identity;             // absent: it has neither certificate nor token
  std::optional<CertificateFacts> certificate;  // absent: it has the token `token_id`, if any
  std::string token_id;
  int64_t expires = 0;  // Unix time in seconds from which certificate or token is not valid
};

Caller CallerWith(const CertificateFacts& certificate);

// Returns the caller as audit records name it: the URI of the certificate, "token:ID NAME", or
// "anonymous".
std::string AuditNameOf(const Caller& caller);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_CALLER_H_
