#include "coordinator/access/token_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kTokenNow = 1'000'000'000;
constexpr int64_t kTokenHour = 3600;

v1::CreateUserTokenRequest TokenRequest(const std::string& name, const std::string& role,
                                        int64_t lifetime = kTokenHour) {
  v1::CreateUserTokenRequest request;
  request.set_name(name);
  request.set_role(role);
  request.set_lifetime_seconds(lifetime);
  return request;
}

class TokenTableTest : public testing::Test {
 protected:
  // Adds a token and returns its text.
  std::string Create(const std::string& name, const std::string& role, const std::string& id = "") {
    auto parts = MakeUserToken("lab");
    EXPECT_TRUE(parts.ok()) << parts.status();
    if (!id.empty()) parts->id = id;
    const auto record = table_.NewRecord(TokenRequest(name, role), *parts, "boss", kTokenNow);
    EXPECT_TRUE(record.ok()) << record.status();
    table_.Put(*record);
    return UserTokenText(*parts);
  }
  Status Refusal(const std::string& text, int64_t now = kTokenNow) const {
    const Status status = table_.Authenticate(text, now).status();
    EXPECT_EQ(status.code(), StatusCode::kUnauthenticated) << status;
    EXPECT_THAT(ToString(status), HasSubstr("the token of this call is not accepted"));
    if (text.size() > 64) {
      EXPECT_THAT(ToString(status), Not(HasSubstr(text.substr(text.size() - 64))));
    }
    return status;
  }

  TokenTable table_{"lab"};
};

TEST_F(TokenTableTest, AHolderHasTheNameAndTheRoleOfTheToken) {
  for (const std::string role : {"viewer", "submitter", "operator"}) {
    const auto caller = table_.Authenticate(Create("ann", role), kTokenNow);
    ASSERT_TRUE(caller.ok()) << caller.status();
    EXPECT_EQ(ToUri(*caller->identity), "spiffe://lab/" + role + "/ann");
    EXPECT_EQ(caller->expires, kTokenNow + kTokenHour);
    EXPECT_FALSE(caller->certificate.has_value());
    EXPECT_EQ(AuditNameOf(*caller), "token:" + caller->token_id + " ann");
  }
}

TEST_F(TokenTableTest, ARecordHasTheHashOfTheSecretAlone) {
  const auto parts = MakeUserToken("lab");
  const auto record = table_.NewRecord(TokenRequest("ann", "viewer"), *parts, "boss", kTokenNow);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->SerializeAsString().find(parts->secret), std::string::npos);
  EXPECT_EQ(record->secret_hash(), HashOfSecret(parts->secret));
  EXPECT_EQ(record->token().created_by(), "boss");
}

TEST_F(TokenTableTest, ItIsValidUntilItsExpiryByTheGivenClock) {
  const std::string text = Create("ann", "viewer");
  EXPECT_TRUE(table_.Authenticate(text, kTokenNow + kTokenHour - 1).ok());
  EXPECT_THAT(ToString(Refusal(text, kTokenNow + kTokenHour)),
              AllOf(HasSubstr("of ann expired at 2001-09-09T02:46:40Z"),
                    HasSubstr("it is 2001-09-09T02:46:40Z")));
  const std::string id = ParseUserToken(text)->id;
  EXPECT_TRUE(table_.CheckStillValid(id, kTokenNow + kTokenHour - 1).ok());
  EXPECT_EQ(table_.CheckStillValid(id, kTokenNow + kTokenHour).code(),
            StatusCode::kUnauthenticated);
}

TEST_F(TokenTableTest, ARevokedOneIsRefusedForEver) {
  const std::string text = Create("ann", "viewer");
  const std::string id = ParseUserToken(text)->id;
  const auto revoked = table_.RevokedRecord(id.substr(12), "boss", kTokenNow + 1);
  ASSERT_TRUE(revoked.ok()) << revoked.status();
  EXPECT_TRUE(table_.Authenticate(text, kTokenNow + 1).ok()) << "only Put changes the table";
  table_.Put(*revoked);
  EXPECT_THAT(ToString(Refusal(text)), HasSubstr("was revoked at 2001-09-09T01:46:41Z"));
  EXPECT_EQ(table_.CheckStillValid(id, kTokenNow).code(), StatusCode::kUnauthenticated);
  // The first revocation counts.
  const auto again = table_.RevokedRecord(id, "other", kTokenNow + 9);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->token().revoked(), kTokenNow + 1);
  EXPECT_EQ(again->token().revoked_by(), "boss");
}

TEST_F(TokenTableTest, AnUnknownIdAndAWrongSecretAreRefusedWithTheSameWords) {
  const std::string known = Create("ann", "viewer");
  const std::string other = UserTokenText(*MakeUserToken("lab"));
  auto wrong = *ParseUserToken(known);
  wrong.secret = ParseUserToken(other)->secret;
  EXPECT_EQ(ToString(Refusal(other)), ToString(Refusal(UserTokenText(wrong))));
  // An expired or revoked token does not differ from them for a caller without its secret.
  EXPECT_EQ(ToString(Refusal(UserTokenText(wrong), kTokenNow + 2 * kTokenHour)),
            ToString(Refusal(other)));
  table_.Put(*table_.RevokedRecord(wrong.id, "boss", kTokenNow));
  EXPECT_EQ(ToString(Refusal(UserTokenText(wrong))), ToString(Refusal(other)));
}

TEST_F(TokenTableTest, MalformedTruncatedAndForeignOnesAreRefused) {
  const std::string text = Create("ann", "viewer");
  for (const std::string& damaged :
       {std::string(), std::string("x"), text.substr(0, text.size() - 1), text + "0",
        "Bearer " + text}) {
    EXPECT_THAT(ToString(Refusal(damaged)), HasSubstr("the form troupe~CLUSTER~ID~SECRET"));
  }
  EXPECT_THAT(ToString(Refusal(UserTokenText(*MakeUserToken("field")))),
              HasSubstr("one of the cluster field, and this is the cluster lab"));
}

TEST_F(TokenTableTest, ANewOneIsRefusedByTheNameOfTheFieldThatIsWrong) {
  const auto parts = *MakeUserToken("lab");
  const auto refusal = [&](const v1::CreateUserTokenRequest& request) {
    const Status status = table_.NewRecord(request, parts, "boss", kTokenNow).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    return ToString(status);
  };
  EXPECT_THAT(refusal(TokenRequest("", "viewer")), HasSubstr("name is \"\""));
  EXPECT_THAT(refusal(TokenRequest("a b", "viewer")), HasSubstr("name is \"a b\""));
  EXPECT_THAT(refusal(TokenRequest("ann", "boss")), HasSubstr("role: \"boss\" is not a role"));
  for (const std::string role : {"worker", "coordinator"})
    EXPECT_THAT(refusal(TokenRequest("ann", role)), HasSubstr("needs a certificate"));
  for (const int64_t lifetime : {int64_t{-1}, int64_t{0}, kMostTokenSeconds + 1}) {
    EXPECT_THAT(refusal(TokenRequest("ann", "viewer", lifetime)),
                HasSubstr(fmt::format("lifetime_seconds is {}", lifetime)));
  }
}

TEST_F(TokenTableTest, RevokingNamesOneTokenByTheEndOfItsId) {
  Create("ann", "viewer", "00000000000a1234");
  Create("bob", "viewer", "00000000000b1234");
  EXPECT_EQ(table_.RevokedRecord("234", "boss", 1).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(table_.RevokedRecord("1234", "boss", 1).status()),
              HasSubstr("several tokens"));
  EXPECT_EQ(table_.RevokedRecord("5555", "boss", 1).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(table_.RevokedRecord("b1234", "boss", 1)->token().name(), "bob");
}

TEST_F(TokenTableTest, TheyAreListedByAgeAndForgottenSomeTimeAfterTheirExpiry) {
  const std::string text = Create("ann", "viewer");
  const std::string id = ParseUserToken(text)->id;
  const auto later = table_.NewRecord(TokenRequest("bob", "operator"), *MakeUserToken("lab"),
                                      "boss", kTokenNow + 5);
  table_.Put(*later);
  const auto listed = table_.List();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].name(), "ann");
  EXPECT_EQ(listed[1].name(), "bob");
  const int64_t forgotten = kTokenNow + kTokenHour + kForgetTokenSeconds;
  EXPECT_TRUE(table_.ForgottenIds(forgotten - 1).empty());
  EXPECT_EQ(table_.ForgottenIds(forgotten), std::vector<std::string>{id});
  table_.Remove(id);
  EXPECT_EQ(table_.List().size(), 1u);
}

TEST_F(TokenTableTest, TheirNumberIsLimited) {
  for (size_t i = 0; i < kMostUserTokens; ++i) Create("ann", "viewer", fmt::format("{:016x}", i));
  const auto parts = *MakeUserToken("lab");
  const auto request = TokenRequest("ann", "viewer");
  EXPECT_EQ(table_.NewRecord(request, parts, "boss", kTokenNow).status().code(),
            StatusCode::kResourceExhausted);
  const int64_t later = kTokenNow + kTokenHour + kForgetTokenSeconds;
  EXPECT_TRUE(table_.NewRecord(request, parts, "boss", later).ok());
}

}  // namespace
}  // namespace troupe
