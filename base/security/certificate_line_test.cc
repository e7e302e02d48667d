#include "base/security/certificate_line.h"

#include <gtest/gtest.h>

#include <set>

#include "base/security/authority.h"
#include "base/security/certificate.h"
#include "base/security/signing_request.h"

namespace troupe {
namespace {

TEST(CertificateLine, EveryDescendantIsOfTheLineAndHasASerialNumberOfItsOwn) {
  for (const std::string first : {"0a3f", "1", "7fffffffffffffffffffffffffffffff",
                                  "5452000000000000000000000000000000000001"}) {
    std::set<std::string> serials = {first};
    std::string serial = first;
    for (int i = 0; i < 20; ++i) {
      serial = *SerialOfRenewal(i % 2 == 0 ? serial : first);
      EXPECT_EQ(serial.size(), 40u);
      EXPECT_EQ(LineOf(serial), LineOf(first));
      serials.insert(serial);
    }
    EXPECT_EQ(serials.size(), 21u);
  }
}

TEST(CertificateLine, OtherCertificatesAreOfOtherLines) {
  EXPECT_NE(LineOf("0a3f"), LineOf("0a3e"));
  EXPECT_NE(LineOf(*SerialOfRenewal("0a3f")), LineOf(*SerialOfRenewal("0a3e")));
  EXPECT_EQ(LineOf("0a3f"), LineOf("a3f")) << "zeros in front are no part of a number";
  EXPECT_EQ(LineOf("000a3f"), LineOf("a3f"));
}

TEST(CertificateLine, ACertificateGetsTheSerialNumberThatIsAskedFor) {
  const int64_t now = 1'800'000'000;
  const auto authority = MakeAuthority("lab", now);
  ASSERT_TRUE(authority.ok()) << authority.status();
  CertificateRequest contents{.common_name = "w",
                              .uris = {"spiffe://lab/worker/w"},
                              .not_before = now,
                              .not_after = now + 60,
                              .serial = *SerialOfRenewal("0a3f")};
  const auto made = SignRequestedKey(*authority, MakeSigningRequest()->request, contents);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(ReadCertificate(*made)->serial, contents.serial);
  for (const std::string& wrong : {std::string("x"), std::string("0a3g"), std::string("-5"),
                                   std::string("0"), std::string(42, '1')}) {
    contents.serial = wrong;
    EXPECT_EQ(SignRequestedKey(*authority, MakeSigningRequest()->request, contents).status().code(),
              StatusCode::kInvalidArgument)
        << wrong;
  }
}

}  // namespace
}  // namespace troupe
