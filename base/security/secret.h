// Random secrets of the operating system.
#ifndef TROUPE_BASE_SECURITY_SECRET_H_
#define TROUPE_BASE_SECURITY_SECRET_H_

#include <cstddef>
#include <string>

namespace troupe {

inline constexpr size_t kSecretBytes = 32;

// Returns kSecretBytes bytes that nobody can guess. Thread-safe.
std::string RandomSecret();

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_SECRET_H_
