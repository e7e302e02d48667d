#include "base/security/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <set>
#include <string>

#include "base/security/certificate.h"
#include "base/security/openssl.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kDays = 86400;

std::string ErrorOf(const Status& status) { return std::string(Message(status)); }

// The DNS names and addresses of the certificate, as "dns NAME" and "ip HEX".
std::vector<std::string> HostsOf(const std::string& pem) {
  const auto certificates = openssl::ParseCertificates(pem);
  const openssl::Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificates->front().get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> hosts;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    const ASN1_STRING* value = name->d.ia5;
    const std::string bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                            static_cast<size_t>(ASN1_STRING_length(value)));
    if (name->type == GEN_DNS) hosts.push_back("dns " + bytes);
    if (name->type == GEN_IPADD) hosts.push_back("ip of " + std::to_string(bytes.size()));
  }
  return hosts;
}

class AuthorityTest : public testing::Test {
 protected:
  CertificateRequest Request() const {
    return {.common_name = "w",
            .uris = {"spiffe://lab/worker/w"},
            .not_before = now_ - kMostClockSkew,
            .not_after = now_ + kDays};
  }

  const int64_t now_ = std::time(nullptr);
  const CertifiedKey authority_ = *MakeAuthority("lab", now_);
};

TEST_F(AuthorityTest, ItKnowsItsClusterAndIsValidForTenYears) {
  EXPECT_EQ(*ClusterOf(authority_), "lab");
  EXPECT_TRUE(CheckKeyBelongs(authority_.key, authority_.certificate).ok());
  const auto certificates = openssl::ParseCertificates(authority_.certificate);
  X509* const certificate = certificates->front().get();
  EXPECT_EQ(*openssl::ToSeconds(X509_get0_notBefore(certificate)), now_ - kMostClockSkew);
  EXPECT_EQ(*openssl::ToSeconds(X509_get0_notAfter(certificate)), now_ + 3650 * kDays);
  EXPECT_NE(X509_check_ca(certificate), 0);
  EXPECT_EQ(X509_get_key_usage(certificate), static_cast<uint32_t>(KU_KEY_CERT_SIGN | KU_CRL_SIGN));
}

TEST_F(AuthorityTest, TheLongestClusterNameFits) {
  const std::string longest(63, 'c');
  const auto authority = MakeAuthority(longest, now_);
  ASSERT_TRUE(authority.ok()) << authority.status();
  EXPECT_EQ(*ClusterOf(*authority), longest);
  EXPECT_FALSE(MakeAuthority(longest + "c", now_).ok());
  EXPECT_THAT(ErrorOf(MakeAuthority("a b", now_).status()),
              HasSubstr("the cluster's name is \"a b\""));
}

TEST_F(AuthorityTest, ACertificateIsOfAServerAndOfAClientButNotOfAnAuthority) {
  const auto made = SignCertificate(authority_, Request());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(CheckKeyBelongs(made->key, made->certificate).ok());
  for (const Role role : {Role::kCoordinator, Role::kWorker}) {
    EXPECT_TRUE(CheckSigned(made->certificate, authority_.certificate, role, now_).ok());
  }
  const auto certificates = openssl::ParseCertificates(made->certificate);
  X509* const certificate = certificates->front().get();
  EXPECT_EQ(X509_check_ca(certificate), 0);
  EXPECT_EQ(X509_get_extended_key_usage(certificate),
            static_cast<uint32_t>(XKU_SSL_SERVER | XKU_SSL_CLIENT));
  // Its holder is no authority.
  EXPECT_THAT(ErrorOf(SignCertificate(*made, Request()).status()),
              HasSubstr("is not an authority's"));
  EXPECT_FALSE(ClusterOf(*made).ok());
}

TEST_F(AuthorityTest, NoTwoCertificatesShareASerialNumber) {
  std::set<std::string> serials;
  for (int i = 0; i < 20; ++i) {
    serials.insert(ReadCertificate(SignCertificate(authority_, Request())->certificate)->serial);
  }
  EXPECT_EQ(serials.size(), 20u);
}

TEST_F(AuthorityTest, HostsAreNamesAndAddresses) {
  CertificateRequest request = Request();
  request.hosts = {"node-1.example.org", "10.0.0.7", "fd00::1"};
  const auto made = SignCertificate(authority_, request);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(HostsOf(made->certificate),
              ElementsAre("dns node-1.example.org", "ip of 4", "ip of 16"));
  for (const std::string& host :
       {std::string(), std::string("a b"), std::string("node,URI:spiffe://lab/operator/o"),
        std::string("[::1]"), std::string("node\n"), std::string(254, 'n')}) {
    request.hosts = {host};
    EXPECT_THAT(ErrorOf(SignCertificate(authority_, request).status()),
                HasSubstr("is no IP address and no DNS name"))
        << host;
  }
}

TEST_F(AuthorityTest, ACertificateEndsNoLaterThanItsAuthority) {
  CertificateRequest request = Request();
  request.not_after = now_ + 3650 * kDays;
  EXPECT_TRUE(SignCertificate(authority_, request).ok());
  request.not_after += 2 * kDays - 1;
  const Status status = SignCertificate(authority_, request).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ErrorOf(status), HasSubstr("valid for 2 days beyond its authority"));
}

TEST_F(AuthorityTest, AKeyOfAnotherAuthorityIsRefused) {
  const CertifiedKey mixed{authority_.certificate, MakeAuthority("lab", now_)->key};
  EXPECT_THAT(ErrorOf(SignCertificate(mixed, Request()).status()),
              HasSubstr("the authority's key does not belong to its certificate"));
}

}  // namespace
}  // namespace troupe
