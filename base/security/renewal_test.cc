#include "base/security/renewal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/clock.h"
#include "base/security/authority.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kHourSeconds = 3600;
constexpr int64_t kSigned = 1'000'000;  // when the certificate was signed

CertificateFacts Facts(const std::string& serial, int64_t life) {
  return {.identity = {"lab", Role::kWorker, "w"},
          .not_before = kSigned - kMostClockSkew,
          .not_after = kSigned + life,
          .serial = serial};
}

TEST(WhenToRenew, IsAfterTwoThirdsOfTheLifeOrShortlyBefore) {
  const int64_t begin = kSigned - kMostClockSkew;
  EXPECT_EQ(WhenToRenew(begin, kSigned + 60000, kSigned, 0), kSigned + 40000);
  EXPECT_EQ(WhenToRenew(begin, kSigned + 60000, kSigned, 0.5), kSigned + 38500);
  for (const double uniform : {0.0, 0.25, 0.999}) {
    const int64_t when = WhenToRenew(begin, kSigned + 60000, kSigned, uniform);
    EXPECT_GE(when, kSigned + 37000);
    EXPECT_LE(when, kSigned + 40000);
  }
}

TEST(WhenToRenew, IsNowIfItIsOverdueOrTheLifeIsTooShort) {
  const int64_t begin = kSigned - kMostClockSkew;
  EXPECT_EQ(WhenToRenew(begin, kSigned + 60000, kSigned + 50000, 0), kSigned + 50000);
  EXPECT_EQ(WhenToRenew(begin, kSigned + 60000, kSigned + 90000, 0), kSigned + 90000);
  EXPECT_EQ(WhenToRenew(kSigned, kSigned + 10, kSigned, 0), kSigned + 10);
  EXPECT_EQ(WhenToRenew(begin, kSigned + 9, kSigned, 0), kSigned + 6);
  // It was signed while a clock was ahead.
  EXPECT_EQ(WhenToRenew(begin, kSigned + 60000, begin - 1, 0), begin - 1);
}

TEST(SecondsUntilRetry, DoublesUpToTheLongestAndIsSpread) {
  EXPECT_EQ(SecondsUntilRetry(1, 300, 0), 1);
  EXPECT_EQ(SecondsUntilRetry(2, 300, 0), 2);
  EXPECT_EQ(SecondsUntilRetry(5, 300, 0), 16);
  EXPECT_EQ(SecondsUntilRetry(5, 300, 0.5), 12);
  EXPECT_EQ(SecondsUntilRetry(20, 300, 0), 300);
  EXPECT_EQ(SecondsUntilRetry(2'000'000'000, 300, 0), 300);
  EXPECT_EQ(SecondsUntilRetry(1, 300, 0.999), 1);
}

class RenewalTest : public testing::Test {
 protected:
  double uniform_ = 0;
  Renewal renewal_{[this] { return uniform_; }};
};

TEST_F(RenewalTest, IsDueOnceAndAgainForANewCertificate) {
  const CertificateFacts first = Facts("1", 60000);
  EXPECT_FALSE(renewal_.IsDue(first, kSigned));
  EXPECT_FALSE(renewal_.IsDue(first, kSigned + 39999));
  uniform_ = 0.9;  // the time of one certificate is drawn once
  EXPECT_FALSE(renewal_.IsDue(first, kSigned + 39999));
  EXPECT_TRUE(renewal_.IsDue(first, kSigned + 40000));
  EXPECT_FALSE(renewal_.IsDue(Facts("2", 90000), kSigned + 40000));
}

TEST_F(RenewalTest, FailuresPauseAndTheirWarningsAreHourly) {
  const CertificateFacts facts = Facts("1", 24 * kHourSeconds);
  int64_t now = kSigned + 16 * kHourSeconds;
  ASSERT_TRUE(renewal_.IsDue(facts, now));
  const std::string warning = renewal_.Failed(Unavailable("nobody answers"), now);
  EXPECT_THAT(warning, AllOf(HasSubstr("spiffe://lab/worker/w could not be renewed since"),
                             HasSubstr("nobody answers"),
                             HasSubstr("it expires at " + UtcText(facts.not_after)),
                             HasSubstr("its ranks end")));
  EXPECT_FALSE(renewal_.IsDue(facts, now));
  EXPECT_TRUE(renewal_.IsDue(facts, now + 1));
  int warnings = 0, tries = 0;
  for (const int64_t end = now + 3 * kHourSeconds; now <= end; ++now) {
    if (!renewal_.IsDue(facts, now)) continue;
    ++tries;
    if (!renewal_.Failed(Unavailable("nobody answers"), now).empty()) ++warnings;
  }
  EXPECT_GE(warnings, 2);
  EXPECT_LE(warnings, 3);
  EXPECT_GE(tries, 36);  // every five minutes at least
  EXPECT_LE(tries, 60);
}

TEST_F(RenewalTest, PausesShrinkBeforeTheEnd) {
  const CertificateFacts facts = Facts("1", 30);
  int64_t now = kSigned + 20;
  int tries = 0;
  for (; now < facts.not_after; ++now) {
    if (!renewal_.IsDue(facts, now)) continue;
    ++tries;
    renewal_.Failed(Unavailable("x"), now);
  }
  EXPECT_EQ(tries, 10);
}

TEST_F(RenewalTest, ThatNobodySignsIsReportedOnceForACertificate) {
  const CertificateFacts facts = Facts("1", kHourSeconds * 24 * 90);
  int64_t now = kSigned + kHourSeconds * 24 * 60;
  ASSERT_TRUE(renewal_.IsDue(facts, now));
  EXPECT_THAT(renewal_.Failed(FailedPrecondition("--authority"), now),
              AllOf(HasSubstr("is not renewed automatically: --authority"),
                    HasSubstr(UtcText(facts.not_after))));
  for (int hour = 0; hour < 48; ++hour) {
    EXPECT_FALSE(renewal_.IsDue(facts, now + kHourSeconds - 1));
    now += kHourSeconds;
    EXPECT_TRUE(renewal_.IsDue(facts, now));
    EXPECT_EQ(renewal_.Failed(Unimplemented("x"), now), "");
  }
  EXPECT_TRUE(renewal_.IsDue(Facts("2", 10), now));
  EXPECT_NE(renewal_.Failed(FailedPrecondition("--authority"), now), "");
}

TEST_F(RenewalTest, AClockThatIsSetBackEndsPausesAndMakesACertificateOfTheFutureDue) {
  const CertificateFacts facts = Facts("1", 24 * kHourSeconds);
  const int64_t ahead = kSigned + 20 * kHourSeconds;
  ASSERT_TRUE(renewal_.IsDue(facts, ahead));
  EXPECT_NE(renewal_.Failed(Unavailable("x"), ahead), "");
  EXPECT_FALSE(renewal_.IsDue(facts, ahead));
  EXPECT_FALSE(renewal_.IsDue(facts, kSigned)) << "it has most of its life left";
  EXPECT_TRUE(renewal_.IsDue(facts, kSigned + 16 * kHourSeconds));
  const int64_t before = facts.not_before - kHourSeconds;
  EXPECT_TRUE(renewal_.IsDue(facts, before));
  EXPECT_NE(renewal_.Failed(Unavailable("x"), before), "");
  EXPECT_FALSE(renewal_.IsDue(facts, before)) << "failures pause as ever";
  EXPECT_TRUE(renewal_.IsDue(facts, before + 1));
}

// It was tried each second for ever, over a new connection each time.
TEST_F(RenewalTest, ACertificateThatHasExpiredIsTriedSeldom) {
  const CertificateFacts facts = Facts("1", kHourSeconds);
  int tries = 0;
  for (int64_t now = facts.not_after + 1; now < facts.not_after + kHourSeconds; ++now) {
    if (!renewal_.IsDue(facts, now)) continue;
    ++tries;
    renewal_.Failed(Unavailable("x"), now);
  }
  EXPECT_LE(tries, 21);
  EXPECT_GE(tries, 12);
}

}  // namespace
}  // namespace troupe
