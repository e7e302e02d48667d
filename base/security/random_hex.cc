#include "base/security/random_hex.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <vector>

#include "base/security/openssl.h"

namespace troupe {

StatusOr<std::string> RandomHex(size_t bytes) {
  const openssl::ErrorScope scope;
  std::vector<unsigned char> random(bytes);
  if (RAND_bytes(random.data(), static_cast<int>(bytes)) != 1)
    return Internal("no random bits for a token: {}", openssl::OldestError());
  std::string text;
  for (const unsigned char byte : random) text += fmt::format("{:02x}", byte);
  OPENSSL_cleanse(random.data(), random.size());
  return text;
}

bool IsHex(std::string_view text, size_t bytes) {
  return text.size() == 2 * bytes && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace troupe
