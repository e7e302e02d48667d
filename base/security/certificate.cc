#include "base/security/certificate.h"

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/security/openssl.h"

namespace troupe {
namespace {

using openssl::ErrorScope;
using openssl::ParseCertificates;
using openssl::ParseKey;
using openssl::ToSeconds;
using openssl::UrisOf;

std::string SerialOf(X509* certificate) {
  const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate);
  std::string text;
  for (int i = 0; i < serial->length; ++i) text += fmt::format("{:02x}", serial->data[i]);
  return text;
}

std::string IssuerOf(X509* certificate) {
  const openssl::Bio text(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(text.get(), X509_get_issuer_name(certificate), 0, XN_FLAG_RFC2253);
  return openssl::TextOf(text);
}

}  // namespace

StatusOr<CertificateFacts> ReadCertificate(std::string_view pem) {
  const ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const auto certificates, ParseCertificates(pem));
  X509* certificate = certificates.front().get();
  CertificateFacts facts;
  TROUPE_ASSIGN_OR_RETURN(facts.identity, ParseSoleIdentity(UrisOf(certificate)));
  TROUPE_ASSIGN_OR_RETURN(facts.not_before, ToSeconds(X509_get0_notBefore(certificate)));
  TROUPE_ASSIGN_OR_RETURN(facts.not_after, ToSeconds(X509_get0_notAfter(certificate)));
  facts.serial = SerialOf(certificate);
  facts.issuer = IssuerOf(certificate);
  return facts;
}

std::string ValidityText(int64_t not_before, int64_t not_after, int64_t now_seconds) {
  return fmt::format("valid from {} to {}, and it is {} here", UtcText(not_before),
                     UtcText(not_after), UtcText(now_seconds));
}

Status CheckValidAt(const CertificateFacts& facts, int64_t now_seconds) {
  if (now_seconds < facts.not_before) {
    return InvalidArgument("the certificate of {} is not valid before {}, and it is {}",
                           ToUri(facts.identity), UtcText(facts.not_before), UtcText(now_seconds));
  }
  if (now_seconds > facts.not_after) {
    return InvalidArgument("the certificate of {} expired at {}, and it is {}",
                           ToUri(facts.identity), UtcText(facts.not_after), UtcText(now_seconds));
  }
  return OkStatus();
}

Status CheckCertificates(std::string_view pem) {
  const ErrorScope scope;
  return ParseCertificates(pem).status();
}

Status CheckKey(std::string_view key_pem) {
  const ErrorScope scope;
  return ParseKey(key_pem).status();
}

Status CheckKeyBelongs(std::string_view key_pem, std::string_view certificate_pem) {
  const ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const openssl::Key key, ParseKey(key_pem));
  TROUPE_ASSIGN_OR_RETURN(const auto certificates, ParseCertificates(certificate_pem));
  if (X509_check_private_key(certificates.front().get(), key.get()) != 1) {
    return InvalidArgument("the key does not belong to the certificate");
  }
  return OkStatus();
}

Status CheckSigned(std::string_view certificate_pem, std::string_view authority_pem, Role role,
                   int64_t now_seconds) {
  const ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const auto certificates, ParseCertificates(certificate_pem));
  TROUPE_ASSIGN_OR_RETURN(const auto authorities, ParseCertificates(authority_pem));
  const openssl::Store store(X509_STORE_new());
  for (const auto& authority : authorities) X509_STORE_add_cert(store.get(), authority.get());
  // The stack does not own the certificates.
  const std::unique_ptr<STACK_OF(X509),
                        openssl::Deleter<[](STACK_OF(X509) * stack) { sk_X509_free(stack); }>>
      intermediate(sk_X509_new_null());
  for (size_t i = 1; i < certificates.size(); ++i) {
    sk_X509_push(intermediate.get(), certificates[i].get());
  }
  const openssl::StoreContext context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), certificates.front().get(),
                          intermediate.get()) != 1) {
    return Internal("cannot begin to verify a certificate: {}", openssl::OldestError());
  }
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(parameters, now_seconds);
  X509_VERIFY_PARAM_set_purpose(
      parameters, role == Role::kCoordinator ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
  if (X509_verify_cert(context.get()) != 1) {
    const int error = X509_STORE_CTX_get_error(context.get());
    return InvalidArgument("no authority vouches for the certificate: {}",
                           X509_verify_cert_error_string(error));
  }
  return OkStatus();
}

}  // namespace troupe
