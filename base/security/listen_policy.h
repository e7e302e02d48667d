// Decides whether a server may listen on an address: without TLS only on the loopback, unless the
// user insists. Thread-safe.
#ifndef TROUPE_BASE_SECURITY_LISTEN_POLICY_H_
#define TROUPE_BASE_SECURITY_LISTEN_POLICY_H_

#include <string_view>

#include "base/status.h"

namespace troupe {

// Returns whether `host` is localhost or a loopback address: 127.0.0.0/8, ::1 or [::1]. An empty
// host, which listens on all addresses, and any other name are not.
bool IsLoopbackHost(std::string_view host);

// Returns whether a server on `host` listens on all addresses, so that `host` itself is none: it is
// empty, 0.0.0.0, :: or [::].
bool IsAnyHost(std::string_view host);

// INVALID_ARGUMENT names `flag` (such as --listen), its value, --tls-dir and --insecure unless the
// host of `host_port` is a loopback one, or TLS or --insecure is given.
// REQUIRES: CheckHostPort (base/flag_parser.h) accepts `host_port`.
Status CheckListen(std::string_view flag, std::string_view host_port, bool has_tls, bool insecure);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_LISTEN_POLICY_H_
