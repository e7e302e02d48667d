// Tests every schedule against the published formulas (idle time and live activations, where there
// are at least twice as many microbatches as stages), and its text against golden files, where the
// simulation is authoritative. To accept a change of the golden files, run with
// TROUPE_UPDATE_GOLDEN=1 and review the difference.
#include "plan/schedules/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/golden/golden_file.h"
#include "plan/schedules/interleaved_order.h"
#include "plan/schedules/simulator.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string Text(ScheduleKind kind, const PipelineShape& shape) {
  return fmt::format("{} P={} V={} M={}", Name(kind), shape.stages, shape.chunks_per_stage,
                     shape.microbatches);
}

// Simulates with F = I = W = 1 for every chunk.
StatusOr<SimulationResult> SimulateEqual(ScheduleKind kind, const PipelineShape& shape,
                                         const SimulateOptions& options = {}) {
  return Simulate(MakeSchedule(kind, shape),
                  std::vector<ActionCosts>(static_cast<size_t>(shape.chunks())), options);
}

template <typename Check>
void ForEveryShape(int most_stages, int most_chunks, int most_microbatches, const Check& check) {
  for (int stages = 1; stages <= most_stages; ++stages) {
    for (int chunks = 1; chunks <= most_chunks; ++chunks) {
      for (int microbatches = 1; microbatches <= most_microbatches; ++microbatches) {
        check(PipelineShape{stages, chunks, microbatches});
      }
    }
  }
}

class ScheduleTable : public ::testing::TestWithParam<ScheduleKind> {};

TEST_P(ScheduleTable, EveryShapeRunsRightOrIsRefusedWithItsNumbers) {
  const ScheduleKind kind = GetParam();
  int ran = 0;
  ForEveryShape(8, 4, 20, [&](const PipelineShape& shape) {
    const Status fits = CheckShape(kind, shape);
    if (!fits.ok()) {
      EXPECT_EQ(fits.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(Message(fits)), HasSubstr(Name(kind)));
      return;
    }
    ++ran;
    // Each action runs once, in an order that data and pipeline links allow, to the end.
    const auto result = SimulateEqual(kind, shape);
    ASSERT_TRUE(result.ok()) << Text(kind, shape) << ": " << result.status();
  });
  EXPECT_GE(ran, kind == ScheduleKind::kDualPipeV ? 80 : 8 * 20);
}

TEST_P(ScheduleTable, IdleTimeAndPeakAreTheTablesFromTwiceAsManyMicrobatchesOn) {
  const ScheduleKind kind = GetParam();
  ForEveryShape(8, 4, 40, [&](const PipelineShape& shape) {
    const int stages = shape.stages;
    if (shape.microbatches < 2 * stages || !CheckShape(kind, shape).ok()) return;
    SCOPED_TRACE(Text(kind, shape));
    const auto result = SimulateEqual(kind, shape);
    ASSERT_TRUE(result.ok()) << result.status();
    // In forwards of a chunk, V of which are a stage's forward: (P-1)(F+B) and (P-1)(F+B-2W) over
    // V.
    const double idle = (SplitsBackward(kind) ? 1 : 3) * (stages - 1);
    const double busy = 3.0 * shape.chunks_per_stage * shape.microbatches;
    EXPECT_DOUBLE_EQ(result->bubble_ratio, idle / (idle + busy));
    // The formula's (V-1)P is for rounds of P microbatches; rounds of G keep (V-1)G.
    const int earlier = (shape.chunks_per_stage - 1) * InterleavedOrder::RoundOf(shape);
    for (int rank = 0; rank < stages; ++rank) {
      EXPECT_DOUBLE_EQ(result->idle[rank], idle);
      const int peak = result->peak_live_activations[rank];
      switch (kind) {
        case ScheduleKind::kGPipe:
          EXPECT_EQ(peak, shape.microbatches);
          break;
        case ScheduleKind::k1F1B:
          EXPECT_EQ(peak, std::min(shape.microbatches, stages - rank));
          break;
        case ScheduleKind::kInterleaved1F1B:
          EXPECT_EQ(peak, earlier + 2 * (stages - 1 - rank) + 1);
          break;
        case ScheduleKind::kZeroBubbleH1:
          EXPECT_EQ(peak, earlier + stages);
          break;
        case ScheduleKind::kZeroBubbleV:
          EXPECT_EQ(peak, 2 * stages);
          break;
        case ScheduleKind::kDualPipeV:
          EXPECT_EQ(peak, 2 * stages + 1);
          break;
      }
    }
  });
}

// The search relies on the properties that a record states about its actions.
TEST_P(ScheduleTable, PropertiesOfTheRecordHoldForItsActions) {
  const ScheduleKind kind = GetParam();
  bool splits = false;
  ForEveryShape(8, 4, 20, [&](const PipelineShape& shape) {
    if (!CheckShape(kind, shape).ok()) return;
    SCOPED_TRACE(Text(kind, shape));
    const Schedule schedule = MakeSchedule(kind, shape);
    for (int rank = 0; rank < shape.stages; ++rank) {
      std::map<int, int> live, most_live;  // by chunk
      for (const Action& action : schedule.actions[rank]) {
        splits |= action.kind == ActionKind::kWeightGradient;
        int& now = live[action.chunk];
        if (action.kind == ActionKind::kForward) ++now;
        most_live[action.chunk] = std::max(most_live[action.chunk], now);
        if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient) {
          --now;
        }
      }
      for (const auto& [chunk, most] : most_live) {
        EXPECT_GE(most, LeastLiveMicrobatches(kind, shape, rank)) << "chunk " << chunk;
      }
    }
  });
  EXPECT_EQ(splits, SplitsBackward(kind));
}

// The plan holds every action, so a bound on the number of actions must bound the memory too.
TEST_P(ScheduleTable, KeepsNoMoreRoomThanItsActionsNeed) {
  const PipelineShape shape{512, GetParam() == ScheduleKind::kZeroBubbleV ? 2 : 1, 4};
  if (!CheckShape(GetParam(), shape).ok()) return;
  const Schedule schedule = MakeSchedule(GetParam(), shape);
  size_t room = 0;
  for (const std::vector<Action>& actions : schedule.actions) room += actions.capacity();
  EXPECT_LE(room, size_t{512} * 2 * 64);
}

TEST_P(ScheduleTable, SmallShapesAreGolden) {
  const ScheduleKind kind = GetParam();
  std::string text;
  for (const int stages : {2, 4}) {
    for (const int chunks : {1, 2}) {
      for (const int microbatches : {1, 2, 3, 4, 8}) {
        const PipelineShape shape{stages, chunks, microbatches};
        if (!CheckShape(kind, shape).ok()) continue;
        const auto result = SimulateEqual(kind, shape);
        ASSERT_TRUE(result.ok()) << result.status();
        const Schedule schedule = MakeSchedule(kind, shape);
        text += Text(kind, shape) + '\n';
        for (int rank = 0; rank < stages; ++rank) {
          text += fmt::format("  rank {}, idle {}, peak {}:", rank, result->idle[rank],
                              result->peak_live_activations[rank]);
          for (const std::string& action : ToTexts(schedule.actions[rank])) text += " " + action;
          text += '\n';
        }
      }
    }
  }
  ExpectGolden(fmt::format("plan/schedules/golden/{}.txt", Name(kind)), text);
}

INSTANTIATE_TEST_SUITE_P(Schedules, ScheduleTable, ::testing::ValuesIn(kScheduleKinds),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST(SchedulesTest, UnequalCostsGiveThePublishedShares) {
  // The published shares for P=8, M=32, F:I:W = 1 : 1.5 : 0.8.
  const auto share = [](ScheduleKind kind, int chunks) {
    const Schedule schedule = MakeSchedule(kind, {8, chunks, 32});
    return Simulate(schedule, std::vector<ActionCosts>(8 * chunks, {1, 1.5, 0.8}))->bubble_ratio;
  };
  EXPECT_NEAR(share(ScheduleKind::k1F1B, 1), 0.179, 0.0006);
  EXPECT_NEAR(share(ScheduleKind::kInterleaved1F1B, 2), 0.099, 0.0006);
  EXPECT_NEAR(share(ScheduleKind::kZeroBubbleH1, 1), 0.101, 0.0006);
  EXPECT_NEAR(share(ScheduleKind::kZeroBubbleV, 2), 0.047, 0.0006);
}

TEST(SchedulesTest, AnOverlappedPairIdlesTwiceAsLongWhereNothingDividesIt) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (const int microbatches : {2 * stages, 4 * stages}) {
      const PipelineShape shape{stages, 2, microbatches};
      const auto whole =
          SimulateEqual(ScheduleKind::kDualPipeV, shape, {.indivisible_pairs = true});
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_DOUBLE_EQ(*std::max_element(whole->idle.begin(), whole->idle.end()),
                       2.0 * (stages - 1));
    }
  }
  EXPECT_NEAR(SimulateEqual(ScheduleKind::kDualPipeV, {8, 2, 32}, {.indivisible_pairs = true})
                  ->bubble_ratio,
              0.068, 0.0006);
  EXPECT_NEAR(SimulateEqual(ScheduleKind::kDualPipeV, {8, 2, 32})->bubble_ratio, 0.035, 0.0006);
}

TEST(SchedulesTest, FewerMicrobatchesThanTheTableCoversAreWhatSimulationGives) {
  // Schedules with fewer microbatches than the published formulas cover.
  const auto zbv = SimulateEqual(ScheduleKind::kZeroBubbleV, {4, 2, 4});
  EXPECT_EQ(zbv->peak_live_activations, (std::vector<int>{5, 6, 7, 8}));
  EXPECT_DOUBLE_EQ(zbv->idle[0] / 2, 3.0);  // idle time over both chunks of a stage
  EXPECT_EQ(SimulateEqual(ScheduleKind::kInterleaved1F1B, {4, 2, 4})->peak_live_activations[0], 8);
  EXPECT_DOUBLE_EQ(SimulateEqual(ScheduleKind::kZeroBubbleH1, {4, 1, 2})->idle[0], 5);
}

TEST(SchedulesTest, NamesAreThoseOfTorchtitanAndOurs) {
  EXPECT_EQ(FindSchedule("ZBVZeroBubble")->kind, ScheduleKind::kZeroBubbleV);
  EXPECT_EQ(FindSchedule("InterleavedZeroBubble")->default_chunks_per_stage, 2);
  EXPECT_EQ(FindSchedule("ZBH1")->default_chunks_per_stage, 1);
  for (const ScheduleKind kind : kScheduleKinds) {
    EXPECT_EQ(FindSchedule(Name(kind))->kind, kind);
    EXPECT_THAT(KnownSchedules(), HasSubstr(Name(kind)));
  }
  for (const char* name : {"", "auto", "zbv", "1F2B"}) EXPECT_FALSE(FindSchedule(name)) << name;
}

TEST(SchedulesTest, RefusalsStateTheRelationAndItsNumbers) {
  const auto refusal = [](ScheduleKind kind, const PipelineShape& shape) {
    return std::string(Message(CheckShape(kind, shape)));
  };
  EXPECT_THAT(refusal(ScheduleKind::kDualPipeV, {4, 2, 7}), HasSubstr("7 is below 2 × 4 = 8"));
  EXPECT_THAT(refusal(ScheduleKind::kInterleaved1F1B, {2, 2, 7}),
              HasSubstr("7 mod floor(7 / 2) = 7 mod 3 = 1"));
  EXPECT_THAT(refusal(ScheduleKind::kZeroBubbleV, {2, 3, 8}),
              HasSubstr("needs 2 chunks per stage, not 3"));
  EXPECT_THAT(refusal(ScheduleKind::k1F1B, {2, 2, 8}), HasSubstr("needs 1 chunk per stage, not 2"));
  EXPECT_TRUE(CheckAnyShape({2, 3, 8}).ok());
  EXPECT_THAT(std::string(Message(CheckAnyShape({2, 3, 7}))), HasSubstr("ZBV needs 2 chunks"));
}

TEST(SchedulesTest, TextOfActionsAndParsingAreInverse) {
  const Schedule schedule = MakeSchedule(ScheduleKind::kDualPipeV, {2, 2, 5});
  bool paired = false;
  for (const auto& actions : schedule.actions) {
    std::vector<Action> parsed;
    for (const std::string& text : ToTexts(actions)) {
      paired |= text.find('|') != std::string::npos;
      const auto joined = ParseActions(text);
      ASSERT_TRUE(joined.ok()) << joined.status();
      parsed.insert(parsed.end(), joined->begin(), joined->end());
    }
    EXPECT_EQ(parsed, actions);
  }
  EXPECT_TRUE(paired);
  for (const char* text : {"F0.1|", "|B0.1", "F0.1|F1.0", "B0.1|F1.0", "F0.1|B1.0|B2.0"}) {
    EXPECT_FALSE(ParseActions(text).ok()) << text;
  }
}

TEST(SchedulesTest, LinksThatReorderMicrobatchesAreRefused) {
  Schedule schedule = MakeSchedule(ScheduleKind::kGPipe, {2, 1, 2});
  std::swap(schedule.actions[1][0], schedule.actions[1][1]);
  EXPECT_THAT(std::string(Message(Simulate(schedule, std::vector<ActionCosts>(2)).status())),
              HasSubstr("chunk 1 runs the forwards of its microbatches in an order other"));
}

}  // namespace
}  // namespace troupe
