#include "coordinator/access/caller.h"

#include <fmt/format.h>

namespace troupe {

Caller CallerWith(const CertificateFacts& certificate) {
  // A certificate is valid up to the end of its last second.
  return {.identity = certificate.identity,
          .certificate = certificate,
          .expires = certificate.not_after + 1};
}

std::string AuditNameOf(const Caller& caller) {
  if (!caller.identity) return "anonymous";
  return caller.token_id.empty()
             ? ToUri(*caller.identity)
             : fmt::format("token:{} {}", caller.token_id, caller.identity->name);
}

}  // namespace troupe
