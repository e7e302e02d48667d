#include "coordinator/access/access.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr unsigned Bit(Role role) { return 1U << static_cast<unsigned>(role); }

constexpr unsigned kOperators = Bit(Role::kOperator);
constexpr unsigned kSubmitters = kOperators | Bit(Role::kSubmitter);
constexpr unsigned kViewers = kSubmitters | Bit(Role::kViewer);
constexpr unsigned kWorkers = Bit(Role::kWorker);
constexpr unsigned kEverybody = kViewers | kWorkers | Bit(Role::kCoordinator);
constexpr unsigned kAnonymous = kEverybody | AccessRow::kNoIdentity;

using enum AccessEffect;

constexpr AccessRow kAccessTable[] = {
#define TROUPE_RPC(service, method, roles, effect) {"/" #service "/" #method, roles, effect},
#include "coordinator/access/access_table.def"
#undef TROUPE_RPC
};

// Returns "submitter or operator".
std::string NamesOf(const AccessRow& row) {
  std::string names;
  for (const RoleEntry& entry : kRoles) {
    if (row.Allows(entry.role))
      names += fmt::format("{}{}", names.empty() ? "" : " or ", entry.name);
  }
  return names;
}

Status NotAccepted(std::string_view reason) {
  return Unauthenticated("the certificate of this connection is not accepted: {}", reason);
}

}  // namespace

std::span<const AccessRow> AccessTable() { return kAccessTable; }

Status CheckAccess(std::string_view rpc, const Identity& caller) {
  const auto* const row = std::ranges::find(kAccessTable, rpc, &AccessRow::rpc);
  if (row == std::end(kAccessTable)) {
    return PermissionDenied("{} may be called by nobody; {} has the role {}", rpc, caller.name,
                            RoleName(caller.role));
  }
  if (row->Allows(caller.role)) return OkStatus();
  return PermissionDenied("{} requires the role {}; {} has the role {}", rpc, NamesOf(*row),
                          caller.name, RoleName(caller.role));
}

Status CheckAnonymousAccess(std::string_view rpc) {
  const auto* const row = std::ranges::find(kAccessTable, rpc, &AccessRow::rpc);
  if (row != std::end(kAccessTable) && row->AllowsAnonymous()) return OkStatus();
  return Unauthenticated("{} requires a certificate or a token, and this call has neither", rpc);
}

StatusOr<CertificateFacts> Authenticate(std::string_view certificate_pem, std::string_view cluster,
                                        int64_t now_seconds) {
  auto facts = ReadCertificate(certificate_pem);
  if (!facts.ok()) return NotAccepted(Message(facts.status()));
  TROUPE_RETURN_IF_ERROR(CheckStillValid(*facts, now_seconds));
  if (facts->identity.cluster != cluster) {
    return NotAccepted(fmt::format("{} is an identity of another cluster than {}",
                                   ToUri(facts->identity), cluster));
  }
  return facts;
}

Status CheckStillValid(const CertificateFacts& certificate, int64_t now_seconds) {
  const Status valid = CheckValidAt(certificate, now_seconds);
  return valid.ok() ? valid : NotAccepted(Message(valid));
}

Status CheckWorkerNamed(const Identity& caller, std::string_view name) {
  if (caller.role == Role::kWorker && caller.name == name) return OkStatus();
  return PermissionDenied("{} may not open a session as the worker \"{}\"", ToUri(caller), name);
}

}  // namespace troupe
