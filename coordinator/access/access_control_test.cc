#include "coordinator/access/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/security/test_certificates.h"
#include "base/store/memory_store.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A wall clock that the test sets.
class WallClock final : public Clock {
 public:
  MonotonicTime Now() const override { return {}; }
  int64_t WallNanoseconds() const override { return seconds * 1'000'000'000; }
  std::atomic<int64_t> seconds = WallSeconds(SystemClock());
};

class AccessControlTest : public testing::Test {
 protected:
  AccessControlTest() { Start(); }

  void Start() {
    access_.reset();
    if (audit_ == nullptr) {
      auto audit = AuditLog::Open(directory_.Child("audit.log"), clock_);
      EXPECT_TRUE(audit.ok()) << audit.status();
      audit_ = *std::move(audit);
    }
    auto access = AccessControl::Open("lab", store_, clock_, *audit_);
    ASSERT_TRUE(access.ok()) << access.status();
    access_ = *std::move(access);
  }

  static v1::CreateUserTokenRequest Request(const std::string& role) {
    v1::CreateUserTokenRequest request;
    request.set_name("ann");
    request.set_role(role);
    request.set_lifetime_seconds(60);
    return request;
  }
  // Returns the metadata of a call with a new token.
  std::string Create(const std::string& role) {
    const auto parts = MakeUserToken("lab");
    const auto created = access_->CreateToken(Request(role), *parts, "boss");
    EXPECT_TRUE(created.ok()) << created.status();
    return "Bearer " + UserTokenText(*parts);
  }
  StatusOr<Caller> Call(const std::string& certificate,
                        const std::vector<std::string>& authorizations) const {
    return access_->Authenticate(certificate, authorizations);
  }
  // Returns the caller's guard, whose end adds the message to `ends_`.
  std::unique_ptr<StreamGuard> Guard(const Caller& caller) {
    auto guard = access_->Guard(
        {caller, "/watch", [this](const Status& reason) { ends_.push_back(ToString(reason)); }});
    EXPECT_TRUE(guard.ok()) << guard.status();
    return guard.ok() ? *std::move(guard) : nullptr;
  }

  const TemporaryDirectory directory_;
  WallClock clock_;
  MemoryStore store_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<AccessControl> access_;
  const TestAuthority authority_;
  std::vector<std::string> ends_;
};

TEST_F(AccessControlTest, ACallHasACertificateOrAToken) {
  const std::string certificate = authority_.Issue(Role::kWorker, "w").certificate;
  const std::string token = Create("submitter");
  EXPECT_EQ(AuditNameOf(*Call(certificate, {})), "spiffe://lab/worker/w");
  EXPECT_EQ(ToUri(*Call("", {token})->identity), "spiffe://lab/submitter/ann");
  EXPECT_TRUE(Call("", {"bEARER" + token.substr(6)}).ok()) << "schemes have no case";
  const auto refusal = [this](const std::string& pem, const std::vector<std::string>& values) {
    const Status status = Call(pem, values).status();
    EXPECT_EQ(status.code(), StatusCode::kUnauthenticated);
    return ToString(status);
  };
  const auto anonymous = Call("", {});
  ASSERT_TRUE(anonymous.ok()) << anonymous.status();
  EXPECT_FALSE(anonymous->identity.has_value());
  EXPECT_EQ(AuditNameOf(*anonymous), "anonymous");
  EXPECT_EQ(access_->Guard({*anonymous, "/watch", {}}).status().code(),
            StatusCode::kUnauthenticated);
  EXPECT_THAT(refusal(certificate, {token}), HasSubstr("a certificate and a token"));
  EXPECT_THAT(refusal("", {token, token}), HasSubstr("2 tokens"));
  for (const std::string& value :
       {std::string(), std::string("Bearer"), std::string("Bearer "), "Basic" + token.substr(6)})
    EXPECT_THAT(refusal("", {value}), Not(HasSubstr(token.substr(20)))) << value;
}

TEST_F(AccessControlTest, ARefusedTokenIsKnownByItsIdAloneAndOnlyIfItHasOne) {
  const auto parts = MakeUserToken("lab");
  const std::string text = UserTokenText(*parts);
  const std::string claimed = "token:" + parts->id;
  const auto of = [](const std::vector<std::string>& values) { return ClaimedToken(values); };
  EXPECT_EQ(of({"Bearer " + text}), claimed);
  EXPECT_EQ(of({"bEARER " + text}), claimed);
  for (const std::string& value : {std::string(), "Bearer " + text + "0", "Basic " + text, text,
                                   "Bearer " + text.substr(0, text.size() - 1)})
    EXPECT_EQ(of({value}), "") << value;
  EXPECT_EQ(of({}), "");
  EXPECT_EQ(of({"Bearer " + text, "Bearer " + text}), "");
}

TEST_F(AccessControlTest, TokensAndRevocationsSurviveARestartAndACrash) {
  const std::string kept = Create("viewer"), revoked = Create("viewer");
  const std::string id = Call("", {revoked})->token_id;
  ASSERT_TRUE(access_->RevokeToken(id, "boss").ok());
  const std::string certificate = authority_.Issue(Role::kWorker, "w").certificate;
  v1::RevokeCertificateRequest request;
  request.set_identity("spiffe://lab/worker/w");
  ASSERT_TRUE(access_->RevokeCertificate(request, "boss").ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Call("", {kept}).ok());
    EXPECT_THAT(ToString(Call("", {revoked}).status()), HasSubstr("was revoked"));
    EXPECT_THAT(ToString(Call(certificate, {}).status()), HasSubstr("was revoked"));
    EXPECT_EQ(access_->ListTokens().size(), 2u);
    EXPECT_EQ(access_->ListRevocations().size(), 1u);
    store_.Crash(static_cast<uint64_t>(i));
    Start();
  }
}

TEST_F(AccessControlTest, AChangeThatIsNotStoredDoesNotHappen) {
  const std::string token = Create("viewer");
  const std::string id = Call("", {token})->token_id;
  store_.FailWrites(2);
  const auto parts = MakeUserToken("lab");
  EXPECT_EQ(access_->CreateToken(Request("viewer"), *parts, "boss").status().code(),
            StatusCode::kUnavailable);
  EXPECT_FALSE(Call("", {"Bearer " + UserTokenText(*parts)}).ok());
  EXPECT_EQ(access_->RevokeToken(id, "boss").status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Call("", {token}).ok());
}

TEST_F(AccessControlTest, OnlyTheCoordinatorsClockCounts) {
  const std::string token = Create("viewer");
  clock_.seconds += 59;
  EXPECT_TRUE(Call("", {token}).ok());
  clock_.seconds += 1;
  EXPECT_THAT(ToString(Call("", {token}).status()), HasSubstr("expired"));
  // A clock that is set back makes it valid again: expiry is no revocation.
  clock_.seconds -= 60;
  EXPECT_TRUE(Call("", {token}).ok());
}

TEST_F(AccessControlTest, AnOpenStreamEndsOnceWhenItsTokenExpires) {
  const auto guard = Guard(*Call("", {Create("viewer")}));
  access_->EndExpiredStreams();
  EXPECT_TRUE(ends_.empty());
  clock_.seconds += 60;
  access_->EndExpiredStreams();
  access_->EndExpiredStreams();
  EXPECT_THAT(ends_, ElementsAre(AllOf(HasSubstr("UNAUTHENTICATED"), HasSubstr("expired"))));
  const auto log = ReadTextFile(directory_.Child("audit.log"));
  EXPECT_THAT(*log, AllOf(HasSubstr("DENIED"), HasSubstr(" ann\""), HasSubstr("/watch")));
}

TEST_F(AccessControlTest, AnOpenStreamEndsAtOnceWhenItsTokenOrCertificateIsRevoked) {
  const Caller holder = *Call("", {Create("viewer")});
  const Caller worker = *Call(authority_.Issue(Role::kWorker, "w").certificate, {});
  const Caller other = *Call(authority_.Issue(Role::kWorker, "v").certificate, {});
  const auto first = Guard(holder), second = Guard(worker), third = Guard(other);
  ASSERT_TRUE(access_->RevokeToken(holder.token_id, "boss").ok());
  EXPECT_THAT(ends_, ElementsAre(HasSubstr("was revoked")));
  v1::RevokeCertificateRequest request;
  request.set_serial(worker.certificate->serial);
  ASSERT_TRUE(access_->RevokeCertificate(request, "boss").ok());
  EXPECT_THAT(ends_, ElementsAre(HasSubstr("token"), HasSubstr("spiffe://lab/worker/w")));
  // A stream that begins after its caller was revoked is refused.
  EXPECT_EQ(access_->Guard({worker, "/watch", nullptr}).status().code(),
            StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, AStreamThatHasEndedIsNotEndedAgain) {
  Guard(*Call("", {Create("viewer")})).reset();
  clock_.seconds += 60;
  access_->EndExpiredStreams();
  EXPECT_TRUE(ends_.empty());
}

TEST_F(AccessControlTest, WithoutTlsThereIsNothingToChange) {
  const auto plain = AccessControl::Open("", store_, clock_, *audit_);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ((*plain)->CreateToken(Request("viewer"), *MakeUserToken("a"), "b").status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ((*plain)->RevokeToken("0123456789abcdef", "b").status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ((*plain)->RevokeCertificate({}, "b").status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(AccessControlTest, NoSecretIsInTheCatalogOrTheAuditLog) {
  const std::string token = Create("viewer");
  const std::string secret = token.substr(token.size() - 64);
  const auto guard = Guard(*Call("", {token}));
  clock_.seconds += 60;
  access_->EndExpiredStreams();
  EXPECT_THAT(*ReadTextFile(directory_.Child("audit.log")), Not(HasSubstr(secret)));
  EXPECT_TRUE(ScanPrefix(store_, "", [&](std::string_view, std::string_view value) {
                EXPECT_EQ(value.find(secret), std::string_view::npos);
                return true;
              }).ok());
}

}  // namespace
}  // namespace troupe
