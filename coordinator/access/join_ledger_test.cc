#include "coordinator/access/join_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/store/memory_store.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MovedClock final : public Clock {
 public:
  MonotonicTime Now() const override { return MonotonicTime(std::chrono::seconds(seconds)); }
  int64_t WallNanoseconds() const override { return seconds * 1'000'000'000; }
  int64_t seconds = 1'000'000;
};

class JoinLedgerTest : public ::testing::Test {
 protected:
  JoinToken Add(const std::string& worker = "", int64_t lifetime = kDefaultJoinTokenSeconds) {
    const auto token = MakeJoinToken("lab", std::string(64, 'a'));
    EXPECT_TRUE(token.ok()) << ToString(token.status());
    v1::JoinTokenRecord record;
    record.set_worker(worker);
    record.set_expire_seconds(clock_.seconds + lifetime);
    const Status added = ledger_->Add(*token, record);
    EXPECT_TRUE(added.ok()) << ToString(added);
    return *token;
  }

  StatusOr<std::string> Redeem(const JoinToken& token, const std::string& name = "") {
    return ledger_->Redeem(token, name, [](const std::string& who) -> StatusOr<std::string> {
      return "certificate of " + who;
    });
  }
  Status Refused(const JoinToken& token, const std::string& name = "") {
    return Redeem(token, name).status();
  }

  void Restart() { ledger_ = std::make_unique<JoinLedger>(store_, clock_); }

  MovedClock clock_;
  MemoryStore store_;
  std::unique_ptr<JoinLedger> ledger_ = std::make_unique<JoinLedger>(store_, clock_);
};

TEST_F(JoinLedgerTest, ATokenIsGoodOnceAlsoAfterACrash) {
  const JoinToken token = Add();
  store_.Crash(1);
  Restart();
  EXPECT_EQ(*Redeem(token, "worker-0"), "certificate of worker-0");
  store_.Crash(2);
  Restart();
  const Status refused = Refused(token, "worker-1");
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(ToString(refused), AllOf(HasSubstr(token.id), HasSubstr("was used at 1970-01-12")));
}

TEST_F(JoinLedgerTest, OfConcurrentUsesOneSucceeds) {
  const JoinToken token = Add();
  std::atomic<int> succeeded = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto joined = Redeem(token, "worker-" + std::to_string(i));
      if (joined.ok()) {
        ++succeeded;
      } else if (joined.status().code() == StatusCode::kPermissionDenied) {
        ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(succeeded, 1);
  EXPECT_EQ(refused, 7);
}

TEST_F(JoinLedgerTest, AUseThatCannotBeStoredIsNoSuccess) {
  const JoinToken token = Add();
  store_.FailWrites(1);
  EXPECT_EQ(Refused(token, "w").code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Redeem(token, "w").ok());
}

TEST_F(JoinLedgerTest, ATokenForWhichNothingIsSignedIsNotUsed) {
  const JoinToken token = Add();
  const auto failed = ledger_->Redeem(token, "w", [](const std::string&) {
    return StatusOr<std::string>(InvalidArgument("a weak key"));
  });
  EXPECT_EQ(failed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Redeem(token, "w").ok());
}

TEST_F(JoinLedgerTest, ATokenExpires) {
  const JoinToken token = Add("", 600);
  clock_.seconds += 599;
  EXPECT_EQ(Refused(token).code(), StatusCode::kInvalidArgument);  // only the name is missing
  clock_.seconds += 1;
  const Status refused = Refused(token, "w");
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(ToString(refused), HasSubstr("expired at 1970-01-12"));
  // It is forgotten with the first token that is made a day later.
  clock_.seconds += 86399;
  Add();
  EXPECT_THAT(ToString(Refused(token, "w")), HasSubstr("expired"));
  clock_.seconds += 1;
  Add();
  EXPECT_THAT(ToString(Refused(token, "w")), HasSubstr("is not known"));
}

TEST_F(JoinLedgerTest, TheNameIsThatOfTheTokenOrTheOneThatIsRequested) {
  const JoinToken bound = Add("worker-0");
  const Status other = Refused(bound, "worker-1");
  EXPECT_EQ(other.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(ToString(other), HasSubstr("for the worker \"worker-0\", not for \"worker-1\""));
  EXPECT_EQ(*Redeem(bound), "certificate of worker-0");
  const JoinToken unbound = Add();
  EXPECT_EQ(Refused(unbound).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused(unbound, "a/b").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(*Redeem(unbound, "worker-1"), "certificate of worker-1");
}

TEST_F(JoinLedgerTest, WrongSecretsAreLimitedButGoodTokensAreNot) {
  const JoinToken token = Add();
  JoinToken guess = token;
  guess.secret = std::string(64, '0');
  JoinToken unknown = token;
  unknown.id = std::string(16, '0');
  for (int i = 0; i < 5; ++i) {
    for (const JoinToken& wrong : {guess, unknown}) {
      const Status refused = Refused(wrong, "w");
      EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
      EXPECT_THAT(ToString(refused), HasSubstr("is not one of this coordinator"));
    }
  }
  EXPECT_EQ(Refused(guess, "w").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Refused(unknown, "w").code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Redeem(token, "w").ok());
  clock_.seconds += 60;
  EXPECT_EQ(Refused(guess, "w").code(), StatusCode::kPermissionDenied);
}

TEST_F(JoinLedgerTest, TheCatalogHasNoSecret) {
  const JoinToken token = Add("worker-0");
  const std::string value = *store_.Get("join_token/" + token.id);
  EXPECT_EQ(value.find(token.secret), std::string::npos);
  EXPECT_NE(value.find(*SecretHash(token)), std::string::npos);
}

}  // namespace
}  // namespace troupe
