#include "base/security/secret.h"

#include <sys/random.h>

namespace troupe {

std::string RandomSecret() {
  std::string secret(kSecretBytes, '\0');
  size_t filled = 0;
  while (filled < secret.size()) {
    const ssize_t got = getrandom(secret.data() + filled, secret.size() - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return secret;
}

}  // namespace troupe
