#include "base/security/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>

#include <ctime>
#include <string>

#include "base/security/openssl.h"
#include "base/security/test_certificates.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

std::string MessageOf(const Status& status) { return std::string(Message(status)); }

class CertificateTest : public testing::Test {
 protected:
  const int64_t now_ = std::time(nullptr);
  const TestAuthority authority_{"lab"};
  const CertifiedKey worker_ = authority_.Issue(Role::kWorker, "worker-0");
};

TEST_F(CertificateTest, ItsFactsAreRead) {
  const CertifiedKey made =
      authority_.IssueWith({"spiffe://lab/operator/ann"}, 1'700'000'000, 1'800'000'000);
  const auto facts = ReadCertificate(made.certificate);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->identity, (Identity{"lab", Role::kOperator, "ann"}));
  EXPECT_EQ(facts->not_before, 1'700'000'000);
  EXPECT_EQ(facts->not_after, 1'800'000'000);
  EXPECT_EQ(facts->issuer, "CN=troupe lab");
  EXPECT_THAT(facts->serial, MatchesRegex("[0-7][0-9a-f]{20,31}"));
  EXPECT_NE(facts->serial, ReadCertificate(worker_.certificate)->serial);
}

TEST_F(CertificateTest, TheFirstOfAChainCounts) {
  const auto facts = ReadCertificate(worker_.certificate + authority_.pem());
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->identity.name, "worker-0");
}

TEST_F(CertificateTest, OneWithoutOrWithSeveralIdentitiesIsRefused) {
  const auto read = [&](const std::vector<std::string>& uris) {
    return MessageOf(
        ReadCertificate(authority_.IssueWith(uris, now_, now_ + kTestDay).certificate).status());
  };
  EXPECT_THAT(read({}), HasSubstr("has no identity"));
  EXPECT_THAT(read({"spiffe://lab/viewer/a", "spiffe://lab/operator/a"}),
              HasSubstr("has 2 identities"));
  EXPECT_THAT(read({"spiffe://lab/boss/a"}), HasSubstr("\"boss\" is not a role"));
  EXPECT_THAT(read({std::string("spiffe://lab/viewer/a\0/operator/b", 33)}), HasSubstr("NAME is"));
  // An authority's certificate names only its cluster.
  EXPECT_THAT(MessageOf(ReadCertificate(authority_.pem()).status()),
              HasSubstr("does not have three parts"));
}

TEST_F(CertificateTest, TextThatIsNoWholeCertificateIsRefused) {
  EXPECT_EQ(MessageOf(CheckCertificates("")), "it has no certificate in PEM");
  EXPECT_EQ(MessageOf(CheckCertificates("hello\n")), "it has no certificate in PEM");
  EXPECT_THAT(MessageOf(CheckCertificates(worker_.key)), HasSubstr("block 1 of 1 is not a whole"));
  // A prefix of any length is refused, but for one that lacks only the last line feed.
  const std::string& pem = worker_.certificate;
  for (size_t size = 0; size + 1 < pem.size(); ++size) {
    EXPECT_EQ(CheckCertificates(pem.substr(0, size)).code(), StatusCode::kInvalidArgument) << size;
  }
  const std::string two = authority_.pem() + pem;
  EXPECT_TRUE(CheckCertificates(two).ok());
  EXPECT_TRUE(CheckCertificates("# a comment\n" + two).ok());
  EXPECT_THAT(MessageOf(CheckCertificates(two.substr(0, two.size() - 40))),
              HasSubstr("block 2 of 2 is not a whole certificate"));
  std::string damaged = pem;
  damaged[damaged.size() / 2] = '!';
  EXPECT_THAT(MessageOf(CheckCertificates(damaged)), HasSubstr("base64"));
}

TEST_F(CertificateTest, TextThatIsNoWholeKeyIsRefused) {
  EXPECT_TRUE(CheckKey(worker_.key).ok());
  EXPECT_THAT(MessageOf(CheckKey("")), HasSubstr("no whole private key"));
  EXPECT_THAT(MessageOf(CheckKey(worker_.certificate)), HasSubstr("no whole private key"));
  for (size_t size = 0; size + 1 < worker_.key.size(); ++size) {
    EXPECT_FALSE(CheckKey(worker_.key.substr(0, size)).ok()) << size;
  }
}

// Returns the key in PEM, encrypted with a password.
std::string Encrypted(const std::string& key_pem) {
  const auto key = openssl::ParseKey(key_pem);
  char password[] = "secret";
  const openssl::Bio text(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_PKCS8PrivateKey(text.get(), key->get(), EVP_aes_128_cbc(), password,
                                          sizeof password - 1, nullptr, nullptr),
            1);
  return openssl::TextOf(text);
}

TEST_F(CertificateTest, AnEncryptedKeyIsRefusedWithoutAQuestion) {
  EXPECT_EQ(MessageOf(CheckKey(Encrypted(worker_.key))),
            "the key is encrypted; it must have no password");
}

TEST_F(CertificateTest, AKeyBelongsToItsCertificateOnly) {
  EXPECT_TRUE(CheckKeyBelongs(worker_.key, worker_.certificate).ok());
  const CertifiedKey renewed = authority_.Issue(Role::kWorker, "worker-0");
  EXPECT_EQ(MessageOf(CheckKeyBelongs(worker_.key, renewed.certificate)),
            "the key does not belong to the certificate");
}

TEST_F(CertificateTest, ItsTimeOfValidityIsCompared) {
  const CertificateFacts facts{.identity = {"lab", Role::kViewer, "ann"},
                               .not_before = 1'700'000'000,
                               .not_after = 1'700'000'100};
  EXPECT_TRUE(CheckValidAt(facts, 1'700'000'000).ok());
  EXPECT_TRUE(CheckValidAt(facts, 1'700'000'100).ok());
  EXPECT_EQ(MessageOf(CheckValidAt(facts, 1'699'999'999)),
            "the certificate of spiffe://lab/viewer/ann is not valid before 2023-11-14T22:13:20Z, "
            "and it is 2023-11-14T22:13:19Z");
  EXPECT_EQ(MessageOf(CheckValidAt(facts, 1'700'000'101)),
            "the certificate of spiffe://lab/viewer/ann expired at 2023-11-14T22:15:00Z, and it "
            "is 2023-11-14T22:15:01Z");
}

TEST_F(CertificateTest, ItsTimeOfValidityIsShownWithTheClock) {
  EXPECT_EQ(ValidityText(1'700'000'000, 1'700'000'100, 1'699'999'820),
            "valid from 2023-11-14T22:13:20Z to 2023-11-14T22:15:00Z, and it is "
            "2023-11-14T22:10:20Z here");
}

TEST_F(CertificateTest, OneOfTheAuthoritiesVouchesForIt) {
  const TestAuthority foreign("lab");
  const auto check = [&](const std::string& authorities, int64_t now) {
    return CheckSigned(worker_.certificate, authorities, Role::kWorker, now);
  };
  EXPECT_TRUE(check(authority_.pem(), now_).ok());
  EXPECT_TRUE(check(foreign.pem() + authority_.pem(), now_).ok());
  // The foreign authority has the same name.
  EXPECT_THAT(MessageOf(check(foreign.pem(), now_)), HasSubstr("no authority vouches"));
  EXPECT_THAT(MessageOf(check(authority_.pem(), now_ + 2 * kTestDay)), HasSubstr("expired"));
  // No holder of a certificate can vouch for another one.
  const CertifiedKey holder = foreign.Issue(Role::kOperator, "ann");
  EXPECT_THAT(MessageOf(check(holder.certificate, now_)), HasSubstr("no authority vouches"));
}

TEST_F(CertificateTest, ErrorsAreNotLeftInTheQueueOfTheThread) {
  EXPECT_FALSE(CheckCertificates("-----BEGIN CERTIFICATE-----\n!\n").ok());
  EXPECT_FALSE(CheckKey("").ok());
  EXPECT_EQ(ERR_peek_error(), 0u);
}

}  // namespace
}  // namespace troupe
