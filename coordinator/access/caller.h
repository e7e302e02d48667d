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
  std::optional<Identity> identity;  // absent: it has neither certificate nor token
  // Absent: it has the token `token_id`, if any, or is this process itself.
  std::optional<CertificateFacts> certificate;
  std::string token_id;
  int64_t expires = 0;  // Unix time in seconds from which certificate or token is not valid
};

Caller CallerWith(const CertificateFacts& certificate);

// Returns the caller as audit records name it: the URI of its identity, "token:ID NAME" with a
// token, or "anonymous".
std::string AuditNameOf(const Caller& caller);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_CALLER_H_
