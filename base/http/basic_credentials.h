// The name and the password that a browser sends (RFC 7617). Pure.
#ifndef TROUPE_BASE_HTTP_BASIC_CREDENTIALS_H_
#define TROUPE_BASE_HTTP_BASIC_CREDENTIALS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// Both are UTF-8 without control characters, and may be empty. The user has no colon.
struct BasicCredentials {
  std::string user;
  std::string password;
};

// Headers with more bytes of base64 are refused.
inline constexpr size_t kMostBasicBytes = 2048;

// Returns the credentials in the header Authorization. Absent if it has another scheme than Basic,
// if its base64 is not what an encoder writes, with padding, or if its text is no credentials.
std::optional<BasicCredentials> ParseBasic(std::string_view authorization);

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_BASIC_CREDENTIALS_H_
