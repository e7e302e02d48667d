#include "base/http/basic_credentials.h"

#include <openssl/evp.h>
#include <strings.h>

#include <algorithm>

#include "base/security/openssl.h"
#include "base/text/printable.h"

namespace troupe {
namespace {

unsigned char* BytesOf(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

// Encoding the bytes again shows what OpenSSL's decoder lets pass: spaces at both ends, padding in
// the middle, and bits behind the last byte.
std::optional<std::string> DecodeBase64(std::string encoded) {
  const openssl::ErrorScope scope;
  const int size = static_cast<int>(encoded.size());
  std::string bytes(encoded.size(), '\0');
  const int decoded = EVP_DecodeBlock(BytesOf(bytes), BytesOf(encoded), size);
  const int padding = encoded.ends_with("==") ? 2 : encoded.ends_with('=') ? 1 : 0;
  if (decoded < padding) return std::nullopt;
  bytes.resize(static_cast<size_t>(decoded - padding));
  std::string again(encoded.size() + 4, '\0');  // with the zero at the end
  const int written =
      EVP_EncodeBlock(BytesOf(again), BytesOf(bytes), static_cast<int>(bytes.size()));
  again.resize(static_cast<size_t>(written));
  if (again != encoded) return std::nullopt;
  return bytes;
}

}  // namespace

std::optional<BasicCredentials> ParseBasic(std::string_view authorization) {
  constexpr std::string_view kScheme = "Basic ";
  if (authorization.size() < kScheme.size() ||
      strncasecmp(authorization.data(), kScheme.data(), kScheme.size()) != 0) {
    return std::nullopt;
  }
  const size_t begin = authorization.find_first_not_of(' ', kScheme.size());
  if (begin == authorization.npos) return std::nullopt;
  const std::string_view encoded = authorization.substr(begin);
  if (encoded.size() > kMostBasicBytes) return std::nullopt;
  const std::optional<std::string> text = DecodeBase64(std::string(encoded));
  if (!text || !TextFault(*text).empty()) return std::nullopt;
  const size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return BasicCredentials{text->substr(0, colon), text->substr(colon + 1)};
}

}  // namespace troupe
