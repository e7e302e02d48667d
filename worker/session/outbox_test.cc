#include "worker/session/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace troupe::session {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::WorkerMessage EndOfRank(int rank) {
  v1::WorkerMessage message;
  message.mutable_rank_stopped()->set_rank(rank);
  return message;
}

TEST(OutboxTest, AMessageThatIsDroppedWithoutAStreamIsNamedInTheLog) {
  State state;
  Effects effects;
  for (int rank = 0; rank < 1024; ++rank) SendOrKeep(state, effects, EndOfRank(rank));
  EXPECT_TRUE(effects.empty());
  SendOrKeep(state, effects, EndOfRank(1024));
  std::vector<std::string> notes;
  for (const Effect& effect : effects) notes.push_back(std::get<Note>(effect).text);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("the oldest, rank_stopped, is dropped")));
  EXPECT_EQ(state.unsent.size(), 1024u);
  EXPECT_EQ(state.unsent.front().rank_stopped().rank(), 1);
  EXPECT_EQ(state.unsent.back().rank_stopped().rank(), 1024);
}

}  // namespace
}  // namespace troupe::session
