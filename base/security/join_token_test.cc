#include "base/security/join_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/security/test_certificates.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

JoinToken Example() {
  return {.cluster = "lab.example-1",
          .id = std::string(16, 'a'),
          .secret = std::string(64, '5'),
          .authority_hash = std::string(64, 'f')};
}

TEST(JoinToken, ItsTextIsReadAgain) {
  const JoinToken token = Example();
  const std::string text = ToText(token);
  const auto read = ParseJoinToken(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, token);
  EXPECT_EQ(*ParseJoinToken(" \t" + text + "\r\n"), token);
  JoinToken longest = token;
  longest.cluster = std::string(63, 'c');
  EXPECT_LE(ToText(longest).size(), kMostJoinTokenBytes);
  EXPECT_EQ(*ParseJoinToken(ToText(longest)), longest);
}

TEST(JoinToken, NewOnesDiffer) {
  std::set<std::string> ids, secrets;
  for (int i = 0; i < 20; ++i) {
    const auto token = MakeJoinToken("lab", std::string(64, '0'));
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_EQ(*ParseJoinToken(ToText(*token)), *token);
    ids.insert(token->id);
    secrets.insert(token->secret);
  }
  EXPECT_EQ(ids.size(), 20u);
  EXPECT_EQ(secrets.size(), 20u);
}

TEST(JoinToken, AnythingElseIsRefusedWithoutPartsOfIt) {
  const std::string text = ToText(Example());
  const std::string secret = Example().secret;
  const auto replaced = [&](const std::string& part, const std::string& with) {
    std::string changed = text;
    return changed.replace(changed.find(part), part.size(), with);
  };
  const struct {
    std::string text;
    std::string reason;
  } kCases[] = {
      {"", "it is empty"},
      {" \n", "it is empty"},
      {secret, "does not begin with troupe-join:"},
      {text.substr(0, 60), "is incomplete"},
      {text + ":x", "too many parts"},
      {replaced(":1:", ":2:"), "another version"},
      {replaced("lab", "l b"), "its cluster"},
      {replaced("lab.example-1", ""), "its cluster"},
      {replaced("aaaa", "aaa"), "its id is damaged"},
      {replaced("aaaa", "AAAA"), "its id is damaged"},
      {replaced("5555", "555"), "its secret is damaged"},
      {replaced("5555", "555g"), "its secret is damaged"},
      {text.substr(0, text.size() - 1), "the hash of its authority is damaged"},
      {text + std::string(1000, 'f'), "too long"},
  };
  for (const auto& [refused, reason] : kCases) {
    const auto read = ParseJoinToken(refused);
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << reason;
    EXPECT_THAT(ToString(read.status()), HasSubstr(reason));
    EXPECT_THAT(ToString(read.status()), Not(HasSubstr("5555")));
  }
}

TEST(JoinToken, TheHashesOfItsSecretAreThoseOfSha256) {
  EXPECT_EQ(*SecretHash({.secret = "abc"}),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(SameHash("ab", "ab"));
  EXPECT_FALSE(SameHash("ab", "ac"));
  EXPECT_FALSE(SameHash("ab", "abc"));
}

TEST(CertificateHash, FindsACertificateAmongOthers) {
  const TestAuthority first("lab"), second("lab");
  const std::string both = first.pem() + second.pem();
  const std::string hash = *CertificateHash(second.pem());
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(*CertificateHash(both), *CertificateHash(first.pem()));
  EXPECT_NE(hash, *CertificateHash(first.pem()));
  EXPECT_EQ(*CertificateWithHash(both, hash), second.pem());
  EXPECT_EQ(CertificateWithHash(first.pem(), hash).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(CertificateWithHash("x", hash).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
