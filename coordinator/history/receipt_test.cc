#include "coordinator/history/receipt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/history/receipt_tally.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kDigest[] = "sha256:a";

v1::StepReport ReportOf(int32_t rank, int64_t step, double seconds = 0.5) {
  v1::StepReport report;
  report.set_rank(rank);
  report.set_step(step);
  report.set_epoch_step(step);
  if (rank == 0) report.mutable_event()->set_tokens(100);
  report.set_step_seconds(seconds);
  return report;
}

Job JobWith(v1::ReceiptTally tally) {
  Job job;
  job.record.set_id("a");
  job.record.set_state(v1::JOB_STATE_RUNNING);
  job.spec = TestSpec("a", 2, 100);
  job.spec.mutable_training()->set_compute_dtype("float32");
  v1::ParallelismSpec& asked = *job.spec.mutable_parallelism();
  asked.set_data_parallel_shard_degree(1);
  asked.set_tensor_parallel_degree(1);
  asked.set_pipeline_parallel_degree(1);
  asked.set_context_parallel_degree(1);
  asked.set_expert_parallel_degree(1);
  job.plan.set_digest(kDigest);
  for (const auto set :
       {&v1::MeshDegrees::set_pipe, &v1::MeshDegrees::set_data_shard, &v1::MeshDegrees::set_context,
        &v1::MeshDegrees::set_expert, &v1::MeshDegrees::set_tensor}) {
    (job.plan.mutable_mesh()->*set)(1);
  }
  job.plan.mutable_mesh()->set_data_replicate(2);
  job.plan.mutable_device()->set_kind("cpu");
  job.tally = std::move(tally);
  return job;
}

void Tally(const v1::StepReport& report, v1::ReceiptTally* tally, double peak_flops = 0) {
  Job job = JobWith(*tally);
  TallyStep(report, 10.0, peak_flops, &job);
  *tally = job.tally;
}

std::vector<std::string> Suspect(const v1::Receipt& receipt) {
  return {receipt.suspect().begin(), receipt.suspect().end()};
}

TEST(ReceiptTest, WarmUpAndDisturbedStepsAreApartFromSteadyOnes) {
  v1::ReceiptTally tally;
  for (int64_t step = 1; step <= kWarmUpSteps; ++step) Tally(ReportOf(0, step, 9.0), &tally);
  v1::StepReport disturbed = ReportOf(0, 4, 7.0);
  disturbed.set_disturbed(true);
  Tally(disturbed, &tally);
  Tally(ReportOf(0, 5, 0.5), &tally);
  Tally(ReportOf(0, 6, 1.5), &tally);
  const v1::Receipt receipt = MakeReceipt(JobWith(tally));
  EXPECT_EQ(receipt.warm_up().steps(), kWarmUpSteps);
  EXPECT_DOUBLE_EQ(receipt.warm_up().seconds(), 9.0 * kWarmUpSteps);
  EXPECT_EQ(receipt.steps_apart(), 1);
  EXPECT_EQ(receipt.steady().steps(), 2);
  EXPECT_DOUBLE_EQ(receipt.steady().tokens_per_second(), 100.0);
  EXPECT_DOUBLE_EQ(receipt.steady().fastest_step_seconds(), 0.5);
  EXPECT_DOUBLE_EQ(receipt.steady().slowest_step_seconds(), 1.5);
  EXPECT_THAT(Suspect(receipt), Contains(HasSubstr("2 steady steps, fewer than 10")));
  EXPECT_THAT(Suspect(receipt), Contains(HasSubstr("3.00 times the fastest")));
  EXPECT_TRUE(receipt.target_reached()) << receipt.target_missed();
}

TEST(ReceiptTest, AReceiptWithoutStepsHasNoFigures) {
  const v1::Receipt receipt = MakeReceipt(JobWith({}));
  EXPECT_FALSE(receipt.steady().has_tokens_per_second());
  EXPECT_FALSE(receipt.steady().has_mfu());
  EXPECT_FALSE(receipt.steady().mean().has_bubble_ratio());
  EXPECT_FALSE(receipt.steady().mean().has_data_wait_seconds());
  EXPECT_FALSE(receipt.has_compile());
  EXPECT_FALSE(receipt.ready());
  EXPECT_FALSE(receipt.target_reached());
}

TEST(ReceiptTest, FiguresOfRanksAreMeansOverRanksAndSteps) {
  v1::ReceiptTally tally;
  for (int32_t rank = 0; rank < 2; ++rank) {
    v1::StepReport report = ReportOf(rank, 10, 1.0);
    v1::StepFigures& figures = *report.mutable_figures();
    figures.set_bubble_ratio(rank == 0 ? 0.2 : 0.4);
    figures.set_data_wait_seconds(rank == 0 ? 0.1 : 0.0);
    figures.set_host_syncs_per_step(rank);
    figures.set_graph_launches_per_step(2 - rank);
    v1::CommunicationSeconds* const gradient = figures.add_communication();
    gradient->set_purpose("gradient");
    gradient->set_exposed(rank == 0 ? 0.1 : 0.3);
    gradient->set_total(0.5);
    Tally(report, &tally);
  }
  const v1::Receipt receipt = MakeReceipt(JobWith(tally));
  EXPECT_DOUBLE_EQ(receipt.steady().mean().bubble_ratio(), 0.3);
  EXPECT_DOUBLE_EQ(receipt.steady().mean().data_wait_seconds(), 0.05);
  EXPECT_DOUBLE_EQ(receipt.steady().mean().host_syncs_per_step(), 0.5);
  EXPECT_DOUBLE_EQ(receipt.steady().mean().graph_launches_per_step(), 1.5);
  ASSERT_EQ(receipt.steady().mean().communication_size(), 1);
  EXPECT_DOUBLE_EQ(receipt.steady().mean().communication(0).exposed(), 0.2);
  EXPECT_DOUBLE_EQ(receipt.steady().mean().communication(0).total(), 0.5);
  EXPECT_EQ(receipt.steady().steps(), 1);
}

TEST(ReceiptTest, MfuIsThatOfStepsWhoseDevicesPeakIsKnown) {
  v1::ReceiptTally tally;
  Tally(ReportOf(0, 10, 2.0), &tally, /*peak_flops=*/20.0);
  EXPECT_DOUBLE_EQ(MakeReceipt(JobWith(tally)).steady().mfu(), 10.0 / 40.0);
  Tally(ReportOf(0, 11, 2.0), &tally);
  EXPECT_FALSE(MakeReceipt(JobWith(tally)).steady().has_mfu());
}

TEST(ReceiptTest, AnMfuAboveOneIsSuspect) {
  constexpr const char* kImpossible =
      "an MFU of 125.0% cannot be: the devices' peak was measured or stated too low";
  for (const double peak : {4.0, 5.0}) {
    v1::ReceiptTally tally;
    Tally(ReportOf(0, 10, 2.0), &tally, /*peak_flops=*/peak);
    const std::vector<std::string> suspect = Suspect(MakeReceipt(JobWith(tally)));
    EXPECT_EQ(std::ranges::count(suspect, kImpossible), peak == 4.0 ? 1 : 0);
  }
}

v1::RankEnvironment Environment(double build_seconds) {
  v1::RankEnvironment environment;
  environment.set_programs(1);
  environment.set_build_seconds(build_seconds);
  environment.set_executed_precision("float32");
  environment.set_transport("ucx 1.13.1");
  environment.add_implementations("attention: cuDNN 9.19.0 eng2_k24=7");
  environment.set_ranks_on_host(2);
  environment.set_cores_on_host(2);
  environment.set_threads(1);
  return environment;
}

// Twenty steps in bfloat16, then the job continues in float8: another plan.
Job ResumedInFloat8() {
  Job job = JobWith({});
  job.spec.mutable_training()->set_compute_dtype("bfloat16");
  v1::RankEnvironment environment = Environment(1);
  environment.set_executed_precision("bfloat16 matmuls, float32 accumulators");
  TallyReady(1, 0, environment, &job.tally);
  for (int64_t step = 1; step <= 20; ++step) TallyStep(ReportOf(0, step), 10.0, 0, &job);
  TallyWrite("io_uring", &job.tally);
  job.spec.mutable_training()->mutable_float8()->set_recipe("delayed");
  job.plan.set_digest("sha256:b");
  // The words of a worker of an earlier version, which still count.
  environment.set_executed_precision("float8 products of linear layers, delayed scaling");
  TallyReady(2, 0, environment, &job.tally);
  return job;
}

TEST(ReceiptTest, FiguresOfEachPlanAreApartWithTheConditionsOfTheirOwn) {
  Job job = ResumedInFloat8();
  TallyStep(ReportOf(0, 24), 10.0, 0, &job);
  const v1::Receipt receipt = MakeReceipt(job);
  EXPECT_EQ(receipt.plan_digest(), "sha256:b");
  EXPECT_EQ(receipt.steady().steps(), 1);
  EXPECT_EQ(receipt.precision_intended(), "bfloat16, float8 delayed");
  EXPECT_EQ(receipt.checkpoint_writes_size(), 1);
  EXPECT_EQ(receipt.compile().count(), 2);
  EXPECT_THAT(Suspect(receipt),
              Contains("20 steps ran under another plan and are excluded from the figures"));
  EXPECT_THAT(Suspect(receipt), Not(Contains(HasSubstr("the precision is not"))));
  ASSERT_EQ(receipt.other_plans_size(), 1);
  const v1::Receipt& other = receipt.other_plans(0);
  EXPECT_EQ(other.plan_digest(), kDigest);
  EXPECT_EQ(other.steady().steps(), 20 - kWarmUpSteps);
  EXPECT_EQ(other.precision_intended(), "bfloat16");
  EXPECT_EQ(other.precision_executed(), "bfloat16 matmuls, float32 accumulators");
}

TEST(ReceiptTest, APlanWithoutStepsHasNoFiguresOfAnother) {
  const v1::Receipt receipt = MakeReceipt(ResumedInFloat8());
  EXPECT_EQ(receipt.plan_digest(), "sha256:b");
  EXPECT_EQ(receipt.steady().steps(), 0);
  EXPECT_FALSE(receipt.steady().has_tokens_per_second());
  ASSERT_EQ(receipt.other_plans_size(), 1);
  EXPECT_EQ(receipt.other_plans(0).steady().steps(), 20 - kWarmUpSteps);
}

TEST(ReceiptTest, FiguresGoOnWhereAJobReturnsToAPlan) {
  Job job = ResumedInFloat8();
  TallyStep(ReportOf(0, 24), 10.0, 0, &job);
  job.spec.mutable_training()->mutable_float8()->set_recipe("none");
  job.plan.set_digest(kDigest);
  TallyStep(ReportOf(0, 25), 10.0, 0, &job);
  const v1::Receipt receipt = MakeReceipt(job);
  EXPECT_EQ(receipt.steady().steps(), 21 - kWarmUpSteps);
  ASSERT_EQ(receipt.other_plans_size(), 1);
  EXPECT_EQ(receipt.other_plans(0).plan_digest(), "sha256:b");
}

TEST(ReceiptTest, TheOldestOfManyPlansAreCountedAlone) {
  Job job = JobWith({});
  for (int plan = 0; plan < kMostOtherPlans + 3; ++plan) {
    job.plan.set_digest(fmt::format("sha256:{}", plan));
    TallyStep(ReportOf(0, 10 + plan), 10.0, 0, &job);
  }
  const v1::Receipt receipt = MakeReceipt(job);
  EXPECT_EQ(receipt.other_plans_size(), kMostOtherPlans);
  EXPECT_EQ(receipt.other_plans(0).plan_digest(), fmt::format("sha256:{}", kMostOtherPlans + 1));
  EXPECT_EQ(job.tally.steps_of_other_plans(), 2);
  EXPECT_THAT(
      Suspect(receipt),
      Contains(HasSubstr(fmt::format("{} steps ran under another plan", kMostOtherPlans + 2))));
}

TEST(ReceiptTest, GraphsCapturedByALaterGroupAreRecaptures) {
  Job job = JobWith({});
  TallyReady(1, 0, Environment(1), &job.tally);
  v1::StepReport report = ReportOf(0, 1);
  report.set_group_epoch(1);
  report.set_graph_captures(2);
  TallyStep(report, 10.0, 0, &job);
  EXPECT_EQ(MakeReceipt(job).compile().recaptures(), 0);
  EXPECT_TRUE(MakeReceipt(job).compile().has_recaptures());
  report.set_step(2);
  report.set_group_epoch(2);
  TallyStep(report, 10.0, 0, &job);
  EXPECT_EQ(MakeReceipt(job).compile().recaptures(), 2);
}

TEST(ReceiptTest, FallbacksOfTheFirstStepsAreCountedToo) {
  Job job = JobWith({});
  TallyReady(1, 0, Environment(1), &job.tally);
  v1::StepReport report = ReportOf(0, 2);
  v1::OperationCount* const graph = report.add_fallbacks();
  graph->set_operation("graph");
  graph->set_count(1);
  TallyStep(report, 10.0, 0, &job);
  ASSERT_EQ(MakeReceipt(job).fallbacks_size(), 1);
  EXPECT_EQ(MakeReceipt(job).fallbacks(0).operation(), "graph");
}

TEST(ReceiptTest, CompileCountsEveryProgramAndTakesTheSlowestRankOfEachEpoch) {
  v1::ReceiptTally tally;
  TallyReady(1, 0, Environment(2.0), &tally);
  TallyReady(1, 1, Environment(3.0), &tally);
  TallyReady(1, 1, Environment(3.0), &tally);  // resent
  TallyReady(2, 0, Environment(1.0), &tally);
  TallyReady(2, 1, Environment(0.5), &tally);
  const v1::Receipt receipt = MakeReceipt(JobWith(tally));
  EXPECT_EQ(receipt.compile().count(), 4);
  EXPECT_DOUBLE_EQ(receipt.compile().seconds(), 4.0);
  EXPECT_FALSE(receipt.compile().has_recaptures());  // no backend that captures graphs
  EXPECT_FALSE(receipt.compile().has_cache_hits());
  EXPECT_EQ(receipt.environment().transports(0), "ucx 1.13.1");
  EXPECT_THAT(receipt.environment().implementations(),
              ElementsAre("attention: cuDNN 9.19.0 eng2_k24=7"));
  EXPECT_EQ(receipt.precision_executed(), "float32");
  EXPECT_THAT(Suspect(receipt), Not(Contains(HasSubstr("share"))));
}

v1::RankEnvironment Compiled(int64_t compiled, int64_t hits, double seconds) {
  v1::RankEnvironment environment = Environment(seconds);
  v1::Compilation& compilation = *environment.mutable_compilation();
  compilation.set_plugin("xla_cpu_pjrt.so: cpu, PJRT 0.81");
  compilation.add_options("xla_allow_excess_precision=false");
  compilation.set_compiled(compiled);
  compilation.set_cache_hits(hits);
  compilation.set_seconds(seconds);
  return environment;
}

TEST(ReceiptTest, TheWorkOfCompilersIsSummedOverRanksAndEpochs) {
  v1::ReceiptTally tally;
  v1::RankEnvironment damaged = Compiled(4, 0, 3);
  v1::OperationCount* const fault = damaged.mutable_compilation()->add_cache_faults();
  fault->set_operation("an entry is damaged");
  fault->set_count(2);
  TallyReady(1, 0, damaged, &tally);
  TallyReady(1, 1, Compiled(5, 1, 2), &tally);
  TallyReady(1, 1, Compiled(5, 1, 2), &tally);  // resent
  TallyReady(2, 0, Compiled(0, 6, 0.5), &tally);
  Job job = JobWith(tally);
  job.plan.add_compiler_options("xla_allow_excess_precision=false");
  const auto expect = [&job] {
    const v1::Receipt receipt = MakeReceipt(job);
    const v1::Receipt::Compiler& compiler = receipt.compile().compiler();
    EXPECT_THAT(compiler.plugins(), ElementsAre("xla_cpu_pjrt.so: cpu, PJRT 0.81"));
    EXPECT_EQ(compiler.compiled(), 9);
    EXPECT_EQ(compiler.cache_hits(), 7);
    EXPECT_DOUBLE_EQ(compiler.seconds(), 3.5);
    EXPECT_EQ(compiler.recompilations(), 0);
    ASSERT_EQ(compiler.cache_faults_size(), 1);
    EXPECT_EQ(compiler.cache_faults(0).operation(), "an entry is damaged");
    EXPECT_EQ(compiler.cache_faults(0).count(), 2);
    EXPECT_THAT(receipt.compiler_options(), ElementsAre("xla_allow_excess_precision=false"));
    EXPECT_THAT(Suspect(receipt), Not(Contains(HasSubstr("compiled"))));
    EXPECT_THAT(Suspect(receipt), Not(Contains(HasSubstr("options"))));
  };
  expect();
  // Another plan keeps what the job's compilers have done so far.
  TallyStep(ReportOf(0, 10), 10.0, 0, &job);
  job.plan.set_digest("sha256:b");
  TallyStep(ReportOf(0, 11), 10.0, 0, &job);
  expect();
  EXPECT_FALSE(job.tally.others(0).has_compiler());
}

TEST(ReceiptTest, OptionsOfCompilersAreThosePlannedUntilRanksReportTheirs) {
  Job job = JobWith({});
  job.plan.add_compiler_options("xla_a=1");
  EXPECT_THAT(MakeReceipt(job).compiler_options(), ElementsAre("xla_a=1"));
  EXPECT_THAT(Suspect(MakeReceipt(job)), Not(Contains(HasSubstr("options"))));
  TallyReady(1, 0, Environment(1), &job.tally);  // its device has no compiler
  EXPECT_THAT(MakeReceipt(job).compiler_options(), ElementsAre("xla_a=1"));
  TallyReady(2, 0, Compiled(4, 0, 3), &job.tally);
  EXPECT_THAT(MakeReceipt(job).compiler_options(), ElementsAre("xla_allow_excess_precision=false"));
}

TEST(ReceiptTest, OptionsOfACompilerThatAreNotThePlansAreSuspect) {
  Job job = JobWith({});
  job.plan.add_compiler_options("xla_allow_excess_precision=false");
  job.plan.add_compiler_options("xla_b=1");
  v1::RankEnvironment as_planned = Compiled(4, 0, 3), other = Compiled(4, 0, 3);
  as_planned.mutable_compilation()->add_options("xla_b=1");
  other.mutable_compilation()->add_options("xla_b=2");
  TallyReady(1, 0, as_planned, &job.tally);
  TallyReady(1, 1, other, &job.tally);
  const v1::Receipt receipt = MakeReceipt(job);
  EXPECT_THAT(receipt.compiler_options(),
              ElementsAre("xla_allow_excess_precision=false", "xla_b=1", "xla_b=2"));
  EXPECT_THAT(Suspect(receipt),
              Contains("the compiler of rank 1 ran with other options than the plan's: it got "
                       "xla_b=2, and it did not get xla_b=1"));
}

TEST(ReceiptTest, ProgramsThatAreCompiledAfterTheWarmUpAreSuspect) {
  v1::ReceiptTally tally;
  TallyReady(1, 0, Compiled(4, 0, 3), &tally);
  v1::StepReport report = ReportOf(0, 1);
  report.set_recompilations(0);
  Tally(report, &tally);
  EXPECT_THAT(Suspect(MakeReceipt(JobWith(tally))), Not(Contains(HasSubstr("compiled"))));
  report.set_step(2);
  report.set_recompilations(2);
  report.add_recompiled("forward");
  report.add_recompiled("update");
  Tally(report, &tally);
  EXPECT_THAT(Suspect(MakeReceipt(JobWith(tally))),
              Contains("2 programs were compiled after the warm-up: forward, update"));
  report.set_recompilations(12);  // only the first are named
  for (int i = 0; i < 6; ++i) report.add_recompiled(fmt::format("late {}", i));
  Tally(report, &tally);
  EXPECT_THAT(Suspect(MakeReceipt(JobWith(tally))),
              Contains("14 programs were compiled after the warm-up: forward, update, late 0, late "
                       "1, late 2, late 3, late 4, late 5, …"));
}

TEST(ReceiptTest, DevicesWithoutACompilerHaveNoFiguresOfOne) {
  v1::ReceiptTally tally;
  TallyReady(1, 0, Environment(2.0), &tally);
  EXPECT_FALSE(MakeReceipt(JobWith(tally)).compile().has_compiler());
}

TEST(ReceiptTest, ImplementationsOfTuningCachesAreSummedOverRanksAndEpochs) {
  v1::ReceiptTally tally;
  v1::RankEnvironment environment = Environment(1);
  environment.set_tuning_cache_hits(0);  // a GPU whose worker has timed nothing yet
  TallyReady(1, 0, environment, &tally);
  EXPECT_TRUE(MakeReceipt(JobWith(tally)).compile().has_cache_hits());
  EXPECT_EQ(MakeReceipt(JobWith(tally)).compile().cache_hits(), 0);
  environment.set_tuning_cache_hits(3);
  TallyReady(1, 1, environment, &tally);
  TallyReady(1, 1, environment, &tally);  // resent
  environment.set_tuning_cache_hits(5);
  TallyReady(2, 0, environment, &tally);
  Job job = JobWith(tally);
  EXPECT_EQ(MakeReceipt(job).compile().cache_hits(), 8);
  // Another plan keeps what the job has prepared so far.
  TallyStep(ReportOf(0, 10), 10.0, 0, &job);
  job.plan.set_digest("sha256:b");
  TallyStep(ReportOf(0, 11), 10.0, 0, &job);
  EXPECT_EQ(MakeReceipt(job).compile().cache_hits(), 8);
}

TEST(ReceiptTest, CrowdedCoresFallbacksAndInjectedFaultsAreSuspect) {
  v1::ReceiptTally tally;
  v1::RankEnvironment environment = Environment(1);
  environment.set_cores_on_host(1);
  environment.add_flags("TROUPE_FAILPOINTS=step.begin=delay:20");
  v1::OperationCount* const fallback = environment.add_fallbacks();
  fallback->set_operation("matmul");
  fallback->set_count(3);
  environment.set_executed_precision("bfloat16 matmuls, float32 accumulators");
  TallyReady(1, 0, environment, &tally);
  v1::StepReport report = ReportOf(0, 10, 1.0);
  report.mutable_figures()->set_core_wait_seconds(0.25);
  Tally(report, &tally);
  const v1::Receipt receipt = MakeReceipt(JobWith(tally));
  ASSERT_EQ(receipt.fallbacks_size(), 1);
  EXPECT_EQ(receipt.fallbacks(0).count(), 3);
  const std::vector<std::string> suspect = Suspect(receipt);
  EXPECT_THAT(suspect, Contains("2 ranks of 1 thread each share 1 core of a host"));
  EXPECT_THAT(suspect, Contains("3 fallbacks of matmul to a slower implementation"));
  EXPECT_THAT(suspect, Contains(HasSubstr("waited 25.0% of the time for a core")));
  EXPECT_THAT(suspect, Contains(HasSubstr("float32 was intended, bfloat16")));
  EXPECT_THAT(suspect, Contains(HasSubstr("faults are injected")));
}

TEST(ReceiptTest, Float8IsIntendedByRecipeAndSuspectWhereItWasNotExecuted) {
  for (const bool executed : {false, true}) {
    v1::ReceiptTally tally;
    v1::RankEnvironment head = Environment(1), blocks = Environment(1);
    head.set_executed_precision("bfloat16 matmuls, float32 accumulators");
    blocks.set_executed_precision(executed
                                      ? "float8 matmuls of linear layers, delayed scaling, "
                                        "float32 accumulators (2 matmul e4m3 x e4m3); else bfloat16"
                                      : "bfloat16 matmuls, float32 accumulators");
    TallyReady(2, 0, head, &tally);
    TallyReady(2, 1, blocks, &tally);
    Tally(ReportOf(0, 10, 1.0), &tally);
    Job job = JobWith(tally);
    job.spec.mutable_training()->set_compute_dtype("bfloat16");
    job.spec.mutable_training()->mutable_float8()->set_recipe("delayed");
    const v1::Receipt receipt = MakeReceipt(job);
    EXPECT_EQ(receipt.precision_intended(), "bfloat16, float8 delayed");
    EXPECT_NE(testing::Matches(Contains(HasSubstr("was intended, ")))(Suspect(receipt)), executed);
  }
}

TEST(ReceiptTest, TheDriverIsApartFromTheLibraries) {
  Job job = JobWith({});
  job.plan.mutable_device()->set_versions("driver for CUDA 13.0; CUDA 12.8; cuBLASLt 12.8.4");
  const v1::Receipt receipt = MakeReceipt(job);
  EXPECT_EQ(receipt.environment().driver(), "driver for CUDA 13.0");
  EXPECT_EQ(receipt.environment().libraries(), "CUDA 12.8; cuBLASLt 12.8.4");
  job.plan.mutable_device()->set_versions("oneDNN 2.6.3; UCX 1.13.1");
  EXPECT_EQ(MakeReceipt(job).environment().driver(), "");
}

TEST(ReceiptTest, TransportsAreTheWaysThatMessagesTook) {
  v1::ReceiptTally tally;
  v1::RankEnvironment environment = Environment(1);
  environment.add_links("shared memory (sysv)");
  TallyReady(1, 0, environment, &tally);
  environment.add_links("TCP (eth0)");
  TallyReady(1, 1, environment, &tally);
  EXPECT_THAT(MakeReceipt(JobWith(tally)).environment().transports(),
              ElementsAre("ucx 1.13.1: TCP (eth0)", "ucx 1.13.1: shared memory (sysv)"));
}

TEST(ReceiptTest, Float8ThatWasMultipliedAsBfloat16IsAnotherPrecisionThanAsked) {
  v1::ReceiptTally tally;
  v1::RankEnvironment environment = Environment(1);
  environment.set_executed_precision(
      "float8 matmuls of linear layers, current scaling, float32 accumulators (2 matmul e4m3 x "
      "e4m3; 1 of "
      "them multiplied as bfloat16); else bfloat16 matmuls, float32 accumulators");
  TallyReady(1, 0, environment, &tally);
  Job job = JobWith(tally);
  job.spec.mutable_training()->set_compute_dtype("bfloat16");
  job.spec.mutable_training()->mutable_float8()->set_recipe("current");
  EXPECT_THAT(Suspect(MakeReceipt(job)),
              Contains(HasSubstr(
                  "the precision is not the intended one: bfloat16, float8 current was intended")));
}

TEST(ReceiptTest, EveryRankMultipliesAsWasAsked) {
  const auto is_suspect = [](const std::vector<std::string>& executed, const std::string& recipe) {
    v1::ReceiptTally tally;
    for (size_t rank = 0; rank < executed.size(); ++rank) {
      v1::RankEnvironment environment = Environment(1);
      environment.set_executed_precision(executed[rank]);
      TallyReady(1, static_cast<int32_t>(rank), environment, &tally);
    }
    Job job = JobWith(tally);
    job.spec.mutable_training()->set_compute_dtype("bfloat16");
    job.spec.mutable_training()->mutable_float8()->set_recipe(recipe);
    return testing::Matches(Contains(HasSubstr("the precision is not")))(Suspect(MakeReceipt(job)));
  };
  const std::string bfloat16 = "bfloat16 matmuls, float32 accumulators";
  const std::string float8 =
      "float8 matmuls of linear layers, current scaling, float32 accumulators (2 matmul e4m3 x "
      "e4m3)";
  EXPECT_FALSE(is_suspect({bfloat16, bfloat16 + ", gradients sent as bfloat16"}, "none"));
  EXPECT_TRUE(is_suspect({bfloat16, "float32"}, "none"));
  EXPECT_FALSE(is_suspect({bfloat16 + " (6 of 8 matmuls; the others float32)"}, "none"));
  EXPECT_TRUE(is_suspect(
      {bfloat16 + " (6 of 8 matmuls; the others float32; 2 of bfloat16 multiplied as float32)"},
      "none"));
  EXPECT_FALSE(is_suspect({float8 + "; else " + bfloat16, float8, bfloat16}, "current"));
  EXPECT_TRUE(is_suspect({float8 + "; else float32", float8}, "current"));
  EXPECT_TRUE(is_suspect({float8, "float32"}, "current"));
}

TEST(ReceiptTest, LibrariesNameTheNcclOfSeveralGpus) {
  Job job = JobWith({});
  job.plan.mutable_device()->set_versions("CUDA 13.0");
  EXPECT_EQ(MakeReceipt(job).environment().libraries(), "CUDA 13.0");
  job.plan.mutable_device()->set_nccl("2.28.9");
  EXPECT_EQ(MakeReceipt(job).environment().libraries(), "CUDA 13.0; NCCL 2.28.9");
}

TEST(ReceiptTest, ATallyOutlivesTheCoordinator) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  for (int64_t step = 1; step <= 5; ++step) cluster.Report("a", step);
  cluster.Pass(std::chrono::seconds(1));
  const v1::ReceiptTally before = cluster.job("a").tally;
  EXPECT_GT(before.warm_up_steps(), 0);
  cluster.Restart();
  EXPECT_EQ(cluster.job("a").tally.SerializeAsString(), before.SerializeAsString());
}

}  // namespace
}  // namespace troupe
