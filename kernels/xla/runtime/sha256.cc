#include "kernels/xla/runtime/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace troupe::kernels::xla {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  TROUPE_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1, "no SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::Add(std::string_view bytes) {
  TROUPE_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "SHA-256 fails");
}

std::string Sha256::Finish() {
  std::string digest(kBytes, '\0');
  auto* const out = reinterpret_cast<unsigned char*>(digest.data());
  TROUPE_CHECK(EVP_DigestFinal_ex(context_.get(), out, nullptr) == 1, "SHA-256 fails");
  return digest;
}

std::string Sha256::FinishAsText() {
  std::string text;
  for (const char byte : Finish()) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace troupe::kernels::xla
