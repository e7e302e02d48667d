// The tokens with which users call a coordinator instead of with a certificate. The text of one is
// troupe~CLUSTER~ID~SECRET: CLUSTER is the coordinator's, ID (16 hexadecimal digits) finds the
// token in its catalog, and only the holder has SECRET, 256 random bits in hexadecimal digits. No
// error contains any part of a text. Thread-safe.
#ifndef TROUPE_BASE_SECURITY_USER_TOKEN_H_
#define TROUPE_BASE_SECURITY_USER_TOKEN_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct UserTokenParts {
  std::string cluster;
  std::string id;
  std::string secret;
};

// Returns a token with a new id and a new secret. INTERNAL if the system has no random bits.
StatusOr<UserTokenParts> MakeUserToken(const std::string& cluster);

std::string UserTokenText(const UserTokenParts& parts);

// INVALID_ARGUMENT unless `text` has the form above.
StatusOr<UserTokenParts> ParseUserToken(std::string_view text);

// Returns the SHA-256 of a secret, 32 bytes.
std::string HashOfSecret(std::string_view secret);

// Compares in a time that depends on the lengths alone.
bool AreEqualHashes(std::string_view a, std::string_view b);

// Returns the text of the token in the file, without white space around it. INVALID_ARGUMENT if
// others than the owner of the file may use it, or if it has no token; the errors of open.
StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_USER_TOKEN_H_
