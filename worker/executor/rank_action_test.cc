#include "worker/executor/rank_action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "plan/schedules/schedules.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Texts(const ActionList& list) {
  std::vector<std::string> texts;
  for (const RankAction& action : list.actions) texts.push_back(ToText(action));
  return texts;
}

TEST(Actions, OneStageNeitherSendsNorReceivesAndReusesItsOneBuffer) {
  const auto list = MakeActions({"F0.0", "B0.0", "F0.1", "B0.1"}, {0}, 1, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Texts(*list), ElementsAre("F0.0 b0", "B0.0 b0", "F0.1 b0", "B0.1 b0"));
  EXPECT_THAT(list->buffers, ElementsAre(1));
  EXPECT_FALSE(list->split_backward);
}

TEST(Actions, AFirstStageKeepsAsManyBuffersAsMicrobatchesAliveAndSendsForward) {
  const auto list = MakeActions({"F0.0", "F0.1", "B0.0", "F0.2", "B0.1", "B0.2"}, {0}, 2, 3);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Texts(*list), ElementsAre("F0.0 b0 S", "F0.1 b1 S", "R B0.0 b0", "F0.2 b0 S",
                                        "R B0.1 b1", "R B0.2 b0"));
  EXPECT_THAT(list->buffers, ElementsAre(2));
}

TEST(Actions, AMiddleStageReceivesAndSendsBothWays) {
  const auto list = MakeActions({"F1.0", "B1.0"}, {1}, 3, 1);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Texts(*list), ElementsAre("R F1.0 b0 S", "R B1.0 b0 S"));
}

TEST(Actions, ASplitBackwardKeepsTheBufferUntilTheWeightGradient) {
  const auto list = MakeActions({"F0.0", "I0.0", "F0.1", "W0.0", "I0.1", "W0.1"}, {0}, 1, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_TRUE(list->split_backward);
  EXPECT_THAT(list->buffers, ElementsAre(2));
}

TEST(Actions, TheFirstRunOfEachPieceIsMarkedWhateverItsMicrobatch) {
  const auto list = MakeActions({"F0.1", "B0.1", "F0.0", "B0.0"}, {0}, 1, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_TRUE(list->actions[0].first_microbatch);
  EXPECT_TRUE(list->actions[1].first_microbatch);
  EXPECT_FALSE(list->actions[2].first_microbatch);
  EXPECT_FALSE(list->actions[3].first_microbatch);
  for (const RankAction& action : list->actions) {
    EXPECT_EQ(action.last_microbatch, &action == &list->actions.back()) << ToText(action);
  }
}

TEST(Actions, AScheduleThatDoesNotHoldTogetherIsRefusedNamingTheAction) {
  const auto refused = [](std::vector<std::string> schedule, const char* text) {
    const auto list = MakeActions(schedule, {0}, 1, 2);
    ASSERT_FALSE(list.ok()) << text;
    EXPECT_THAT(std::string(Message(list.status())), HasSubstr(text));
  };
  refused({"X0.0"}, "\"X0.0\"");
  refused({"F0"}, "\"F0\"");
  refused({"F0.0x"}, "\"F0.0x\"");
  refused({"F1.0"}, "this rank does not have the chunk");
  refused({"F0.2"}, "not below 2");
  refused({"B0.0"}, "out of order");
  refused({"F0.0", "F0.0"}, "\"F0.0\" is out of order or appears twice");
  refused({"F0.0", "W0.0"}, "out of order");
  refused({"F0.0", "B0.0", "F0.1"}, "does not finish microbatch 1");
}

TEST(Actions, NeighbouringChunksOfARankTransferInItsMemory) {
  // The last rank of a V-shaped schedule of two stages has chunks 1 and 2 of 4.
  const auto list = MakeActions({"F1.0", "F1.1", "F2.0", "I2.0", "W2.0", "F2.1", "I1.0", "I2.1",
                                 "W2.1", "I1.1", "W1.0", "W1.1"},
                                {1, 2}, 4, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Texts(*list), ElementsAre("R F1.0 b0", "R F1.1 b1", "L0 F2.0 b0 S", "R L0 I2.0 b0",
                                        "W2.0 b0", "L1 F2.1 b0 S", "I1.0 b0 S", "R L1 I2.1 b0",
                                        "W2.1 b0", "I1.1 b1 S", "W1.0 b0", "W1.1 b1"));
  EXPECT_THAT(list->buffers, ElementsAre(2, 1));
  const auto refused = [](std::vector<std::string> schedule) {
    return std::string(Message(MakeActions(schedule, {1, 2}, 4, 1).status()));
  };
  EXPECT_THAT(refused({"F2.0"}), HasSubstr("precedes that of the neighbouring chunk"));
  EXPECT_THAT(refused({"F1.0", "F2.0", "B1.0"}),
              HasSubstr("precedes that of the neighbouring chunk"));
}

TEST(Actions, TheForwardOfAnOverlappedPairStatesHowManyActionsItsBackwardIs) {
  const auto list = MakeActions({"F0.0", "F0.1|B0.0", "B0.1"}, {0}, 2, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Texts(*list), ElementsAre("F0.0 b0 S", "F0.1 b1 S |1", "R B0.0 b0", "R B0.1 b1"));
  const auto split = MakeActions({"F0.0", "F0.1|B0.0", "I0.1", "W0.1"}, {0}, 2, 2);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT(Texts(*split), ElementsAre("F0.0 b0 S", "F0.1 b1 S |2", "R I0.0 b0", "W0.0 b0",
                                         "R I0.1 b1", "W0.1 b1"));
}

TEST(Actions, WhereIAndWAreApartAWholeBackwardIsBothOfThem) {
  const auto list = MakeActions({"F0.0", "F0.1", "B0.0", "I0.1", "W0.1"}, {0}, 1, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Texts(*list),
              ElementsAre("F0.0 b0", "F0.1 b1", "I0.0 b0", "W0.0 b0", "I0.1 b1", "W0.1 b1"));
}

// --- No schedule deadlocks on a transport that completes a send only once its receive is posted,
// although a forward waits until its buffer's previous microbatch is sent.

// Direction, chunk index and buffer of a send; a slot has at most one send in flight.
using SendSlot = std::tuple<bool, int, int>;

struct RankRun {
  ActionList list;
  size_t next = 0;
  bool begun = false;  // the next action, the F of an interleaved pair, has its inputs
  std::set<SendSlot> pending;
};

// Runs all ranks until none can proceed; returns the blocked ranks. `interleaves`: a pair sends
// nothing before both of its actions have their inputs.
std::vector<int> RunOnSynchronousTransport(std::vector<RankRun>& ranks,
                                           const std::vector<int>& rank_of_chunk,
                                           const std::vector<std::vector<int>>& chunks,
                                           bool interleaves) {
  // Sends without a receive yet, by direction, receiving chunk and microbatch.
  std::map<std::tuple<bool, int, int>, std::pair<int, SendSlot>> sent;
  std::set<std::pair<int, int>> posted;  // receives of gradients, by chunk and microbatch
  const auto receive = [&](bool up, const RankAction& action) {
    const auto found = sent.find({up, action.chunk, action.microbatch});
    if (found == sent.end()) return false;
    const auto& [rank, slot] = found->second;
    if (up || !ranks[rank_of_chunk[action.chunk]].list.posts_gradient_receives) {
      ranks[rank].pending.erase(slot);
    }
    sent.erase(found);
    return true;
  };
  const auto slot_of = [](bool up, const RankAction& action) {
    return SendSlot{up, action.chunk_index, action.buffer};
  };
  const auto begin = [&](RankRun& run, const RankAction& action) {
    const bool up = action.piece == model::Piece::kForward;
    if (up && (run.pending.contains(slot_of(true, action)) ||
               run.pending.contains(slot_of(false, action))))
      return false;
    if (!up && action.receives && run.pending.contains(slot_of(true, action))) return false;
    if (action.receives && !receive(up, action)) return false;
    if (up && action.sends && run.list.posts_gradient_receives)
      posted.insert({action.chunk, action.microbatch});
    return true;
  };
  const auto end = [&](size_t rank, const RankAction& action) {
    if (!action.sends) return;
    const bool up = action.piece == model::Piece::kForward;
    const int to = up ? action.chunk + 1 : action.chunk - 1;
    sent[{up, to, action.microbatch}] = {static_cast<int>(rank), slot_of(up, action)};
    if (up || !posted.contains({to, action.microbatch}))
      ranks[rank].pending.insert(slot_of(up, action));
    EXPECT_NE(rank_of_chunk[to], static_cast<int>(rank));
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < ranks.size(); ++r) {
      RankRun& run = ranks[r];
      while (run.next < run.list.actions.size()) {
        const RankAction& action = run.list.actions[run.next];
        const bool pair = interleaves && action.overlaps > 0;
        if (!run.begun && !begin(run, action)) break;
        moved |= !run.begun;
        run.begun = true;
        if (pair && !begin(run, run.list.actions[run.next + 1])) break;
        end(r, action);
        if (pair) end(r, run.list.actions[run.next + 1]);
        run.next += pair ? 2 : 1;
        run.begun = false;
        moved = true;
      }
    }
  }
  std::vector<int> stuck;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const bool ended = ranks[r].next == ranks[r].list.actions.size() && ranks[r].pending.empty();
    if (!ended) stuck.push_back(chunks[r].front());
  }
  return stuck;
}

class ScheduleActions : public ::testing::TestWithParam<ScheduleKind> {};

TEST_P(ScheduleActions, NeverDeadlockAndKeepAsManyBuffersAsAreAlive) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int chunks = 1; chunks <= 3; ++chunks) {
      for (int microbatches = 1; microbatches <= 18; ++microbatches) {
        const PipelineShape shape{stages, chunks, microbatches};
        if (!CheckShape(GetParam(), shape).ok()) continue;
        SCOPED_TRACE(fmt::format("P={} V={} M={}", stages, chunks, microbatches));
        const Schedule schedule = MakeSchedule(GetParam(), shape);
        std::vector<int> rank_of_chunk(shape.chunks());
        std::vector<RankRun> ranks;
        for (int rank = 0; rank < stages; ++rank) {
          for (const int chunk : schedule.chunks[rank]) rank_of_chunk[chunk] = rank;
          auto list = MakeActions(ToTexts(schedule.actions[rank]), schedule.chunks[rank],
                                  shape.chunks(), microbatches);
          ASSERT_TRUE(list.ok()) << list.status();
          ranks.push_back({*std::move(list), 0, false, {}});
        }
        for (const bool interleaves : {false, true}) {
          std::vector<RankRun> run = ranks;
          ASSERT_THAT(RunOnSynchronousTransport(run, rank_of_chunk, schedule.chunks, interleaves),
                      ::testing::IsEmpty());
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, ScheduleActions, ::testing::ValuesIn(kScheduleKinds),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace troupe
