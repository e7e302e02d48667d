// The identity of a process or user: the URI spiffe://CLUSTER/ROLE/NAME in its certificate's
// subject alternative names. Pure.
#ifndef TROUPE_BASE_SECURITY_IDENTITY_H_
#define TROUPE_BASE_SECURITY_IDENTITY_H_

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

enum class Role { kViewer, kSubmitter, kOperator, kWorker, kCoordinator };

struct RoleEntry {
  Role role;
  std::string_view name;
};

// The only list of roles, in the order of the enumerators.
inline constexpr std::array<RoleEntry, 5> kRoles = {{{Role::kViewer, "viewer"},
                                                     {Role::kSubmitter, "submitter"},
                                                     {Role::kOperator, "operator"},
                                                     {Role::kWorker, "worker"},
                                                     {Role::kCoordinator, "coordinator"}}};

// Returns "viewer" for Role::kViewer.
std::string_view RoleName(Role role);

// INVALID_ARGUMENT names `text` and lists the roles.
StatusOr<Role> ParseRole(std::string_view text);

struct Identity {
  std::string cluster;
  Role role = Role::kViewer;
  std::string name;

  bool operator==(const Identity&) const = default;
};

// INVALID_ARGUMENT, with `what` ("the cluster's name"), unless `text` can be the CLUSTER or NAME of
// an identity: 1 to 63 of the characters A-Z a-z 0-9 . _ - that are neither "." nor "..".
Status CheckIdentityName(std::string_view what, std::string_view text);

// INVALID_ARGUMENT names `uri` and what differs from spiffe://CLUSTER/ROLE/NAME.
StatusOr<Identity> ParseIdentity(std::string_view uri);

// Returns the identity of a certificate with these URIs. INVALID_ARGUMENT unless there is exactly
// one and it is an identity.
StatusOr<Identity> ParseSoleIdentity(std::span<const std::string> uris);

std::string ToUri(const Identity& identity);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_IDENTITY_H_
