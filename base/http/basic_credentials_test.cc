#include "base/http/basic_credentials.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

TEST(BasicCredentials, TheFirstColonEndsTheUser) {
  struct Case {
    const char* header;
    const char* user;
    const char* password;
  };
  const Case cases[] = {{"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"},
                        {"bASIC YTpi", "a", "b"},
                        {"Basic   YTpi", "a", "b"},
                        {"Basic YTpiOmM=", "a", "b:c"},
                        {"Basic Og==", "", ""},
                        {"Basic OmI=", "", "b"},
                        {"Basic YTo=", "a", ""},
                        {"Basic dGVzdDoxMjPCow==", "test", "123\xC2\xA3"},  // RFC 7617, section 2.1
                        {"Basic Ojw/Pz4+", "", "<\?\?>>"}};
  for (const Case& row : cases) {
    const auto credentials = ParseBasic(row.header);
    ASSERT_TRUE(credentials) << row.header;
    EXPECT_EQ(credentials->user, row.user) << row.header;
    EXPECT_EQ(credentials->password, row.password) << row.header;
  }
}

TEST(BasicCredentials, AnotherSchemeOrNoSchemeIsNone) {
  for (const char* header : {"", "Basic", "Basic ", "Basic    ", "YTpi", "BasicYTpi", "Basic\tYTpi",
                             "Bearer YTpi", "Basi YTpi", " Basic YTpi", "Digest username=\"a\""}) {
    EXPECT_FALSE(ParseBasic(header)) << header;
  }
}

TEST(BasicCredentials, OnlyTheBase64OfAnEncoderIsAccepted) {
  for (const char* encoded : {"YTpiOmM",    "YTpiOmM==",
                              "YTpiOmN=",   "YTp",
                              "YTpi=",      "YTpi====",
                              "====",       "=",
                              "YT=pi",      "YT==pi",
                              "Y=Tp",       "YTp i",
                              "YTpi ",      "YTpi YTpi",
                              "YTpi\tYTp",  "YTpi\n",
                              "YTpi,",      "YTp-",
                              "YT_i",       "----",
                              "Oh==",       "YTpi\xC3\xA4\xC3\xA4",
                              "YTpiYTpi-",  "\tYTpi",
                              "YTpi\r\nYTp"}) {
    EXPECT_FALSE(ParseBasic("Basic " + std::string(encoded))) << encoded;
  }
  EXPECT_FALSE(ParseBasic(std::string("Basic YTp\0YTpi", 14)));
}

TEST(BasicCredentials, ATextThatIsNoCredentialsIsRefused) {
  for (const char* encoded : {
           "YWI=",      // no colon
           "AGE6Yg==",  // a zero
           "YTpiAA==",  // a zero at the end
           "YToKYg==",  // a newline
           "YTpiDQ==",  // a carriage return
           "YQk6Yg==",  // a tab
           "YTp/",      // DEL
           "YTr/",      // not UTF-8
           "YTrCgA==",  // U+0080
       }) {
    EXPECT_FALSE(ParseBasic("Basic " + std::string(encoded))) << encoded;
  }
}

TEST(BasicCredentials, TheirLengthIsLimited) {
  std::string most = "OmFh";  // an empty user, and "aa"
  while (most.size() < kMostBasicBytes) most += "YWFh";
  const auto credentials = ParseBasic("Basic " + most);
  ASSERT_TRUE(credentials);
  EXPECT_EQ(credentials->password, std::string(kMostBasicBytes / 4 * 3 - 1, 'a'));
  EXPECT_FALSE(ParseBasic("Basic " + most + "YWFh"));
}

}  // namespace
}  // namespace troupe
