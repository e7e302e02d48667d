// Secrets and ids in hexadecimal digits. Thread-safe.
#ifndef TROUPE_BASE_SECURITY_RANDOM_HEX_H_
#define TROUPE_BASE_SECURITY_RANDOM_HEX_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Returns this many random bytes in lower-case digits, two for each. INTERNAL if the system has no
// random bits.
StatusOr<std::string> RandomHex(size_t bytes);

// Whether `text` is this many bytes in lower-case digits.
bool IsHex(std::string_view text, size_t bytes);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_RANDOM_HEX_H_
