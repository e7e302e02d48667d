#include "coordinator/service/measure.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "actor/sim/system.h"
#include "base/metrics/purpose.h"

namespace troupe {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class MetricsActorTest : public testing::Test {
 protected:
  MetricsActorTest() {
    system_.Start(system_.AddNode("coordinator", [this](NodeContext& context) {
      actor_ = context.Spawn("metrics", std::make_unique<MetricsActor>(metrics_));
    }));
    system_.RunFor(seconds(1));
  }

  std::string TextAfter(Measured measured) {
    EXPECT_TRUE(system_.Send(actor_, AnyMessage(std::move(measured))).ok());
    system_.RunFor(seconds(1));
    return metrics_.ToText();
  }

  Metrics metrics_;
  SimulatedSystem system_{SimulationOptions{}};
  Address actor_;
};

TEST_F(MetricsActorTest, CountsWhatTheEngineHadToDrop) {
  EXPECT_THAT(TextAfter({}), HasSubstr("troupe_measurements_dropped_total 0"));
  EXPECT_THAT(TextAfter({.dropped = 3}), HasSubstr("troupe_measurements_dropped_total 3"));
}

TEST_F(MetricsActorTest, ForgetsAJobAfterTheMeasurementsOfItsEnd) {
  Measured begun;
  begun.jobs.push_back({.job = "a", .state = v1::JOB_STATE_RUNNING, .step = 7});
  EXPECT_THAT(TextAfter(std::move(begun)), HasSubstr("troupe_job_step{job_name=\"a\"} 7"));
  Measured ended;
  ended.measurements.push_back(RestartMeasured{"a"});
  ended.forgotten_jobs.push_back("a");
  EXPECT_THAT(TextAfter(std::move(ended)), Not(HasSubstr("job_name=\"a\"")));
}

// The number of series of job `a`.
size_t SeriesOf(const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find("job_name=\"a\""); at != std::string::npos;
       at = text.find("job_name=\"a\"", at + 1)) {
    ++count;
  }
  return count;
}

// A job with every kind of measurement, on `ranks` ranks.
Measured EverythingOf(int ranks, int64_t step) {
  Measured measured;
  measured.jobs.push_back({.job = "a",
                           .state = v1::JOB_STATE_RUNNING,
                           .step = step,
                           .newest_commit = {{.step = step, .wall_time_ns = 1}},
                           .checkpoint_steps = 1,
                           .checkpoint_seconds = 1});
  StepMeasured stepped{.job = "a", .model_flops = 1, .peak_flops = 2};
  stepped.step.set_step(step);
  stepped.step.set_validation_loss(1);
  measured.measurements.push_back(stepped);
  for (int rank = 0; rank < ranks; ++rank) {
    RankMeasured ranked{.job = "a"};
    ranked.report.set_rank(rank);
    ranked.report.set_step(step);
    ranked.report.set_step_seconds(1);
    ranked.report.set_routed_choices(64);
    ranked.report.mutable_figures()->set_bubble_ratio(rank / 1024.0);
    for (const std::string_view purpose : kPurposeNames)
      ranked.report.mutable_figures()->add_communication()->set_purpose(std::string(purpose));
    // Words of a rank that is wrong, or of another version.
    ranked.report.mutable_figures()->add_communication()->set_purpose(fmt::format("new {}", rank));
    for (int expert = 0; expert < 64; ++expert)
      ranked.report.add_expert_load(expert == 0 ? 1 + rank : 1);
    measured.measurements.push_back(std::move(ranked));
  }
  for (const auto state : {v1::CHECKPOINT_STATE_COMMITTED, v1::CHECKPOINT_STATE_ABORTED,
                           v1::CHECKPOINT_STATE_QUARANTINED}) {
    CheckpointMeasured checkpoint{
        .writes = {{"io_uring_registered", 1}, {"io_uring", 1}, {"direct", 1}, {"buffered", 1}}};
    for (int rank = 0; rank < ranks; ++rank) checkpoint.writes[fmt::format("new {}", rank)] = 1;
    checkpoint.record.set_job("a");
    checkpoint.record.set_state(state);
    measured.measurements.push_back(checkpoint);
  }
  for (const auto found :
       {CheckpointFound::kWhole, CheckpointFound::kDamaged, CheckpointFound::kUnreadable}) {
    measured.measurements.push_back(CheckpointVerifiedMeasured{"a", found});
  }
  measured.measurements.push_back(CheckpointSkipped{"a"});
  measured.measurements.push_back(RestartMeasured{"a"});
  return measured;
}

TEST_F(MetricsActorTest, AJobHasAtMost400SeriesForAnyNumberOfRanks) {
  TextAfter(EverythingOf(64, 1));
  const size_t of_64 = SeriesOf(TextAfter(EverythingOf(64, 2)));
  EXPECT_LE(of_64, 400u);
  EXPECT_GT(of_64, 100u);
  TextAfter(EverythingOf(1000, 3));
  const std::string text = TextAfter(EverythingOf(1000, 4));
  EXPECT_EQ(SeriesOf(text), of_64);
  EXPECT_THAT(text,
              HasSubstr("troupe_pipeline_bubble_ratio{job_name=\"a\",rank=\"999\"} 0.9755859375"));
  EXPECT_THAT(text, HasSubstr("troupe_pipeline_median_bubble_ratio{job_name=\"a\"} 0.48828125"));
  EXPECT_THAT(text, Not(HasSubstr("rank=\"63\"")));
  EXPECT_THAT(text, HasSubstr("purpose=\"other\""));
  EXPECT_THAT(text, HasSubstr("method=\"other\""));
}

TEST_F(MetricsActorTest, SeriesOfAJobGoAQuarterOfAnHourAfterItsEnd) {
  TextAfter(EverythingOf(2, 1));
  const auto state_is = [this](v1::JobState state) {
    Measured measured;
    measured.jobs.push_back({.job = "a", .state = state, .step = 1});
    return TextAfter(std::move(measured));
  };
  state_is(v1::JOB_STATE_SUCCEEDED);
  system_.RunFor(std::chrono::minutes(14));
  EXPECT_GT(SeriesOf(TextAfter({})), 50u);
  system_.RunFor(std::chrono::minutes(1));
  EXPECT_EQ(SeriesOf(TextAfter({})), 0u);
  Measured late;
  late.measurements.push_back(CheckpointVerifiedMeasured{"a", CheckpointFound::kWhole});
  EXPECT_EQ(SeriesOf(TextAfter(std::move(late))), 0u) << "what comes later adds none";
  EXPECT_EQ(SeriesOf(state_is(v1::JOB_STATE_SUCCEEDED)), 0u);
  EXPECT_GT(SeriesOf(state_is(v1::JOB_STATE_QUEUED)), 0u) << "it was resumed";
}

TEST_F(MetricsActorTest, HasASeriesForEachStateOfAJob) {
  Measured running;
  running.jobs.push_back({.job = "a", .state = v1::JOB_STATE_RUNNING});
  const std::string text = TextAfter(std::move(running));
  for (const char* const state :
       {"QUEUED", "STARTING", "CHECKPOINTING", "RECOVERING", "SUCCEEDED", "FAILED", "CANCELLED"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("{{job_name=\"a\",state=\"{}\"}} 0", state)));
  }
  EXPECT_THAT(text, HasSubstr("troupe_job_state{job_name=\"a\",state=\"RUNNING\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("UNSPECIFIED")));
}

TEST_F(MetricsActorTest, CountersThatAlertsReadBeginAtZero) {
  Measured running;
  running.jobs.push_back({.job = "a", .state = v1::JOB_STATE_RUNNING});
  const std::string text = TextAfter(std::move(running));
  for (const char* const counter :
       {"troupe_job_restarts_total", "troupe_job_skipped_steps_total",
        "troupe_checkpoint_quarantined_total", "troupe_checkpoint_aborts_total",
        "troupe_checkpoint_bytes_total", "troupe_checkpoint_skipped_total"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("{}{{job_name=\"a\"}} 0", counter)));
  }
}

TEST_F(MetricsActorTest, RecordsTheFiguresOfAStep) {
  Measured measured;
  StepMeasured step{.job = "a"};
  step.step.set_grad_norm(1.5);
  step.step.set_learning_rate(0.25);
  step.step.set_validation_loss(3);
  step.step.set_skipped(true);
  measured.measurements.push_back(step);
  RankMeasured rank{.job = "a"};
  rank.report.mutable_figures()->set_core_wait_seconds(0.5);
  v1::CommunicationSeconds* const of = rank.report.mutable_figures()->add_communication();
  of->set_purpose("pipe");
  of->set_exposed(0.75);
  of->set_total(2);
  measured.measurements.push_back(rank);
  measured.measurements.push_back(rank);
  const std::string text = TextAfter(std::move(measured));
  EXPECT_THAT(text, HasSubstr("troupe_job_grad_norm{job_name=\"a\"} 1.5"));
  EXPECT_THAT(text, HasSubstr("troupe_job_learning_rate{job_name=\"a\"} 0.25"));
  EXPECT_THAT(text, HasSubstr("troupe_job_validation_loss{job_name=\"a\"} 3"));
  EXPECT_THAT(text, HasSubstr("troupe_job_skipped_steps_total{job_name=\"a\"} 1"));
  EXPECT_THAT(text, HasSubstr("troupe_job_core_wait_seconds_total{job_name=\"a\"} 1"));
  const std::string labels = "{job_name=\"a\",purpose=\"pipe\"} ";
  EXPECT_THAT(text, HasSubstr("troupe_job_communication_seconds_total" + labels + "4"));
  EXPECT_THAT(text, HasSubstr("troupe_job_exposed_communication_seconds_total" + labels + "1.5"));
}

TEST_F(MetricsActorTest, DescribesAJobByItsNewestLayout) {
  JobFigures figures{.job = "a", .state = v1::JOB_STATE_RUNNING};
  figures.shape = {"data_shard=4", "bfloat16", "1F1B"};
  figures.ranks = 4;
  figures.checkpoint_steps = 50;
  Measured four;
  four.jobs.push_back(figures);
  const std::string text = TextAfter(std::move(four));
  EXPECT_THAT(text, HasSubstr("troupe_job_info{job_name=\"a\",layout=\"data_shard=4\","
                              "precision=\"bfloat16\",schedule=\"1F1B\"} 1"));
  EXPECT_THAT(text, HasSubstr("troupe_job_ranks{job_name=\"a\"} 4"));
  EXPECT_THAT(text, HasSubstr("troupe_checkpoint_interval_steps{job_name=\"a\"} 50"));
  EXPECT_THAT(text, Not(HasSubstr("troupe_checkpoint_interval_seconds{")));
  figures.shape.layout = "data_shard=2";
  Measured two;
  two.jobs.push_back(figures);
  const std::string later = TextAfter(std::move(two));
  EXPECT_THAT(later, HasSubstr("layout=\"data_shard=2\""));
  EXPECT_THAT(later, Not(HasSubstr("layout=\"data_shard=4\"")));
}

TEST_F(MetricsActorTest, AResumedJobHasItsNewCheckpointIntervalAlone) {
  const auto with = [this](int64_t steps, int64_t interval_seconds) {
    Measured measured;
    measured.jobs.push_back({.job = "a",
                             .state = v1::JOB_STATE_RUNNING,
                             .checkpoint_steps = steps,
                             .checkpoint_seconds = interval_seconds});
    return TextAfter(std::move(measured));
  };
  EXPECT_THAT(with(50, 0), HasSubstr("troupe_checkpoint_interval_steps{job_name=\"a\"} 50"));
  std::string text = with(0, 600);
  EXPECT_THAT(text, HasSubstr("troupe_checkpoint_interval_seconds{job_name=\"a\"} 600"));
  EXPECT_THAT(text, Not(HasSubstr("troupe_checkpoint_interval_steps{")));
  text = with(0, 0);
  EXPECT_THAT(text, Not(HasSubstr("troupe_checkpoint_interval_seconds{")));
}

TEST_F(MetricsActorTest, AJobThatIsFoundStartingHasNoQueueWait) {
  Measured found;
  found.recovered.push_back({.figures = {.job = "a", .state = v1::JOB_STATE_STARTING}});
  EXPECT_THAT(TextAfter(std::move(found)), Not(HasSubstr("troupe_job_queue_wait_seconds_count")));
}

TEST_F(MetricsActorTest, CountsJobsByStateAndTheTimeOfEachInItsPhase) {
  Measured queued;
  queued.jobs.push_back({.job = "a", .state = v1::JOB_STATE_QUEUED});
  queued.jobs.push_back({.job = "b", .state = v1::JOB_STATE_FAILED});
  const std::string text = TextAfter(std::move(queued));
  EXPECT_THAT(text, HasSubstr("troupe_jobs{state=\"QUEUED\"} 1"));
  EXPECT_THAT(text, HasSubstr("troupe_jobs{state=\"FAILED\"} 1"));
  EXPECT_THAT(text, HasSubstr("troupe_jobs{state=\"RUNNING\"} 0"));
  Measured starting;
  starting.jobs.push_back({.job = "a", .state = v1::JOB_STATE_STARTING});
  const std::string later = TextAfter(std::move(starting));  // a second after it was queued
  EXPECT_THAT(later, HasSubstr("troupe_job_seconds_total{job_name=\"a\",phase=\"queued\"} 1"));
  EXPECT_THAT(later, HasSubstr("troupe_job_seconds_total{job_name=\"a\",phase=\"repeated\"} 0"));
  EXPECT_THAT(later, HasSubstr("troupe_job_queue_wait_seconds_count 1"));
}

TEST_F(MetricsActorTest, RecordsTheFiguresOfTheCoordinatorItself) {
  Measured measured;
  measured.control = {.leader_epoch = 7,
                      .sessions = 2,
                      .watchers = 3,
                      .devices_leased = 4,
                      .devices_free = 5,
                      .devices_condemned = 6,
                      .devices_draining = 1,
                      .devices_wanted = 8};
  measured.control->catalog = {.keys = 11, .files_bytes = 12, .memory_bytes = 13};
  measured.control->turns.Add(0.0002);
  measured.control->catalog_writes.Add(9);
  const std::string text = TextAfter(std::move(measured));
  for (const char* const line :
       {"troupe_leader_epoch 7", "troupe_sessions 2", "troupe_watchers 3",
        "troupe_devices{state=\"leased\"} 4", "troupe_devices{state=\"free\"} 5",
        "troupe_devices{state=\"condemned\"} 6", "troupe_devices{state=\"wanted\"} 8",
        "troupe_devices{state=\"draining\"} 1", "troupe_catalog_keys 11",
        "troupe_catalog_files_bytes 12", "troupe_catalog_memory_bytes 13",
        "troupe_catalog_background_errors 0", "troupe_engine_turn_seconds_bucket{le=\"0.0001\"} 0",
        "troupe_engine_turn_seconds_bucket{le=\"0.00025\"} 1",
        "troupe_catalog_write_seconds_bucket{le=\"5\"} 0", "troupe_catalog_write_seconds_sum 9"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(MetricsActorTest, ComparesTheBusyTimeOfEachRankWithTheMedian) {
  const auto step = [](int64_t number, int ranks, bool disturbed) {
    Measured measured;
    for (int rank = 0; rank < ranks; ++rank) {
      RankMeasured one{.job = "a"};
      one.report.set_rank(rank);
      one.report.set_step(number);
      one.report.set_step_seconds(10);
      one.report.set_disturbed(disturbed);
      one.report.mutable_figures()->set_data_wait_seconds(1);
      // The last rank waits for nobody.
      one.report.mutable_figures()->add_communication()->set_exposed(rank + 1 < ranks ? 5 : 1);
      measured.measurements.push_back(std::move(one));
    }
    return measured;
  };
  EXPECT_THAT(TextAfter(step(1, 16, true)), Not(HasSubstr("troupe_job_rank_busy_ratio")));
  std::string text = TextAfter(step(2, 16, false));
  for (const char* const line :
       {"troupe_job_rank_busy_ratio_bucket{job_name=\"a\",le=\"1\"} 15",
        "troupe_job_rank_busy_ratio_bucket{job_name=\"a\",le=\"1.5\"} 15",
        "troupe_job_rank_busy_ratio_bucket{job_name=\"a\",le=\"2\"} 16",
        "troupe_job_rank_busy_ratio_sum{job_name=\"a\"} 17",
        "troupe_job_rank_worst_busy_ratio{job_name=\"a\",rank=\"15\"} 2"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  text = TextAfter(step(3, 16, true));
  EXPECT_THAT(text, HasSubstr("troupe_job_rank_busy_ratio_count{job_name=\"a\"} 16"));
}

TEST_F(MetricsActorTest, DividesBlockedTimeIntoWaitingForTheLastRankAndMovingBytes) {
  const auto step = [](int64_t number, bool disturbed) {
    Measured measured;
    for (int rank = 0; rank < 4; ++rank) {
      RankMeasured one{.job = "a"};
      one.report.set_rank(rank);
      one.report.set_step(number);
      one.report.set_step_seconds(10);
      one.report.set_disturbed(disturbed);
      // Rank 3 comes last. Each has two purposes.
      one.report.mutable_figures()->add_communication()->set_exposed(rank < 3 ? 4 : 0.5);
      one.report.mutable_figures()->add_communication()->set_exposed(0.5);
      measured.measurements.push_back(std::move(one));
    }
    return measured;
  };
  EXPECT_THAT(TextAfter(step(1, true)), Not(HasSubstr("troupe_job_peer_wait_seconds")));
  const std::string text = TextAfter(step(2, false));
  EXPECT_THAT(text, HasSubstr("troupe_job_peer_wait_seconds{job_name=\"a\"} 2.625\n"));
  EXPECT_THAT(text, HasSubstr("troupe_job_transfer_seconds{job_name=\"a\"} 1\n"));
}

TEST_F(MetricsActorTest, CountsTheFlopsOfRecomputationApartFromTheModels) {
  Measured measured;
  measured.measurements.push_back(
      StepMeasured{.job = "a", .model_flops = 8, .recomputed_flops = 2, .peak_flops = 20});
  const std::string text = TextAfter(std::move(measured));
  EXPECT_THAT(text, HasSubstr("troupe_job_model_flops_total{job_name=\"a\"} 8"));
  EXPECT_THAT(text, HasSubstr("troupe_job_hardware_flops_total{job_name=\"a\"} 10"));
}

TEST_F(MetricsActorTest, HasASeriesForEachWorkerThatIsThere) {
  Measured both;
  both.workers = {{.worker = "w0", .is_connected = true}, {.worker = "w1"}};
  const std::string text = TextAfter(std::move(both));
  EXPECT_THAT(text, HasSubstr("troupe_worker_up{worker=\"w0\"} 1"));
  EXPECT_THAT(text, HasSubstr("troupe_worker_up{worker=\"w1\"} 0"));
  Measured one;
  one.workers = {{.worker = "w0", .is_connected = true}};
  EXPECT_THAT(TextAfter(std::move(one)), Not(HasSubstr("worker=\"w1\"")));
}

}  // namespace
}  // namespace troupe
