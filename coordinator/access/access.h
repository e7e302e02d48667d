// Decides who may call which RPC: a role for each identity, and a table of RPC × role
// (access_table.def). Pure.
#ifndef TROUPE_COORDINATOR_ACCESS_ACCESS_H_
#define TROUPE_COORDINATOR_ACCESS_ACCESS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/security/certificate.h"
#include "base/security/identity.h"
#include "base/status.h"

namespace troupe {

enum class AccessEffect {
  kReads,
  kChanges,  // every allowed call is recorded in the audit log
};

struct AccessRow {
  std::string_view rpc;  // the path of the method, "/troupe.v1.JobService/CancelJob"
  unsigned roles = 0;    // bit i: the role of number i
  AccessEffect effect = AccessEffect::kReads;

  // Marks a row that also allows callers with neither certificate nor token.
  static constexpr unsigned kNoIdentity = 1U << 31;

  bool Allows(Role role) const { return (roles >> static_cast<unsigned>(role) & 1) != 0; }
  bool AllowsAnonymous() const { return (roles & kNoIdentity) != 0; }
};

std::span<const AccessRow> AccessTable();

// PERMISSION_DENIED names the RPC, the roles that may call it, and the caller.
Status CheckAccess(std::string_view rpc, const Identity& caller);

// UNAUTHENTICATED, with the RPC, unless callers with neither certificate nor token may call it.
Status CheckAnonymousAccess(std::string_view rpc);

// Returns the facts of the certificate with which a connection was made. UNAUTHENTICATED, with the
// relation that fails, if it has no identity, one of another cluster, or has expired since.
StatusOr<CertificateFacts> Authenticate(std::string_view certificate_pem, std::string_view cluster,
                                        int64_t now_seconds);

// UNAUTHENTICATED unless `certificate`, with which a connection was made, is valid now.
Status CheckStillValid(const CertificateFacts& certificate, int64_t now_seconds);

// PERMISSION_DENIED unless `caller` is the worker `name`.
Status CheckWorkerNamed(const Identity& caller, std::string_view name);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_ACCESS_H_
