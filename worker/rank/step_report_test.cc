#include "worker/rank/step_report.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr StepReportMaker::StepFlops kFlops{1e9, 2e8};

CollectiveStatistics Statistics(uint64_t count) {
  CollectiveStatistics entry;
  entry.operation = CollectiveOperation::kAllReduce;
  entry.axis = "tensor";
  entry.purpose = Purpose::kTensor;
  entry.count = count;
  entry.bytes = 10 * count;
  entry.seconds = static_cast<double>(count);
  return entry;
}

StepResult Result() {
  StepResult result;
  result.step = 7;
  result.event.set_loss(2.5);
  result.step_seconds = 0.5;
  result.event.set_tokens(100);
  result.event.set_validation_loss(3.0);
  result.routed = 64;
  result.dropped = 6;
  result.expert_load = {24, 40};
  result.figures.set_host_syncs_per_step(3);
  result.figures.set_graph_launches_per_step(2);
  return result;
}

TEST(PreparationReport, WhatTheFirstStepsFindOutIsReportedOnce) {
  PreparationReport preparation;
  preparation.Reported(1, 0);
  std::vector<std::string> of_program = {"matmul a: ref"};
  const std::vector<std::string> of_links = {"transport to rank 1: TCP"};
  v1::StepReport first, second, third;
  preparation.Add({std::nullopt, 1}, of_program, of_links, &first);
  EXPECT_EQ(first.graph_captures(), 1);
  EXPECT_EQ(first.fallbacks_size(), 0);
  of_program.emplace_back("graph of a step's part: launches one by one");
  preparation.Add({std::nullopt, 1}, of_program, of_links, &second);
  EXPECT_TRUE(second.has_graph_captures());
  EXPECT_EQ(second.graph_captures(), 0);
  ASSERT_EQ(second.fallbacks_size(), 3);
  EXPECT_EQ(second.fallbacks(2).operation(), "transport");
  preparation.Add({}, of_program, of_links, &third);
  EXPECT_FALSE(third.has_graph_captures());
  EXPECT_EQ(third.fallbacks_size(), 0);
}

TEST(PreparationReport, ProgramsThatTheCompilerMakesLateAreReportedOnce) {
  PreparationReport preparation;
  kernels::Compilation compilation{.programs = {"forward", "update"}};
  preparation.Reported(0, compilation.programs.size());
  v1::StepReport first, second, third;
  preparation.AddPrograms(compilation, &first);
  EXPECT_TRUE(first.has_recompilations());
  EXPECT_EQ(first.recompilations(), 0);
  for (int i = 0; i < 10; ++i) compilation.programs.push_back(fmt::format("late {}", i));
  preparation.AddPrograms(compilation, &second);
  EXPECT_EQ(second.recompilations(), 10);
  ASSERT_EQ(second.recompiled_size(), 8) << "the first names only";
  EXPECT_EQ(second.recompiled(0), "late 0");
  preparation.AddPrograms(compilation, &third);
  EXPECT_EQ(third.recompilations(), 0);
  EXPECT_EQ(third.recompiled_size(), 0);
}

TEST(StepReport, OnlyRankZeroCarriesTheJobsNumbers) {
  const v1::StepReport first = StepReportMaker("jobs/a", 1, 0, kFlops).Make(Result(), {});
  EXPECT_EQ(first.event().loss(), 2.5);
  EXPECT_EQ(first.model_flops(), 1e9);
  EXPECT_EQ(first.event().validation_loss(), 3.0);
  EXPECT_EQ(first.routed_choices(), 64);
  EXPECT_EQ(first.dropped_choices(), 6);
  const v1::StepReport other = StepReportMaker("jobs/a", 1, 3, kFlops).Make(Result(), {});
  EXPECT_FALSE(other.has_event());
  EXPECT_EQ(other.model_flops(), 0);
  EXPECT_EQ(other.dropped_choices(), 0);
  ASSERT_EQ(other.expert_load_size(), 2) << "first ranks of other stages report theirs";
  EXPECT_EQ(other.expert_load(1), 40);
  EXPECT_EQ(other.step_seconds(), 0.5);
  EXPECT_EQ(other.figures().host_syncs_per_step(), 3);
  EXPECT_EQ(other.figures().graph_launches_per_step(), 2);
}

TEST(StepReport, FlopsCountThePairsThatAreSeen) {
  StepResult result = Result();
  result.seen_pairs = 0.25;
  EXPECT_DOUBLE_EQ(StepReportMaker("jobs/a", 1, 0, kFlops).Make(result, {}).model_flops(),
                   8e8 + 0.25 * 2e8);
}

TEST(StepReport, RankZeroReportsWhichCheckpointBegins) {
  EXPECT_EQ(StepReportMaker("jobs/a", 1, 0, kFlops)
                .Make(Result(), {.checkpoint_attempt = 4})
                .checkpoint_attempt(),
            4);
  EXPECT_EQ(StepReportMaker("jobs/a", 1, 3, kFlops)
                .Make(Result(), {.checkpoint_attempt = 4})
                .checkpoint_attempt(),
            0);
}

TEST(RankMetrics, ReportsWhatTheDeviceCarriedOut) {
  const DeviceCollectiveStatistics sums = {.operation = CollectiveOperation::kReduceScatter,
                                           .axis = "data_shard",
                                           .scope = Scope::kAcross,
                                           .purpose = Purpose::kGradient,
                                           .count = 3,
                                           .bytes = 300,
                                           .bus_bytes = 225.0,
                                           .seconds = 0.5};
  const v1::RankMetrics metrics = MakeRankMetrics({}, {sums}, {});
  ASSERT_EQ(metrics.device_collectives_size(), 1);
  const v1::DeviceCollectiveTotals& totals = metrics.device_collectives(0);
  EXPECT_EQ(totals.operation(), "reduce_scatter");
  EXPECT_EQ(totals.axis(), "data_shard");
  EXPECT_EQ(totals.scope(), "across");
  EXPECT_EQ(totals.purpose(), "gradient");
  EXPECT_EQ(totals.count(), 3u);
  EXPECT_EQ(totals.bytes(), 300u);
  EXPECT_EQ(totals.bus_bytes(), 225);
  EXPECT_EQ(totals.seconds(), 0.5);
}

TEST(RankMetrics, FallbacksAreCountedByOperation) {
  const v1::RankMetrics metrics =
      MakeRankMetrics({Statistics(2)}, {}, {"matmul a: ref:any", "matmul b: ref:any"});
  EXPECT_EQ(metrics.kernel_fallbacks().at("matmul"), 2);
  EXPECT_EQ(metrics.collectives(0).bytes(), 20u);
  EXPECT_EQ(metrics.collectives(0).duration_counts_size(),
            static_cast<int>(kCollectiveDurationBounds.size()) + 1);
}

TEST(StepReportTest, EveryRankReportsItsCommunicationByPurpose) {
  StepReportMaker::StepConditions conditions;
  conditions.communication[static_cast<size_t>(Purpose::kGradient)] = {.total = 0.5,
                                                                       .exposed = 0.2};
  conditions.epoch_step = 7;
  const v1::StepReport report = StepReportMaker("jobs/a", 1, 3, kFlops).Make(Result(), conditions);
  ASSERT_EQ(report.figures().communication_size(), 1);
  const v1::CommunicationSeconds& communication = report.figures().communication(0);
  EXPECT_EQ(communication.purpose(), "gradient");
  EXPECT_EQ(communication.total(), 0.5);
  EXPECT_EQ(communication.exposed(), 0.2);
  EXPECT_EQ(report.epoch_step(), 7);
}

TEST(StepReportTest, WhereADeviceComputesItsWaitsCountAndNotItsHosts) {
  StepResult result = Result();
  result.receive_wait_seconds = 0.001;
  result.stalls.emplace();
  result.stalls->receives = 0.25;
  result.stalls->by_purpose[static_cast<size_t>(Purpose::kPipe)] = 0.5;
  StepReportMaker::StepConditions conditions;
  conditions.communication = WithDevice({}, {{.operation = CollectiveOperation::kSend,
                                              .axis = "pipe",
                                              .purpose = Purpose::kPipe,
                                              .seconds = 2},
                                             {.operation = CollectiveOperation::kReceive,
                                              .axis = "pipe",
                                              .purpose = Purpose::kPipe,
                                              .seconds = 1}});
  const v1::StepReport report = StepReportMaker("jobs/a", 1, 3, kFlops).Make(result, conditions);
  EXPECT_EQ(report.figures().bubble_ratio(), 0.25 / 0.5);
  ASSERT_EQ(report.figures().communication_size(), 1);
  const v1::CommunicationSeconds& communication = report.figures().communication(0);
  EXPECT_EQ(communication.purpose(), "pipe");
  EXPECT_EQ(communication.total(), 3);
  EXPECT_EQ(communication.exposed(), 0.5);
}

TEST(StepReportTest, AStepDuringACheckpointOrValidationOrOneThatIsSkippedIsDisturbed) {
  const StepReportMaker maker("jobs/a", 1, 3, kFlops);
  StepResult plain = Result();
  plain.event.clear_validation_loss();
  EXPECT_FALSE(maker.Make(plain, {}).disturbed());
  EXPECT_FALSE(maker.Make(plain, {.checkpoint_attempt = 2}).disturbed());
  EXPECT_TRUE(maker.Make(plain, {.saving = true}).disturbed());
  EXPECT_TRUE(maker.Make(plain, {.writing_attempt = 2}).disturbed());
  StepResult skipped = plain;
  skipped.event.set_skipped(true);
  EXPECT_TRUE(maker.Make(skipped, {}).disturbed());
  StepResult validated = plain;
  validated.event.set_validation_loss(3.0);
  EXPECT_TRUE(maker.Make(validated, {}).disturbed());
}

}  // namespace
}  // namespace troupe
