// The flags --tls-dir and --insecure of the coordinator and the worker.
#ifndef TROUPE_BASE_SECURITY_SECURITY_FLAGS_H_
#define TROUPE_BASE_SECURITY_SECURITY_FLAGS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/flag_parser.h"
#include "base/security/identity.h"
#include "base/security/tls_files.h"
#include "base/status.h"

namespace troupe {

struct SecurityFlags {
  std::optional<std::string> tls_directory;  // not empty
  bool insecure = false;
};

// An address that another flag names.
struct FlagAddress {
  std::string_view flag;       // "--listen"
  std::string_view host_port;  // CheckHostPort accepts it; empty: the flag is not given
};

// Declares the flags of a process with this role. `flags` must outlive the parsing.
void AddSecurityFlags(FlagParser& parser, Role role, SecurityFlags* flags);

// Returns the files of --tls-dir; absent without that flag. INVALID_ARGUMENT if both flags are
// given, if one of `addresses` is off the loopback and neither is given, if the files are not
// usable (CheckTlsDirectory), or if they are not those of a process with this role.
StatusOr<std::optional<TlsFiles>> CheckSecurityFlags(const SecurityFlags& flags, Role role,
                                                     std::span<const FlagAddress> addresses,
                                                     int64_t now_seconds);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_SECURITY_FLAGS_H_
