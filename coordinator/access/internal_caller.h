// A part of the coordinator that calls its services as a user does, without a connection: its
// identity, and the secret by which its calls are recognised. Pure.
#ifndef TROUPE_COORDINATOR_ACCESS_INTERNAL_CALLER_H_
#define TROUPE_COORDINATOR_ACCESS_INTERNAL_CALLER_H_

#include <string>

#include "base/security/identity.h"

namespace troupe {

// The key of a call's metadata that has the secret.
inline constexpr char kInternalCallerKey[] = "troupe-internal-caller";

struct InternalCaller {
  std::string secret;  // random, known to this process alone; in the characters of metadata
  Identity identity;   // without TLS its cluster is empty, and its calls have no identity
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_INTERNAL_CALLER_H_
