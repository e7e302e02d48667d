// The contents of former.pem (base/security/tls_files.h): pairs of certificate and key that
// renewals replaced, for the time after a clock that was ahead is set right.
//
// The rule: a replaced pair stays, whatever the clock shows, until others there are valid at all of
// its times, until no authority vouches for it any more, or until it begins first of more than
// kMostFormerPairs. The clock may be the one that is wrong, so a pair that seems to have expired
// stays. If all certificates are valid for equally long, a time at which one of them is valid
// therefore keeps one until the clock has been ahead of it by more than their life.
#ifndef TROUPE_BASE_SECURITY_FORMER_PAIRS_H_
#define TROUPE_BASE_SECURITY_FORMER_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/security/identity.h"
#include "base/security/tls_files.h"

namespace troupe {

inline constexpr size_t kMostFormerPairs = 4;

// Returns the text that former.pem is to have once the pair of `files`, of `identity`, is replaced
// by one under `authorities`, by the rule above; the pairs that begin last come first. It is empty
// if there is no pair to keep. Thread-safe.
std::string NextFormerText(const TlsFiles& files, const Identity& identity,
                           const std::string& authorities, int64_t now_seconds);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_FORMER_PAIRS_H_
