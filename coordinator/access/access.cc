#include "coordinator/access/access.h"

#include <algorithm>

#include "base/security/certificate.h"

namespace troupe {
namespace {

constexpr unsigned Bit(Role role) { return 1U << static_cast<unsigned>(role); }

constexpr unsigned kOperators = Bit(Role::kOperator);
constexpr unsigned kSubmitters = kOperators | Bit(Role::kSubmitter);
constexpr unsigned kViewers = kSubmitters | Bit(Role::kViewer);
constexpr unsigned kWorkers = Bit(Role::kWorker);
constexpr unsigned kEverybody = kViewers | kWorkers | Bit(Role::kCoordinator);

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

Status Unauthenticated(std::string_view reason) {
  return MakeStatus(StatusCode::kUnauthenticated,
                    fmt::format("the certificate of this connection is not accepted: {}", reason));
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

StatusOr<Identity> Authenticate(std::string_view certificate_pem, std::string_view cluster,
                                int64_t now_seconds) {
  const auto facts = ReadCertificate(certificate_pem);
  if (!facts.ok()) return Unauthenticated(Message(facts.status()));
  if (const Status valid = CheckValidAt(*facts, now_seconds); !valid.ok())
    return Unauthenticated(Message(valid));
  if (facts->identity.cluster != cluster) {
    return Unauthenticated(fmt::format("{} belongs to the cluster {}, not to {}",
                                       ToUri(facts->identity), facts->identity.cluster, cluster));
  }
  return facts->identity;
}

Status CheckWorkerNamed(const Identity& caller, std::string_view name) {
  if (caller.role == Role::kWorker && caller.name == name) return OkStatus();
  return PermissionDenied("{} may not open a session as the worker \"{}\"", ToUri(caller), name);
}

}  // namespace troupe
