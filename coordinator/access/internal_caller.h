// The parts of the coordinator that call its services as users do, without a connection, and how
// their calls are recognised. Pure.
#ifndef TROUPE_COORDINATOR_ACCESS_INTERNAL_CALLER_H_
#define TROUPE_COORDINATOR_ACCESS_INTERNAL_CALLER_H_

#include <string>

#include "base/security/identity.h"

namespace troupe {

// The key of a call's metadata that has the secret.
inline constexpr char kInternalCallerKey[] = "troupe-internal-caller";

// A call with the secret that also has this key, with any value, is made for somebody who looks at
// the page. The viewer is the caller: its certificate (PEM) is under the second key, or its token
// under "authorization", as in a call of its own. They are checked again in each call.
inline constexpr char kViewerKey[] = "troupe-page-viewer";
inline constexpr char kViewerCertificateKey[] = "troupe-page-viewer-certificate-bin";

struct InternalCaller {
  std::string secret;  // random, known to this process alone; in the characters of metadata
  // The caller of a call without kViewerKey. Without TLS its cluster is empty, and its calls have
  // no identity.
  Identity identity;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_INTERNAL_CALLER_H_
