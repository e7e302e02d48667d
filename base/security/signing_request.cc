#include "base/security/signing_request.h"

#include <openssl/pem.h>

#include <array>

namespace troupe {
namespace {

using RequestPointer = std::unique_ptr<X509_REQ, openssl::Deleter<X509_REQ_free>>;

constexpr int kLeastRsaBits = 2048;
constexpr int kMostRsaBits = 8192;  // a larger one takes too long to verify

StatusOr<RequestPointer> ParseRequest(std::string_view pem) {
  if (pem.size() > kMostSigningRequestBytes) {
    return InvalidArgument("the certificate request has {} bytes, above the limit of {}",
                           pem.size(), kMostSigningRequestBytes);
  }
  const openssl::Bio reader(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  RequestPointer request(PEM_read_bio_X509_REQ(reader.get(), nullptr, nullptr, nullptr));
  if (request == nullptr)
    return InvalidArgument("it has no whole certificate request in PEM: {}",
                           openssl::OldestError());
  return request;
}

Status CheckKind(EVP_PKEY* key) {
  constexpr std::string_view kKinds = "EC on P-256 or P-384, or RSA with 2048 to 8192 bits";
  const int kind = EVP_PKEY_get_base_id(key);
  if (kind == EVP_PKEY_EC) {
    std::array<char, 64> curve{};
    if (EVP_PKEY_get_group_name(key, curve.data(), curve.size(), nullptr) != 1)
      return InvalidArgument("the requested key is on no named curve; it must be {}", kKinds);
    const std::string_view name = curve.data();
    if (name == SN_X9_62_prime256v1 || name == SN_secp384r1) return OkStatus();
    return InvalidArgument("the requested key is on the curve {}; it must be {}", name, kKinds);
  }
  if (kind == EVP_PKEY_RSA) {
    const int bits = EVP_PKEY_get_bits(key);
    if (bits >= kLeastRsaBits && bits <= kMostRsaBits) return OkStatus();
    return InvalidArgument("the requested key is RSA with {} bits; it must be {}", bits, kKinds);
  }
  return InvalidArgument("the requested key is of the kind {}; it must be {}",
                         OBJ_nid2sn(kind) == nullptr ? "unknown" : OBJ_nid2sn(kind), kKinds);
}

}  // namespace

StatusOr<SigningRequest> MakeSigningRequest() {
  const openssl::ErrorScope scope;
  const auto failed = [] {
    return Internal("OpenSSL cannot make a certificate request: {}", openssl::OldestError());
  };
  const openssl::Key key(EVP_EC_gen("P-256"));
  const RequestPointer request(X509_REQ_new());
  if (key == nullptr || request == nullptr) return failed();
  if (X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) <= 0) {
    return failed();
  }
  const openssl::Bio text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_REQ(text.get(), request.get()) != 1) return failed();
  SigningRequest made{.request = openssl::TextOf(text)};
  TROUPE_ASSIGN_OR_RETURN(made.key, openssl::ToPem(key));
  return made;
}

StatusOr<openssl::Key> RequestedKey(std::string_view request) {
  const openssl::ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const RequestPointer parsed, ParseRequest(request));
  openssl::Key key(X509_REQ_get_pubkey(parsed.get()));
  if (key == nullptr) {
    return InvalidArgument("the certificate request has no key that can be read: {}",
                           openssl::OldestError());
  }
  TROUPE_RETURN_IF_ERROR(CheckKind(key.get()));
  if (X509_REQ_verify(parsed.get(), key.get()) != 1)
    return InvalidArgument("the certificate request is not signed with its own key");
  return key;
}

Status CheckKeyIsNew(std::string_view request, std::string_view certificate) {
  const openssl::ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const openssl::Key key, RequestedKey(request));
  TROUPE_ASSIGN_OR_RETURN(const auto certificates, openssl::ParseCertificates(certificate));
  if (EVP_PKEY_eq(X509_get0_pubkey(certificates.front().get()), key.get()) == 1)
    return InvalidArgument("the certificate request is for the former key; it must be a new one");
  return OkStatus();
}

}  // namespace troupe
