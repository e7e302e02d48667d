#include "actor/mailbox.h"

#include <gtest/gtest.h>

#include <utility>

namespace troupe {
namespace {

struct Integer {
  static constexpr std::string_view kMessageName = "number";
  int value = 0;
};
struct Word {
  static constexpr std::string_view kMessageName = "word";
};

TEST(AnyMessage, GivesItsBodyOnlyAsTheTypeItWasMadeFrom) {
  AnyMessage message(Integer{7});
  ASSERT_NE(message.As<Integer>(), nullptr);
  EXPECT_EQ(message.As<Integer>()->value, 7);
  EXPECT_EQ(message.As<Word>(), nullptr);
  EXPECT_EQ(message.name(), "number");
}

TEST(AnyMessage, IsEmptyAfterAMove) {
  AnyMessage message(Integer{7});
  const AnyMessage taken = std::move(message);
  EXPECT_TRUE(message.empty());
  EXPECT_EQ(message.As<Integer>(), nullptr);
  EXPECT_EQ(taken.As<Integer>()->value, 7);
}

TEST(Mailbox, RefusesAMessageBeyondItsCapacityAndNamesIt) {
  Mailbox mailbox(2);
  EXPECT_TRUE(mailbox.Push(AnyMessage(Integer{1})).ok());
  EXPECT_TRUE(mailbox.Push(AnyMessage(Integer{2})).ok());
  const Status status = mailbox.Push(AnyMessage(Integer{3}));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      ToString(status),
      "RESOURCE_EXHAUSTED: mailbox is full (2 messages wait, capacity 2); number was not accepted");
}

TEST(Mailbox, TakesNoticesWhenItIsFullAndKeepsTheOrder) {
  Mailbox mailbox(1);
  EXPECT_TRUE(mailbox.Push(AnyMessage(Integer{1})).ok());
  mailbox.PushNotice(TimerNotice{TimerId{9}});
  std::vector<Envelope> taken;
  mailbox.TakeAll(taken);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(std::get<AnyMessage>(taken[0]).As<Integer>()->value, 1);
  EXPECT_EQ(std::get<TimerNotice>(taken[1]).timer.value, 9u);
  EXPECT_TRUE(mailbox.empty());
  EXPECT_TRUE(mailbox.Push(AnyMessage(Integer{2})).ok());
}

TEST(Mailbox, TakesAdmittedMessagesWhenItIsFullAndCountsThem) {
  Mailbox mailbox(1);
  EXPECT_TRUE(mailbox.Push(AnyMessage(Integer{1})).ok());
  mailbox.PushAdmitted(AnyMessage(Integer{2}));
  EXPECT_EQ(mailbox.messages(), 2u);
  EXPECT_EQ(mailbox.Push(AnyMessage(Integer{3})).code(), StatusCode::kResourceExhausted);
  std::vector<Envelope> taken;
  mailbox.TakeAll(taken);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(std::get<AnyMessage>(taken[1]).As<Integer>()->value, 2);
  EXPECT_EQ(mailbox.messages(), 0u);
}

}  // namespace
}  // namespace troupe
