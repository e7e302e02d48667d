#include "base/security/certificate_line.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/security/random_hex.h"

namespace troupe {
namespace {

// A serial number of a renewal: these two bytes, the line, and random bytes. It has the most bytes
// that a serial number may have. One of another authority that begins so by chance is the beginning
// of a line all the same, with a part of itself instead of its hash.
constexpr std::string_view kMark = "5452";
constexpr size_t kSerialBytes = 20;
constexpr size_t kLineBytes = 9;
constexpr size_t kRandomBytes = kSerialBytes - kMark.size() / 2 - kLineBytes;

}  // namespace

std::string LineOf(std::string_view serial) {
  serial.remove_prefix(std::min(serial.find_first_not_of('0'), serial.size()));
  if (IsHex(serial, kSerialBytes) && serial.starts_with(kMark))
    return std::string(serial.substr(kMark.size(), 2 * kLineBytes));
  std::array<unsigned char, 32> digest{};
  unsigned length = 0;
  TROUPE_CHECK(EVP_Digest(serial.data(), serial.size(), digest.data(), &length, EVP_sha256(),
                          nullptr) == 1 &&
                   length == digest.size(),
               "SHA-256 gave {} bytes", length);
  std::string line;
  for (size_t i = 0; i < kLineBytes; ++i) line += fmt::format("{:02x}", digest[i]);
  return line;
}

StatusOr<std::string> SerialOfRenewal(std::string_view former) {
  TROUPE_ASSIGN_OR_RETURN(const std::string random, RandomHex(kRandomBytes));
  return fmt::format("{}{}{}", kMark, LineOf(former), random);
}

}  // namespace troupe
