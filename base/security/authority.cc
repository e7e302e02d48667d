#include "base/security/authority.h"

#include <arpa/inet.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/security/certificate.h"
#include "base/security/openssl.h"
#include "base/security/signing_request.h"

namespace troupe {
namespace {

constexpr std::string_view kSpiffe = "spiffe://";
constexpr int64_t kAuthorityDays = 3650;
constexpr size_t kLongestCommonName = 64;
constexpr size_t kLongestHost = 253;

// Returns OK if `worked`, else the error of OpenSSL while it did `what`.
Status Expect(bool worked, std::string_view what) {
  return worked ? OkStatus() : Internal("OpenSSL cannot {}: {}", what, openssl::OldestError());
}

// Adds an extension whose `value` is in the syntax of OpenSSL's configuration. REQUIRES: `value`
// has no text from a user.
Status AddExtension(int nid, const char* value, X509* issuer, X509* certificate) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const openssl::Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return Expect(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1,
                "add an extension to a certificate");
}

bool IsDnsName(std::string_view host) {
  const auto may_be_in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
  };
  return !host.empty() && host.size() <= kLongestHost && std::ranges::all_of(host, may_be_in_name);
}

bool IsAddress(const std::string& host) {
  std::array<char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

// Adds one alternative name of `type`. `bytes` are characters, or an address for GEN_IPADD.
Status AddName(int type, std::string_view bytes, GENERAL_NAMES* names) {
  std::unique_ptr<GENERAL_NAME, openssl::Deleter<GENERAL_NAME_free>> name(GENERAL_NAME_new());
  ASN1_STRING* text =
      ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
  TROUPE_RETURN_IF_ERROR(
      Expect(name != nullptr && text != nullptr &&
                 ASN1_STRING_set(text, bytes.data(), static_cast<int>(bytes.size())) == 1,
             "make an alternative name"));
  GENERAL_NAME_set0_value(name.get(), type, text);
  TROUPE_RETURN_IF_ERROR(
      Expect(sk_GENERAL_NAME_push(names, name.get()) > 0, "add an alternative name"));
  static_cast<void>(name.release());  // the list owns it
  return OkStatus();
}

Status AddHost(const std::string& host, GENERAL_NAMES* names) {
  std::array<char, sizeof(in6_addr)> address{};
  if (inet_pton(AF_INET, host.c_str(), address.data()) == 1) {
    return AddName(GEN_IPADD, {address.data(), sizeof(in_addr)}, names);
  }
  if (inet_pton(AF_INET6, host.c_str(), address.data()) == 1) {
    return AddName(GEN_IPADD, {address.data(), sizeof(in6_addr)}, names);
  }
  TROUPE_RETURN_IF_ERROR(CheckHost(host));
  return AddName(GEN_DNS, host, names);
}

Status AddNames(const CertificateRequest& request, X509* certificate) {
  if (request.uris.empty() && request.hosts.empty()) return OkStatus();
  const openssl::Names names(GENERAL_NAMES_new());
  for (const std::string& uri : request.uris) {
    TROUPE_RETURN_IF_ERROR(AddName(GEN_URI, uri, names.get()));
  }
  for (const std::string& host : request.hosts) {
    TROUPE_RETURN_IF_ERROR(AddHost(host, names.get()));
  }
  return Expect(X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, 0) == 1,
                "add the alternative names");
}

// Returns 127 random bits: 128 would be negative in half of the cases.
StatusOr<openssl::BigNumber> RandomSerial() {
  std::array<unsigned char, 16> bytes{};
  TROUPE_RETURN_IF_ERROR(
      Expect(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "make random bytes"));
  bytes[0] &= 0x7f;
  return openssl::BigNumber(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
}

constexpr size_t kMostSerialDigits = 40;

StatusOr<openssl::BigNumber> ParseSerial(const std::string& digits) {
  BIGNUM* parsed = nullptr;
  const bool whole = digits.size() <= kMostSerialDigits &&
                     BN_hex2bn(&parsed, digits.c_str()) == static_cast<int>(digits.size());
  openssl::BigNumber number(parsed);
  if (!whole || BN_is_zero(number.get()) || BN_is_negative(number.get()))
    return InvalidArgument("\"{}\" is no serial number of a certificate", digits);
  return number;
}

Status SetSerial(const std::string& serial, X509* certificate) {
  TROUPE_ASSIGN_OR_RETURN(const openssl::BigNumber number,
                          serial.empty() ? RandomSerial() : ParseSerial(serial));
  return Expect(number != nullptr &&
                    BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr,
                "set a serial number");
}

// Sets all that certificates of authorities and of others have in common.
Status SetSubject(const CertificateRequest& request, EVP_PKEY* key, X509* certificate) {
  X509_set_version(certificate, X509_VERSION_3);
  TROUPE_RETURN_IF_ERROR(SetSerial(request.serial, certificate));
  TROUPE_RETURN_IF_ERROR(
      Expect(ASN1_TIME_set(X509_getm_notBefore(certificate), request.not_before) != nullptr &&
                 ASN1_TIME_set(X509_getm_notAfter(certificate), request.not_after) != nullptr,
             "set the time of validity"));
  const auto* common_name = reinterpret_cast<const unsigned char*>(request.common_name.data());
  TROUPE_RETURN_IF_ERROR(
      Expect(X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                        MBSTRING_UTF8, common_name,
                                        static_cast<int>(request.common_name.size()), -1, 0) == 1,
             "set the subject"));
  TROUPE_RETURN_IF_ERROR(Expect(X509_set_pubkey(certificate, key) == 1, "set the key"));
  return AddNames(request, certificate);
}

Status Sign(X509* issuer, EVP_PKEY* issuer_key, X509* certificate) {
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  TROUPE_RETURN_IF_ERROR(AddExtension(NID_subject_key_identifier, "hash", issuer, certificate));
  TROUPE_RETURN_IF_ERROR(
      AddExtension(NID_authority_key_identifier, "keyid:always", issuer, certificate));
  return Expect(X509_sign(certificate, issuer_key, EVP_sha256()) > 0, "sign a certificate");
}

StatusOr<openssl::Key> MakeKey() {
  openssl::Key key(EVP_EC_gen("P-256"));
  TROUPE_RETURN_IF_ERROR(Expect(key != nullptr, "make a key"));
  return key;
}

// Makes a certificate for `key` that is not signed yet.
StatusOr<openssl::Certificate> MakeDraft(const CertificateRequest& request, EVP_PKEY* key) {
  openssl::Certificate draft(X509_new());
  TROUPE_RETURN_IF_ERROR(Expect(draft != nullptr, "make a certificate"));
  TROUPE_RETURN_IF_ERROR(SetSubject(request, key, draft.get()));
  return draft;
}

StatusOr<CertifiedKey> ToPem(const openssl::Certificate& certificate, const openssl::Key& key) {
  CertifiedKey made;
  TROUPE_ASSIGN_OR_RETURN(made.certificate, openssl::ToPem(certificate));
  TROUPE_ASSIGN_OR_RETURN(made.key, openssl::ToPem(key));
  return made;
}

// A usable authority.
struct Issuer {
  openssl::Certificate certificate;
  openssl::Key key;
  int64_t end = 0;  // Unix time in seconds
};

StatusOr<Issuer> IssuerOf(const CertifiedKey& authority) {
  TROUPE_ASSIGN_OR_RETURN(auto certificates, openssl::ParseCertificates(authority.certificate));
  Issuer issuer{.certificate = std::move(certificates.front())};
  TROUPE_ASSIGN_OR_RETURN(issuer.key, openssl::ParseKey(authority.key));
  X509* const certificate = issuer.certificate.get();
  if (X509_check_ca(certificate) == 0)
    return InvalidArgument("the certificate is not an authority's");
  if (X509_check_private_key(certificate, issuer.key.get()) != 1) {
    return InvalidArgument("the authority's key does not belong to its certificate");
  }
  TROUPE_ASSIGN_OR_RETURN(issuer.end, openssl::ToSeconds(X509_get0_notAfter(certificate)));
  return issuer;
}

StatusOr<openssl::Certificate> SignFor(EVP_PKEY* key, const Issuer& authority,
                                       const CertificateRequest& request) {
  if (request.not_after > authority.end) {
    return InvalidArgument(
        "the certificate would be valid for {} days beyond its authority: choose fewer days",
        (request.not_after - authority.end + kSecondsOfDay - 1) / kSecondsOfDay);
  }
  TROUPE_ASSIGN_OR_RETURN(openssl::Certificate draft, MakeDraft(request, key));
  X509* const issuer = authority.certificate.get();
  X509* const subject = draft.get();
  TROUPE_RETURN_IF_ERROR(AddExtension(NID_basic_constraints, "critical,CA:FALSE", issuer, subject));
  TROUPE_RETURN_IF_ERROR(AddExtension(NID_key_usage, "critical,digitalSignature", issuer, subject));
  TROUPE_RETURN_IF_ERROR(AddExtension(NID_ext_key_usage, "serverAuth,clientAuth", issuer, subject));
  TROUPE_RETURN_IF_ERROR(Sign(issuer, authority.key.get(), subject));
  return draft;
}

}  // namespace

Status CheckHost(const std::string& host) {
  if (IsAddress(host) || IsDnsName(host)) return OkStatus();
  return InvalidArgument("the host {:?} is no IP address and no DNS name", host);
}

StatusOr<CertifiedKey> MakeAuthority(const std::string& cluster, int64_t now_seconds) {
  const openssl::ErrorScope scope;
  TROUPE_RETURN_IF_ERROR(CheckIdentityName("the cluster's name", cluster));
  const CertificateRequest request{
      .common_name = ("troupe " + cluster).substr(0, kLongestCommonName),
      .uris = {std::string(kSpiffe) + cluster},
      .not_before = now_seconds - kMostClockSkew,
      .not_after = now_seconds + kAuthorityDays * kSecondsOfDay};
  TROUPE_ASSIGN_OR_RETURN(const openssl::Key key, MakeKey());
  TROUPE_ASSIGN_OR_RETURN(const openssl::Certificate draft, MakeDraft(request, key.get()));
  X509* const self = draft.get();
  TROUPE_RETURN_IF_ERROR(
      AddExtension(NID_basic_constraints, "critical,CA:TRUE,pathlen:0", self, self));
  TROUPE_RETURN_IF_ERROR(AddExtension(NID_key_usage, "critical,keyCertSign,cRLSign", self, self));
  TROUPE_RETURN_IF_ERROR(Sign(self, key.get(), self));
  return ToPem(draft, key);
}

StatusOr<std::string> ClusterOf(const CertifiedKey& authority) {
  const openssl::ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const auto certificates,
                          openssl::ParseCertificates(authority.certificate));
  const std::vector<std::string> uris = openssl::UrisOf(certificates.front().get());
  if (uris.size() != 1 || !uris[0].starts_with(kSpiffe)) {
    return InvalidArgument("the certificate is not one of an authority of `troupe certs init`");
  }
  std::string cluster = uris[0].substr(kSpiffe.size());
  TROUPE_RETURN_IF_ERROR(CheckIdentityName("the authority's cluster", cluster));
  return cluster;
}

StatusOr<int64_t> CheckAuthority(const CertifiedKey& authority) {
  const openssl::ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const Issuer issuer, IssuerOf(authority));
  return issuer.end;
}

StatusOr<CertifiedKey> SignCertificate(const CertifiedKey& authority,
                                       const CertificateRequest& request) {
  const openssl::ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const Issuer issuer, IssuerOf(authority));
  TROUPE_ASSIGN_OR_RETURN(const openssl::Key key, MakeKey());
  TROUPE_ASSIGN_OR_RETURN(const openssl::Certificate signed_one,
                          SignFor(key.get(), issuer, request));
  return ToPem(signed_one, key);
}

StatusOr<std::string> SignRequestedKey(const CertifiedKey& authority, std::string_view request,
                                       const CertificateRequest& contents) {
  const openssl::ErrorScope scope;
  TROUPE_ASSIGN_OR_RETURN(const Issuer issuer, IssuerOf(authority));
  TROUPE_ASSIGN_OR_RETURN(const openssl::Key key, RequestedKey(request));
  TROUPE_ASSIGN_OR_RETURN(const openssl::Certificate signed_one,
                          SignFor(key.get(), issuer, contents));
  return openssl::ToPem(signed_one);
}

}  // namespace troupe
