// The caller of an RPC on a connection with TLS, as its certificate or its token proves it. Pure.
#ifndef TROUPE_COORDINATOR_ACCESS_CALLER_H_
#define TROUPE_COORDINATOR_ACCESS_CALLER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/security/certificate.h"
#include "base/security/identity.h"

namespace troupe {

struct Caller {
  Identity identity;
  std::optional<CertificateFacts> certificate;  // absent: the caller has the token `token_id`
  std::string token_id;
  int64_t expires = 0;  // Unix time in seconds from which certificate or token is not valid
};

Caller CallerWith(const CertificateFacts& certificate);

// Returns the caller as audit records name it: the URI of the certificate, or "token:ID NAME".
std::string AuditNameOf(const Caller& caller);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_CALLER_H_
