#include "base/security/user_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(UserToken, ATextIsReadAsItWasMade) {
  const auto made = MakeUserToken("lab-3.b_c");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->id.size(), 16u);
  EXPECT_EQ(made->secret.size(), 64u);
  const auto read = ParseUserToken(UserTokenText(*made));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cluster, "lab-3.b_c");
  EXPECT_EQ(read->id, made->id);
  EXPECT_EQ(read->secret, made->secret);
}

TEST(UserToken, NoTwoAreEqual) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const auto made = MakeUserToken("lab");
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(seen.insert(made->id).second);
    EXPECT_TRUE(seen.insert(made->secret).second);
  }
}

TEST(UserToken, EveryPrefixOfATextAndOtherDamageIsRefusedWithoutRepeatingIt) {
  const std::string text = UserTokenText(*MakeUserToken("lab"));
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(ParseUserToken(text.substr(0, size)).ok()) << size;
  for (const std::string& damaged :
       {text + "0", " " + text, text + "\n", "troupf" + text.substr(6), text + "~",
        "troupe~a/b" + text.substr(10), "troupe~" + text.substr(10)}) {
    const Status refused = ParseUserToken(damaged).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << damaged;
    EXPECT_THAT(ToString(refused), Not(HasSubstr(text.substr(text.size() - 8)))) << damaged;
  }
  std::string upper = text;
  upper.back() = 'A';
  EXPECT_FALSE(ParseUserToken(upper).ok());
}

TEST(UserToken, HashesAreThoseOfSha256) {
  const std::string hash = HashOfSecret("abc");
  EXPECT_EQ(hash.substr(0, 4), "\xba\x78\x16\xbf");
  EXPECT_TRUE(AreEqualHashes(hash, HashOfSecret("abc")));
  EXPECT_FALSE(AreEqualHashes(hash, HashOfSecret("abd")));
  EXPECT_FALSE(AreEqualHashes(hash, ""));
}

class TokenFileTest : public testing::Test {
 protected:
  void Write(const std::string& text, mode_t mode) const {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  const TemporaryDirectory directory_;
  const std::string path_ = directory_.Child("token");
  const std::string text_ = UserTokenText(*MakeUserToken("lab"));
};

TEST_F(TokenFileTest, ItsTextIsReadWithoutTheWhiteSpaceAroundIt) {
  for (const mode_t mode : {0600, 0400}) {
    Write("\n " + text_ + " \r\n", mode);
    const auto read = ReadTokenFile(path_);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, text_);
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  }
}

TEST_F(TokenFileTest, AFileThatOthersMayUseIsRefusedWithItsMode) {
  for (const mode_t mode : {0640, 0604, 0620, 0644}) {
    Write(text_, mode);
    const Status refused = ReadTokenFile(path_).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(ToString(refused), AllOf(HasSubstr(path_), HasSubstr(fmt::format("{:04o}", mode)),
                                         HasSubstr("chmod 600"), Not(HasSubstr(text_))));
  }
}

TEST_F(TokenFileTest, AFileWithoutATokenIsRefusedByItsName) {
  EXPECT_EQ(ReadTokenFile(path_).status().code(), StatusCode::kNotFound);
  for (const std::string& text : {std::string(), std::string(" \n"), text_.substr(1),
                                  std::string(5000, 'a'), text_ + "\n" + text_}) {
    Write(text, 0600);
    const Status refused = ReadTokenFile(path_).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << text.size();
    EXPECT_THAT(ToString(refused), HasSubstr(path_));
  }
  EXPECT_FALSE(ReadTokenFile(directory_.path()).ok());
}

}  // namespace
}  // namespace troupe
