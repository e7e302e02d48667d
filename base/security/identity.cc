#include "base/security/identity.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace troupe {
namespace {

constexpr std::string_view kScheme = "spiffe://";
constexpr size_t kLongestName = 63;

bool MayBeInName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

std::string_view RoleName(Role role) {
  for (const RoleEntry& entry : kRoles) {
    if (entry.role == role) return entry.name;
  }
  TROUPE_CHECK(false, "no role has the number {}", static_cast<int>(role));
  return "";
}

StatusOr<Role> ParseRole(std::string_view text) {
  std::vector<std::string_view> names;
  for (const RoleEntry& entry : kRoles) {
    if (entry.name == text) return entry.role;
    names.push_back(entry.name);
  }
  return InvalidArgument("\"{}\" is not a role: the roles are {}", text, fmt::join(names, ", "));
}

Status CheckIdentityName(std::string_view what, std::string_view text) {
  if (text.empty() || text.size() > kLongestName || !std::ranges::all_of(text, MayBeInName)) {
    return InvalidArgument("{} is \"{}\": it needs 1 to {} of the characters A-Z a-z 0-9 . _ -",
                           what, text, kLongestName);
  }
  if (text == "." || text == "..")
    return InvalidArgument("{} is \"{}\", which is a path and no name", what, text);
  return OkStatus();
}

StatusOr<Identity> ParseIdentity(std::string_view uri) {
  const auto refuse = [uri](std::string_view reason) {
    return InvalidArgument("the identity \"{}\" is not spiffe://CLUSTER/ROLE/NAME: {}", uri,
                           reason);
  };
  if (!uri.starts_with(kScheme)) return refuse("it does not begin with spiffe://");
  const std::string_view path = uri.substr(kScheme.size());
  const size_t first = path.find('/');
  const size_t second = first == path.npos ? path.npos : path.find('/', first + 1);
  if (second == path.npos) return refuse("it does not have three parts");
  Identity identity{.cluster = std::string(path.substr(0, first)),
                    .name = std::string(path.substr(second + 1))};
  if (Status valid = CheckIdentityName("CLUSTER", identity.cluster); !valid.ok()) {
    return refuse(Message(valid));
  }
  if (Status valid = CheckIdentityName("NAME", identity.name); !valid.ok()) {
    return refuse(Message(valid));
  }
  const StatusOr<Role> role = ParseRole(path.substr(first + 1, second - first - 1));
  if (!role.ok()) return refuse(Message(role.status()));
  identity.role = *role;
  return identity;
}

StatusOr<Identity> ParseSoleIdentity(std::span<const std::string> uris) {
  if (uris.empty()) {
    return InvalidArgument(
        "the certificate has no identity: its alternative names have no URI "
        "spiffe://CLUSTER/ROLE/NAME");
  }
  if (uris.size() > 1) {
    return InvalidArgument("the certificate has {} identities and may have one: {}", uris.size(),
                           fmt::join(uris, ", "));
  }
  return ParseIdentity(uris[0]);
}

std::string ToUri(const Identity& identity) {
  return fmt::format("{}{}/{}/{}", kScheme, identity.cluster, RoleName(identity.role),
                     identity.name);
}

}  // namespace troupe
