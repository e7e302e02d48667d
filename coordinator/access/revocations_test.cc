#include "coordinator/access/revocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/security/certificate_line.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

CertificateFacts FactsOf(const std::string& serial, int64_t not_before,
                         const std::string& name = "ann") {
  return {.identity = {.cluster = "lab", .role = Role::kWorker, .name = name},
          .not_before = not_before,
          .not_after = not_before + 86400,
          .serial = serial};
}

v1::RevokeCertificateRequest BySerial(const std::string& serial) {
  v1::RevokeCertificateRequest request;
  request.set_serial(serial);
  return request;
}

v1::RevokeCertificateRequest ByIdentity(const std::string& identity) {
  v1::RevokeCertificateRequest request;
  request.set_identity(identity);
  return request;
}

class RevocationsTest : public testing::Test {
 protected:
  void Revoke(const v1::RevokeCertificateRequest& request, int64_t now) {
    const auto revocation = revocations_.NewRevocation(request, "boss", now);
    ASSERT_TRUE(revocation.ok()) << revocation.status();
    revocations_.Put(*revocation);
  }
  Revocations revocations_{"lab"};
};

TEST_F(RevocationsTest, ASerialNumberIsRefusedInAnyFormInWhichToolsPrintIt) {
  for (const std::string text : {"0a3f", "A3F", "0A:3F", "00:0a:3f"}) {
    Revocations revocations("lab");
    EXPECT_TRUE(revocations.Check(FactsOf("0a3f", 5)).ok());
    const auto revocation = revocations.NewRevocation(BySerial(text), "boss", 100);
    ASSERT_TRUE(revocation.ok()) << revocation.status();
    EXPECT_EQ(revocation->serial(), "a3f");
    revocations.Put(*revocation);
    const Status refused = revocations.Check(FactsOf("0a3f", 200));
    EXPECT_EQ(refused.code(), StatusCode::kUnauthenticated);
    EXPECT_THAT(
        ToString(refused),
        AllOf(HasSubstr("the certificate 0a3f of spiffe://lab/worker/ann was revoked at 1970-01"),
              Not(HasSubstr("renew"))));
    EXPECT_TRUE(revocations.Check(FactsOf("0a3e", 5)).ok());
    EXPECT_TRUE(revocations.Check(FactsOf("a3f0", 5)).ok());
  }
}

TEST_F(RevocationsTest, ARevokedSerialNumberReachesTheWholeLineOfItsRenewals) {
  const std::string first = "0a3f", second = *SerialOfRenewal(first);
  const std::string third = *SerialOfRenewal(second), stolen = *SerialOfRenewal(first);
  for (const std::string& revoked : {first, second, third}) {
    Revocations revocations("lab");
    const auto revocation = revocations.NewRevocation(BySerial(revoked), "boss", 100);
    ASSERT_TRUE(revocation.ok()) << revocation.status();
    revocations.Put(*revocation);
    for (const std::string& serial : {first, second, third, stolen, *SerialOfRenewal(third)}) {
      const Status refused = revocations.Check(FactsOf(serial, 200));
      EXPECT_EQ(refused.code(), StatusCode::kUnauthenticated) << revoked << " " << serial;
      EXPECT_EQ(ToString(refused).find("of one line") != std::string::npos, serial != revoked);
    }
    EXPECT_TRUE(revocations.Check(FactsOf(*SerialOfRenewal("0a3e"), 200)).ok());
  }
}

TEST_F(RevocationsTest, AnIdentityIsRefusedInCertificatesUpToTheTime) {
  Revoke(ByIdentity("spiffe://lab/worker/ann"), 100);
  EXPECT_EQ(revocations_.Check(FactsOf("1", 99)).code(), StatusCode::kUnauthenticated);
  const Status refused = revocations_.Check(FactsOf("1", 100));
  EXPECT_EQ(refused.code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(ToString(refused), AllOf(HasSubstr("every certificate of spiffe://lab/worker/ann"),
                                       HasSubstr("valid from 1970-01-01T00:01:40Z")));
  EXPECT_TRUE(revocations_.Check(FactsOf("1", 101)).ok());
  EXPECT_TRUE(revocations_.Check(FactsOf("1", 99, "bob")).ok());
}

TEST_F(RevocationsTest, ASecondRevocationOfAnIdentityIsLaterAndNeverEarlier) {
  const auto request = ByIdentity("spiffe://lab/worker/ann");
  Revoke(request, 100);
  Revoke(request, 50);  // the clock was set back
  EXPECT_EQ(revocations_.Check(FactsOf("1", 100)).code(), StatusCode::kUnauthenticated);
  Revoke(request, 200);
  EXPECT_EQ(revocations_.Check(FactsOf("1", 150)).code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(revocations_.List().size(), 1u);
}

TEST_F(RevocationsTest, TheyAreListedByAge) {
  Revoke(ByIdentity("spiffe://lab/worker/ann"), 100);
  Revoke(BySerial("ff"), 50);
  Revoke(BySerial("ff"), 300);
  const auto listed = revocations_.List();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].serial(), "ff");
  EXPECT_EQ(listed[0].revoked(), 50);
  EXPECT_EQ(listed[0].revoked_by(), "boss");
  EXPECT_EQ(listed[1].identity(), "spiffe://lab/worker/ann");
}

TEST_F(RevocationsTest, BadRequestsAreRefusedByName) {
  const auto refusal = [this](const v1::RevokeCertificateRequest& request) {
    const Status status = revocations_.NewRevocation(request, "boss", 1).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    return ToString(status);
  };
  EXPECT_THAT(refusal({}), HasSubstr("neither serial nor identity"));
  for (const std::string& serial :
       {std::string(), std::string("0"), std::string("0x1f"), std::string("12 34"),
        std::string("ann"), std::string(41, 'f')}) {
    EXPECT_THAT(refusal(BySerial(serial)), HasSubstr("serial is \"" + serial.substr(0, 80)));
  }
  EXPECT_THAT(refusal(ByIdentity("ann")), HasSubstr("spiffe://CLUSTER/ROLE/NAME"));
  EXPECT_THAT(refusal(ByIdentity("spiffe://field/viewer/ann")), HasSubstr("another cluster"));
  EXPECT_THAT(refusal(ByIdentity("spiffe://lab/coordinator/main")),
              HasSubstr("replace the authority"));
}

TEST_F(RevocationsTest, TheCertificateOfTheCoordinatorIsRefusedByItsSerialNumber) {
  CertificateFacts own = FactsOf("0a3f", 5, "main");
  own.identity.role = Role::kCoordinator;
  for (const std::string text : {"0a3f", "A3F", "0A:3F"}) {
    const Status refused = CheckIsNotOwn(BySerial(text), own);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(ToString(refused),
                AllOf(HasSubstr("serial is a3f"), HasSubstr("spiffe://lab/coordinator/main"),
                      HasSubstr("replace the authority")));
  }
  EXPECT_TRUE(CheckIsNotOwn(BySerial("a3f0"), own).ok());
  EXPECT_TRUE(CheckIsNotOwn(ByIdentity("spiffe://lab/worker/ann"), own).ok());
}

TEST_F(RevocationsTest, TheirNumberIsLimited) {
  for (size_t i = 1; i <= kMostRevocations; ++i) {
    v1::Revocation revocation;
    revocation.set_serial(fmt::format("{:x}", i));
    revocations_.Put(revocation);
  }
  EXPECT_EQ(revocations_.NewRevocation(BySerial("fffff"), "boss", 1).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(revocations_.NewRevocation(BySerial("1"), "boss", 1).ok()) << "it is there already";
}

}  // namespace
}  // namespace troupe
