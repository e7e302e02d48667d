#include "base/security/signing_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <ctime>
#include <string>

#include "base/security/authority.h"
#include "base/security/certificate.h"
#include "base/security/test_certificates.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Request = std::unique_ptr<X509_REQ, openssl::Deleter<X509_REQ_free>>;

std::string TextOf(X509_REQ* request) {
  const openssl::Bio text(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509_REQ(text.get(), request), 1);
  return openssl::TextOf(text);
}

// A request for `key` that asks for the name of another one, signed with `signer`.
std::string RequestFor(EVP_PKEY* key, EVP_PKEY* signer) {
  const Request request(X509_REQ_new());
  const auto* name = reinterpret_cast<const unsigned char*>("operator");
  X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request.get()), "CN", MBSTRING_UTF8, name,
                             -1, -1, 0);
  STACK_OF(X509_EXTENSION)* extensions = sk_X509_EXTENSION_new_null();
  for (const auto& [nid, value] :
       {std::pair<int, const char*>{NID_subject_alt_name, "URI:spiffe://lab/operator/ann"},
        {NID_basic_constraints, "critical,CA:TRUE"}}) {
    sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(nullptr, nullptr, nid, value));
  }
  X509_REQ_add_extensions(request.get(), extensions);
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  X509_REQ_set_pubkey(request.get(), key);
  const EVP_MD* digest = EVP_PKEY_get_base_id(signer) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
  EXPECT_GT(X509_REQ_sign(request.get(), signer, digest), 0);
  return TextOf(request.get());
}

std::string RequestFor(const openssl::Key& key) { return RequestFor(key.get(), key.get()); }

void ExpectRefused(const std::string& request, const std::string& reason) {
  const auto key = RequestedKey(request);
  EXPECT_EQ(key.status().code(), StatusCode::kInvalidArgument) << reason;
  EXPECT_THAT(ToString(key.status()), HasSubstr(reason));
}

TEST(SigningRequest, TheKeysOfOurRequestsAreAccepted) {
  const auto made = MakeSigningRequest();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_LT(made->request.size(), kMostSigningRequestBytes);
  const auto key = RequestedKey(made->request);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(EVP_PKEY_eq(key->get(), openssl::ParseKey(made->key)->get()), 1);
  EXPECT_NE(MakeSigningRequest()->key, made->key);
}

TEST(SigningRequest, KeysAreOfTheseKindsAndSizes) {
  for (const char* curve : {"P-256", "P-384"}) {
    EXPECT_TRUE(RequestedKey(RequestFor(openssl::Key(EVP_EC_gen(curve)))).ok()) << curve;
  }
  EXPECT_TRUE(RequestedKey(RequestFor(openssl::Key(EVP_RSA_gen(2048)))).ok());
  ExpectRefused(RequestFor(openssl::Key(EVP_RSA_gen(1024))), "RSA with 1024 bits");
  ExpectRefused(RequestFor(openssl::Key(EVP_EC_gen("P-224"))), "on the curve secp224r1");
  ExpectRefused(RequestFor(openssl::Key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"))),
                "of the kind ED25519");
}

TEST(SigningRequest, ItMustBeSignedWithItsOwnKey) {
  const openssl::Key key(EVP_EC_gen("P-256")), other(EVP_EC_gen("P-256"));
  ExpectRefused(RequestFor(key.get(), other.get()), "is not signed with its own key");
}

TEST(SigningRequest, DamagedAndLongOnesAreRefused) {
  const std::string good = MakeSigningRequest()->request;
  ExpectRefused("", "no whole certificate request");
  ExpectRefused("x", "no whole certificate request");
  ExpectRefused(good.substr(0, good.size() / 2), "no whole certificate request");
  ExpectRefused(TestAuthority().pem(), "no whole certificate request");
  ExpectRefused(std::string(kMostSigningRequestBytes + 1, 'x'), "above the limit of 16384");
}

TEST(SigningRequest, NothingButItsKeyGoesIntoTheCertificate) {
  const int64_t now = std::time(nullptr);
  const auto authority = MakeAuthority("lab", now);
  const openssl::Key key(EVP_EC_gen("P-256"));
  const auto certificate = SignRequestedKey(*authority, RequestFor(key),
                                            {.common_name = "worker-0",
                                             .uris = {"spiffe://lab/worker/worker-0"},
                                             .not_before = now - 60,
                                             .not_after = now + 60});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  const auto facts = ReadCertificate(*certificate);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(ToUri(facts->identity), "spiffe://lab/worker/worker-0");
  EXPECT_EQ(facts->not_after, now + 60);
  const auto parsed = openssl::ParseCertificates(*certificate);
  X509* const signed_one = parsed->front().get();
  EXPECT_THAT(openssl::UrisOf(signed_one), ElementsAre("spiffe://lab/worker/worker-0"));
  EXPECT_EQ(X509_check_ca(signed_one), 0);
  EXPECT_TRUE(CheckKeyBelongs(*openssl::ToPem(key), *certificate).ok());
  EXPECT_TRUE(CheckSigned(*certificate, authority->certificate, Role::kWorker, now).ok());
}

TEST(SigningRequest, ARequestForTheFormerKeyIsRecognized) {
  const auto authority = MakeAuthority("lab", std::time(nullptr));
  const openssl::Key former = *openssl::ParseKey(authority->key);
  const Status refused = CheckKeyIsNew(RequestFor(former), authority->certificate);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(refused), HasSubstr("former key"));
  EXPECT_TRUE(CheckKeyIsNew(MakeSigningRequest()->request, authority->certificate).ok());
}

}  // namespace
}  // namespace troupe
