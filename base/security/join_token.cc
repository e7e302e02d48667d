#include "base/security/join_token.h"

#include <openssl/crypto.h>
#include <openssl/pem.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/security/identity.h"
#include "base/security/openssl.h"
#include "base/security/random_hex.h"

namespace troupe {
namespace {

constexpr std::string_view kFormat = "troupe-join";
constexpr std::string_view kVersionOfFormat = "1";
constexpr size_t kJoinIdBytes = 8;
constexpr size_t kHashBytes = 32;
constexpr size_t kParts = 6;
constexpr std::string_view kSpace = " \t\r\n";

std::string Hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t colon = text.find(':'); colon != text.npos; colon = text.find(':')) {
    parts.push_back(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  parts.push_back(text);
  return parts;
}

StatusOr<std::string> Sha256Hex(std::span<const unsigned char> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    return Internal("OpenSSL cannot compute a hash: {}", openssl::OldestError());
  return Hex(std::span(digest).first(size));
}

StatusOr<std::string> HashOf(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate, &der);
  if (size <= 0) return Internal("OpenSSL cannot encode a certificate: {}", openssl::OldestError());
  auto hash = Sha256Hex({der, static_cast<size_t>(size)});
  OPENSSL_free(der);
  return hash;
}

}  // namespace

StatusOr<JoinToken> MakeJoinToken(std::string cluster, std::string authority_hash) {
  const openssl::ErrorScope scope;
  JoinToken token{.cluster = std::move(cluster), .authority_hash = std::move(authority_hash)};
  TROUPE_ASSIGN_OR_RETURN(token.id, RandomHex(kJoinIdBytes));
  TROUPE_ASSIGN_OR_RETURN(token.secret, RandomHex(kHashBytes));
  return token;
}

std::string ToText(const JoinToken& token) {
  return fmt::format("{}:{}:{}:{}:{}:{}", kFormat, kVersionOfFormat, token.cluster, token.id,
                     token.secret, token.authority_hash);
}

StatusOr<JoinToken> ParseJoinToken(std::string_view text) {
  const auto refuse = [](std::string_view reason) {
    return InvalidArgument("it is not a join token (`troupe certs token` makes one): {}", reason);
  };
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return refuse("it is empty");
  text = text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
  if (text.size() > kMostJoinTokenBytes) return refuse("it is too long");
  const std::vector<std::string_view> parts = Split(text);
  if (parts[0] != kFormat) return refuse("it does not begin with troupe-join:");
  if (parts.size() < kParts) return refuse("it is incomplete");
  if (parts.size() > kParts) return refuse("it has too many parts");
  if (parts[1] != kVersionOfFormat) return refuse("it has another version than 1");
  if (!CheckIdentityName("the cluster", parts[2]).ok()) return refuse("its cluster has no name");
  if (!IsHex(parts[3], kJoinIdBytes)) return refuse("its id is damaged");
  if (!IsHex(parts[4], kHashBytes)) return refuse("its secret is damaged");
  if (!IsHex(parts[5], kHashBytes)) return refuse("the hash of its authority is damaged");
  return JoinToken{std::string(parts[2]), std::string(parts[3]), std::string(parts[4]),
                   std::string(parts[5])};
}

StatusOr<std::string> SecretHash(const JoinToken& token) {
  const openssl::ErrorScope scope;
  return Sha256Hex(
      {reinterpret_cast<const unsigned char*>(token.secret.data()), token.secret.size()});
}

bool SameHash(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

StatusOr<std::string> CertificateHash(std::string_view pem) {
  const openssl::ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const auto certificates, openssl::ParseCertificates(pem));
  return HashOf(certificates.front().get());
}

StatusOr<std::string> CertificateWithHash(std::string_view pem, std::string_view hash) {
  const openssl::ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const auto certificates, openssl::ParseCertificates(pem));
  for (const openssl::Certificate& certificate : certificates) {
    TROUPE_ASSIGN_OR_RETURN(const std::string own, HashOf(certificate.get()));
    if (own == hash) return openssl::ToPem(certificate);
  }
  return NotFound("none of the {} certificates has the hash {}", certificates.size(), hash);
}

}  // namespace troupe
