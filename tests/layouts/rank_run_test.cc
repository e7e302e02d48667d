// Tests one rank with tickets, checkpoints and stops, with its step thread but without a process or
// a daemon.
#include "worker/rank/rank_run.h"
#include "base/durable_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/manifest.h"
#include "collective/loopback/loopback_transport.h"
#include "interop/import.h"
#include "interop/testing.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "plan/job/job_defaults.h"
#include "plan/make_plan.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kLimit = std::chrono::seconds(20);

class RankRunTest : public ::testing::Test {
 protected:
  RankRunTest() {
    WriteSmallDataset(folder_.Child("data"));
    spec_ = SmallJob({}, folder_.Child("data"), 8);
    around_.files = &files_;
    around_.clock = &clock_;
    around_.progress = &progress_;
    around_.make_transport = []() -> StatusOr<std::unique_ptr<Transport>> {
      return std::make_unique<LoopbackFabric>(1)->MakeTransport(0);
    };
    around_.send = [this](const v1::RankReport& report) {
      if (report.has_metrics()) return;
      std::lock_guard lock(mutex_);
      reports_.push_back(report);
      changed_.notify_all();
    };
    around_.note_executable = [](kernels::Executable*) {};
  }

  v1::BeginRank Begin(uint64_t epoch) {
    v1::BeginRank begin;
    v1::StartRanks& start = *begin.mutable_start();
    start.set_job("jobs/small");
    start.set_group_epoch(epoch);
    *start.mutable_spec() = spec_;
    auto plan = MakeUnplacedPlan(spec_);
    TROUPE_CHECK_OK(plan.status());
    if (lag_steps_) plan->set_control_lag_steps(*lag_steps_);
    *start.mutable_plan() = *plan;
    start.set_group_key(std::string(32, 'k'));
    begin.set_incarnation(9);
    begin.set_log_path(folder_.Child("rank-0.log"));
    begin.set_ranks_on_host(1);
    begin.set_abort_seconds(5);
    begin.set_hang_seconds(20);
    return begin;
  }

  // Returns the next report; fails the test if none arrives.
  v1::RankReport Next() {
    std::unique_lock lock(mutex_);
    TROUPE_CHECK(changed_.wait_for(lock, kLimit, [this] { return !reports_.empty(); }),
                 "no report");
    v1::RankReport report = std::move(reports_.front());
    reports_.pop_front();
    return report;
  }
  bool Silent() {
    std::lock_guard lock(mutex_);
    return reports_.empty();
  }

  static v1::CoordinatorMessage Book(uint64_t epoch, const v1::RankAddress& address) {
    v1::CoordinatorMessage message;
    message.mutable_address_book()->set_job("jobs/small");
    message.mutable_address_book()->set_group_epoch(epoch);
    *message.mutable_address_book()->add_addresses() = address;
    return message;
  }
  // The addresses of this rank and of another one on the same fabric, in group epoch 1.
  static v1::CoordinatorMessage BookOfTwo(const v1::RankAddress& address) {
    v1::CoordinatorMessage book = Book(1, address);
    v1::RankAddress& other = *book.mutable_address_book()->add_addresses();
    other = address;
    other.set_rank(1);
    other.set_address("loopback:1");
    return book;
  }
  static v1::CoordinatorMessage Ticket(uint64_t epoch, int64_t end, double lifetime_seconds = 60,
                                       const std::vector<v1::CheckpointIntent>& intents = {}) {
    v1::CoordinatorMessage message;
    message.mutable_ticket()->set_job("jobs/small");
    message.mutable_ticket()->set_group_epoch(epoch);
    message.mutable_ticket()->set_end_step(end);
    message.mutable_ticket()->set_lifetime_seconds(lifetime_seconds);
    for (auto& intent : intents) *message.mutable_ticket()->add_intents() = intent;
    return message;
  }
  static v1::CoordinatorMessage Stop(uint64_t epoch, bool finished) {
    v1::CoordinatorMessage message;
    message.mutable_stop_ranks()->set_job("jobs/small");
    message.mutable_stop_ranks()->set_group_epoch(epoch);
    message.mutable_stop_ranks()->set_finished(finished);
    return message;
  }
  v1::CheckpointIntent Intent(int64_t attempt, int64_t step, bool then_stop) {
    v1::CheckpointIntent intent;
    intent.set_attempt(attempt);
    intent.set_step(step);
    intent.set_path(folder_.Child("step-00000004-epoch-1-attempt-" + std::to_string(attempt)));
    intent.set_then_stop(then_stop);
    return intent;
  }

  // Starts the rank up to RankReady, which it returns.
  v1::RankReady StartUp(RankRun& run, uint64_t epoch) {
    const v1::RankReport address = Next();
    TROUPE_CHECK(address.worker().has_rank_address(), "{}", address.ShortDebugString());
    run.Handle(Book(epoch, address.worker().rank_address()));
    const v1::RankReport ready = Next();
    TROUPE_CHECK(ready.worker().has_rank_ready(), "{}", ready.ShortDebugString());
    return ready.worker().rank_ready();
  }
  void ExpectStoppedAndIdle() {
    EXPECT_TRUE(Next().worker().has_rank_stopped());
    EXPECT_TRUE(Next().has_idle());
  }

  void ExpectThatALossThatIsNotFiniteEndsTheRank() {
    spec_.mutable_optimizer()->set_lr(1e38);
    RankRun run(Begin(1), around_);
    StartUp(run, 1);
    run.Handle(Ticket(1, 8));
    v1::RankReport report = Next();
    while (report.worker().has_step_report()) report = Next();
    ASSERT_TRUE(report.worker().has_rank_failed()) << report.ShortDebugString();
    EXPECT_EQ(report.worker().rank_failed().cause(), "NONFINITE");
    EXPECT_FALSE(report.worker().rank_failed().secondary());
    run.Handle(Stop(1, false));
    ExpectStoppedAndIdle();
  }

  // From now on jobs are small ones for emulated devices.
  void ComputeOnADevice() {
    spec_.set_devices("cuda");
    spec_.mutable_model()->set_pattern("AD");
    spec_.mutable_training()->set_sequence_length(4);
    around_.make_backend =
        [](const RankBackendOptions& options) -> StatusOr<std::unique_ptr<kernels::Backend>> {
      EXPECT_EQ(options.devices, "cuda");
      return std::make_unique<kernels::EmulatedBackend>();
    };
  }

  // The order to write the manifest of a checkpoint for which rank 0 has voted.
  static v1::CoordinatorMessage ManifestOrder(const v1::CheckpointIntent& intent,
                                              const v1::ShardDone& done) {
    v1::CoordinatorMessage write;
    write.mutable_write_manifest()->set_job("jobs/small");
    write.mutable_write_manifest()->set_group_epoch(1);
    write.mutable_write_manifest()->set_path(intent.path());
    v1::CheckpointManifest& manifest = *write.mutable_write_manifest()->mutable_manifest();
    manifest.set_format_version(kManifestFormatVersion);
    manifest.set_job("jobs/small");
    manifest.set_attempt(1);
    manifest.set_group_epoch(1);
    *manifest.mutable_state() = done.state();
    *manifest.mutable_shards() = done.shards();
    return write;
  }

  // Trains in group epoch 1 up to a commit of `intent` after step 4; returns its manifest's digest.
  std::string CommitAtStep4(const v1::CheckpointIntent& intent, std::vector<double>* losses) {
    RankRun run(Begin(1), around_);
    StartUp(run, 1);
    run.Handle(Ticket(1, 8, 60, {intent}));
    for (int64_t step = 1; step <= 4; ++step)
      losses->push_back(Next().worker().step_report().event().loss());
    const v1::RankReport vote = Next();
    EXPECT_TRUE(vote.worker().has_shard_done()) << vote.ShortDebugString();
    const v1::ShardDone& done = vote.worker().shard_done();
    EXPECT_EQ(done.step(), 4);
    EXPECT_EQ(done.incarnation(), 9u);
    EXPECT_EQ(done.state().consumed_samples(), 4 * 12);
    EXPECT_TRUE(Silent()) << "a step after the one it was to stop at";
    run.Handle(ManifestOrder(intent, done));
    const v1::RankReport written = Next();
    EXPECT_TRUE(written.worker().has_manifest_done()) << written.ShortDebugString();
    const std::string digest = written.worker().manifest_done().digest();
    run.Handle(Stop(1, true));
    ExpectStoppedAndIdle();
    return digest;
  }

  // Returns the failure of a rank that is asked to restore `path`.
  v1::RankFailed FailToRestore(uint64_t epoch, const std::string& path, const std::string& digest) {
    v1::BeginRank begin = Begin(epoch);
    begin.mutable_start()->set_restore_path(path);
    begin.mutable_start()->set_restore_digest(digest);
    RankRun run(begin, around_);
    return EndFailed(run, epoch);
  }
  // Expects the next report to be the rank's failure, stops the rank and returns the failure.
  v1::RankFailed EndFailed(RankRun& run, uint64_t epoch) {
    const v1::RankReport failed = Next();
    EXPECT_TRUE(failed.worker().has_rank_failed()) << failed.ShortDebugString();
    run.Handle(Stop(epoch, false));
    ExpectStoppedAndIdle();
    return failed.worker().rank_failed();
  }

  const TemporaryDirectory folder_;
  PosixFileSystem files_;
  SystemClock clock_;
  StepProgress progress_;
  RankSurroundings around_;
  v1::JobSpec spec_;
  std::optional<int32_t> lag_steps_;  // absent: as in the plan
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::RankReport> reports_;
};

TEST_F(RankRunTest, RunsToItsTicketsEndAndNoFurther) {
  RankRun run(Begin(1), around_);
  EXPECT_EQ(StartUp(run, 1).step(), 0);
  run.Handle(Ticket(1, 3));
  for (int64_t step = 1; step <= 3; ++step) {
    const v1::RankReport report = Next();
    EXPECT_EQ(report.worker().step_report().step(), step);
    EXPECT_GT(report.worker().step_report().event().loss(), 0);
    EXPECT_EQ(report.worker().step_report().event().tokens(), 12 * 16);
  }
  // Messages for another group epoch have no effect.
  run.Handle(Ticket(2, 8));
  EXPECT_TRUE(Silent());
  run.Handle(Ticket(1, 4));
  EXPECT_EQ(Next().worker().step_report().step(), 4);
  run.Handle(Stop(1, false));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunTest, ATicketWhoseLifetimeIsOverEndsTheRank) {
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  run.Handle(Ticket(1, 1, 30));
  EXPECT_TRUE(Next().worker().has_step_report());
  run.CheckTicket(clock_.Now() + std::chrono::seconds(29));
  EXPECT_TRUE(Silent());
  run.CheckTicket(clock_.Now() + std::chrono::seconds(31));
  const v1::RankReport failed = Next();
  ASSERT_TRUE(failed.worker().has_rank_failed()) << failed.ShortDebugString();
  EXPECT_THAT(failed.worker().rank_failed().message(), HasSubstr("the ticket has expired"));
  run.Handle(Stop(1, false));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunTest, OnADeviceCommitsWhatAProcessorResumesFrom) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the emulator is too slow under AddressSanitizer for the limits of this test";
#endif
  const auto on_processor = around_.make_backend;
  ComputeOnADevice();
  std::vector<double> losses;
  const v1::CheckpointIntent intent = Intent(1, 4, true);
  const std::string digest = CommitAtStep4(intent, &losses);
  spec_.set_devices("cpu");
  around_.make_backend = on_processor;
  v1::BeginRank begin = Begin(2);
  begin.mutable_start()->set_restore_path(intent.path());
  begin.mutable_start()->set_restore_digest(digest);
  RankRun run(begin, around_);
  EXPECT_EQ(StartUp(run, 2).step(), 4);
  run.Handle(Ticket(2, 5));
  EXPECT_LT(Next().worker().step_report().event().loss(), losses.front());
  run.Handle(Stop(2, false));
  ExpectStoppedAndIdle();
}

// A backend with its device blocked in a device-side collective.
class WaitingBackend : public kernels::EmulatedBackend {
 public:
  std::vector<CollectiveFlight> Flights() const override {
    return {{.group = "tensor/0 (NCCL)",
             .axis = "tensor",
             .ranks = {0, 1},
             .entered = 12,
             .blocked_in = 12,
             .operation = CollectiveOperation::kAllGather,
             .purpose = Purpose::kSequence,
             .bytes = 64,
             .waited = std::chrono::seconds(3)}};
  }
  std::string FlightRecorderJson() const override { return R"({"status":"OK","groups":[]})"; }
};

TEST_F(RankRunTest, ARankReportsInWhichCollectiveItsDeviceIsBlocked) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the emulator is too slow under AddressSanitizer for the limits of this test";
#endif
  ComputeOnADevice();
  around_.make_backend =
      [](const RankBackendOptions&) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<WaitingBackend>();
  };
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  run.Handle(Ticket(1, 1, 30));
  EXPECT_TRUE(Next().worker().has_step_report());
  run.CheckTicket(clock_.Now() + std::chrono::seconds(31));
  const v1::RankReport failed = Next();
  ASSERT_TRUE(failed.worker().has_rank_failed()) << failed.ShortDebugString();
  EXPECT_THAT(
      failed.worker().rank_failed().message(),
      HasSubstr(
          "; in flight on the device: all_gather of axis tensor, purpose sequence, group tensor/0 "
          "(NCCL), 64 bytes, operation 12 of the group, for 3.0 s"));
  v1::CoordinatorMessage stop = Stop(1, false);
  stop.mutable_stop_ranks()->set_report_flight(true);
  run.Handle(stop);
  const v1::RankReport flight = Next();
  ASSERT_TRUE(flight.worker().has_rank_flight()) << flight.ShortDebugString();
  ASSERT_EQ(flight.worker().rank_flight().groups_size(), 1);
  EXPECT_EQ(flight.worker().rank_flight().groups(0).group(), "tensor/0 (NCCL)");
  EXPECT_EQ(flight.worker().rank_flight().groups(0).blocked_in(), 12u);
  EXPECT_EQ(flight.worker().rank_flight().groups(0).operation(), "all_gather");
  ExpectStoppedAndIdle();
  std::ifstream record(folder_.Child("rank-0.epoch-1.flight.json"));
  std::stringstream text;
  text << record.rdbuf();
  EXPECT_EQ(nlohmann::json::parse(text.str())["device"],
            nlohmann::json::parse(R"({"status":"OK","groups":[]})"));
}

// A backend without cuDNN that chose three of its implementations from a tuning cache.
class BackendWithoutCudnn : public kernels::EmulatedBackend {
 public:
  BackendWithoutCudnn()
      : EmulatedBackend(kernels::cuda::emulator::StreamOrder::kComputeFirst,
                        {.attention_absence = "libcudnn.so.9 is not found"}) {}
  kernels::PreparationCounts preparation_counts() const override {
    kernels::PreparationCounts counts = EmulatedBackend::preparation_counts();
    counts.tuning_cache_hits = 3;
    return counts;
  }
};

TEST_F(RankRunTest, ARankWithoutCudnnReportsItsAttentionAsFallbacks) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the emulator is too slow under AddressSanitizer for the limits of this test";
#endif
  ComputeOnADevice();
  spec_.mutable_training()->set_compute_dtype("bfloat16");
  around_.make_backend =
      [](const RankBackendOptions&) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<BackendWithoutCudnn>();
  };
  RankRun run(Begin(1), around_);
  const v1::RankEnvironment environment = StartUp(run, 1).environment();
  ASSERT_EQ(environment.fallbacks_size(), 2) << environment.ShortDebugString();
  EXPECT_EQ(environment.fallbacks(0).operation(), "attention");
  EXPECT_EQ(environment.fallbacks(0).count(), 1);
  EXPECT_EQ(environment.fallbacks(1).operation(), "attention_grad");
  EXPECT_EQ(environment.fallbacks(1).count(), 1);
  EXPECT_EQ(environment.tuning_cache_hits(), 3);
  run.Handle(Stop(1, false));
  ExpectStoppedAndIdle();
}

// A backend with a device that cannot release everything that ran on it.
class HoldingBackend : public kernels::EmulatedBackend {
 public:
  bool releases_device() const override { return false; }
};

TEST_F(RankRunTest, AProcessThatCannotReleaseItsDeviceEnds) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the emulator is too slow under AddressSanitizer for the limits of this test";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ComputeOnADevice();
  around_.make_backend =
      [](const RankBackendOptions&) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<HoldingBackend>();
  };
  const auto run_and_stop = [this] {
    RankRun run(Begin(1), around_);
    StartUp(run, 1);
    run.Handle(Stop(1, true));
  };
  EXPECT_EXIT(run_and_stop(), testing::ExitedWithCode(0),
              "its device cannot be released for another rank");
}

TEST_F(RankRunTest, CommitsWhatIsDueStopsWhereAskedAndResumesFromIt) {
  std::vector<double> losses;
  const v1::CheckpointIntent intent = Intent(1, 4, true);
  const std::string digest = CommitAtStep4(intent, &losses);
  v1::BeginRank begin = Begin(2);
  begin.mutable_start()->set_restore_path(intent.path());
  begin.mutable_start()->set_restore_digest(digest);
  RankRun run(begin, around_);
  EXPECT_EQ(StartUp(run, 2).step(), 4);
  run.Handle(Ticket(2, 5));
  const v1::RankReport fifth = Next();
  EXPECT_EQ(fifth.worker().step_report().step(), 5);
  run.Handle(Stop(2, false));
  ExpectStoppedAndIdle();

  // The losses equal those without the interruption.
  const TrainResult whole = Train(spec_, {.steps = 5});
  EXPECT_EQ(whole.steps[0][3].event.loss(), losses[3]);
  EXPECT_EQ(whole.steps[0][4].event.loss(), fifth.worker().step_report().event().loss());
}

TEST_F(RankRunTest, ACheckpointThatCannotBeWrittenIsVotedDownAndTrainingGoesOn) {
  v1::CheckpointIntent intent = Intent(1, 2, false);
  intent.set_path("/proc/none/step-00000002-epoch-1-attempt-1");
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  run.Handle(Ticket(1, 3, 60, {intent}));
  EXPECT_TRUE(Next().worker().has_step_report());
  EXPECT_TRUE(Next().worker().has_step_report());
  const v1::RankReport failed = Next();
  ASSERT_TRUE(failed.worker().has_shard_failed()) << failed.ShortDebugString();
  EXPECT_EQ(failed.worker().shard_failed().attempt(), 1);
  EXPECT_EQ(Next().worker().step_report().step(), 3);
  run.Handle(Stop(1, false));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunTest, AFinalCheckpointThatCannotBeWrittenIsWrittenWhenAskedForAgain) {
  v1::CheckpointIntent intent = Intent(1, 2, true);
  intent.set_path("/proc/none/step-00000002-epoch-1-attempt-1");
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  run.Handle(Ticket(1, 2, 60, {intent}));
  EXPECT_EQ(Next().worker().step_report().checkpoint_attempt(), 0);
  EXPECT_EQ(Next().worker().step_report().checkpoint_attempt(), 1);
  EXPECT_TRUE(Next().worker().has_shard_failed());
  v1::CoordinatorMessage request;
  request.mutable_checkpoint_request()->set_job("jobs/small");
  request.mutable_checkpoint_request()->set_group_epoch(1);
  *request.mutable_checkpoint_request()->mutable_intent() = Intent(3, 2, true);
  run.Handle(request);
  const v1::RankReport vote = Next();
  ASSERT_TRUE(vote.worker().has_shard_done()) << vote.ShortDebugString();
  EXPECT_EQ(vote.worker().shard_done().attempt(), 3);
  EXPECT_EQ(vote.worker().shard_done().step(), 2);
  EXPECT_EQ(vote.worker().shard_done().state().step(), 2);
  run.Handle(Stop(1, true));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunTest, AnImageOfTheStateIsWrittenAndGoneOnFromBitForBit) {
  v1::CheckpointIntent intent = Intent(1, 4, true);
  intent.set_path("/proc/none/small/step-00000004-epoch-1-attempt-1");
  v1::BeginRank begin = Begin(1);
  begin.set_image_directory(folder_.Child("images"));
  v1::ImageSaved saved;
  {
    RankRun run(begin, around_);
    StartUp(run, 1);
    run.Handle(Ticket(1, 8, 60, {intent}));
    for (int step = 1; step <= 4; ++step) EXPECT_TRUE(Next().worker().has_step_report());
    EXPECT_TRUE(Next().worker().has_shard_failed());
    v1::CoordinatorMessage order;
    order.mutable_save_images()->set_job("jobs/small");
    order.mutable_save_images()->set_group_epoch(1);
    order.mutable_save_images()->set_step(4);
    run.Handle(order);
    saved = Next().worker().image_saved();
    EXPECT_EQ(saved.error(), "");
    EXPECT_EQ(saved.step(), 4);
    run.Handle(Stop(1, false));
    ExpectStoppedAndIdle();
  }
  begin = Begin(2);
  v1::RankImage& image = *begin.mutable_start()->mutable_restore_images()->add_images();
  image.set_path(saved.path());
  image.set_digest(saved.digest());
  RankRun run(begin, around_);
  EXPECT_EQ(StartUp(run, 2).step(), 4);
  run.Handle(Ticket(2, 5));
  const double loss = Next().worker().step_report().event().loss();
  run.Handle(Stop(2, false));
  ExpectStoppedAndIdle();
  EXPECT_EQ(loss, Train(spec_, {.steps = 5}).steps[0][4].event.loss());
}

TEST_F(RankRunTest, AFolderOfAnotherIdentityIsNotWrittenAndProvesNothingAboutTheCheckpoint) {
  std::vector<double> losses;
  v1::CheckpointIntent intent = Intent(1, 4, true);
  intent.set_path(folder_.Child("ck/small/step-00000004-epoch-1-attempt-1"));
  const std::string digest = CommitAtStep4(intent, &losses);
  v1::BeginRank begin = Begin(2);
  begin.mutable_start()->set_restore_path(intent.path());
  begin.mutable_start()->set_restore_digest(digest);
  begin.mutable_start()->set_restore_folder_id("1");
  {
    RankRun run(begin, around_);
    const v1::RankFailed failed = EndFailed(run, 2);
    EXPECT_EQ(failed.bad_checkpoint_path(), "");
    EXPECT_EQ(failed.cause(), "STORAGE");
    EXPECT_FALSE(failed.secondary());
    EXPECT_THAT(failed.message(), HasSubstr("another disk, or none, is mounted"));
  }
  v1::CheckpointIntent lost = intent;
  lost.set_attempt(2);
  lost.set_path(folder_.Child("ck/small/step-00000004-epoch-3-attempt-2"));
  lost.set_folder_id("1");
  RankRun run(Begin(3), around_);
  StartUp(run, 3);
  run.Handle(Ticket(3, 4, 60, {lost}));
  for (int step = 1; step <= 4; ++step) EXPECT_TRUE(Next().worker().has_step_report());
  EXPECT_THAT(Next().worker().shard_failed().reason(), HasSubstr("another disk, or none"));
  EXPECT_FALSE(files_.Stat(lost.path(), SymbolicLinks::kFollow).ok()) << "it was made there";
  run.Handle(Stop(3, false));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunTest, DataThatAreAwayAreStorageAndOtherDataThanTheJobsAreFinal) {
  spec_.mutable_data()->set_train(folder_.Child("gone"));
  RankRun away(Begin(1), around_);
  const v1::RankFailed storage = EndFailed(away, 1);
  EXPECT_EQ(storage.cause(), "STORAGE");
  EXPECT_TRUE(storage.of_data());
  EXPECT_FALSE(storage.secondary());
  EXPECT_THAT(storage.message(), HasSubstr("data.train cannot be read: open"));

  spec_.mutable_data()->set_train(folder_.Child("data"));
  RankRun first(Begin(2), around_);
  const v1::DataIdentity data = Next().worker().rank_address().data();
  EXPECT_EQ(data.datasets_size(), 1);
  first.Handle(Stop(2, false));
  ExpectStoppedAndIdle();

  WriteSmallDataset(folder_.Child("data"), 100);
  v1::BeginRank begin = Begin(3);
  *begin.mutable_start()->mutable_data() = data;
  RankRun other(begin, around_);
  const v1::RankFailed refused = EndFailed(other, 3);
  EXPECT_EQ(refused.cause(), "DATA");
  EXPECT_EQ(refused.code(), static_cast<int>(StatusCode::kFailedPrecondition));
  EXPECT_FALSE(refused.of_data());
  EXPECT_THAT(refused.message(), HasSubstr("the job began with 40 documents, 10000 tokens"));
}

TEST_F(RankRunTest, AModelDirectoryThatIsAwayIsStorageAndOneThatIsThereIsFinal) {
  const std::string directory = folder_.Child("model");
  FaultyFileSystem faulty(files_);
  around_.files = &faulty;
  const auto fail = [&](const std::string& from) {
    v1::BeginRank begin = Begin(1);
    begin.mutable_start()->mutable_spec()->mutable_model()->set_from(from);
    RankRun run(begin, around_);
    return EndFailed(run, 1);
  };
  const auto expect_away = [](const v1::RankFailed& failed, StatusCode code) {
    EXPECT_EQ(failed.cause(), "STORAGE") << failed.message();
    EXPECT_EQ(failed.code(), static_cast<int>(code)) << failed.message();
    EXPECT_TRUE(failed.of_data()) << "it is not checkpoint.folder";
    EXPECT_FALSE(failed.secondary());
    EXPECT_THAT(failed.message(), HasSubstr("model.from cannot be read: "));
  };
  expect_away(fail(directory), StatusCode::kFailedPrecondition);
  expect_away(fail(folder_.Child("data.bin")), StatusCode::kUnavailable);  // ENOTDIR
  TROUPE_CHECK_OK(files_.MakeDirectory(directory));
  expect_away(fail(directory), StatusCode::kFailedPrecondition);  // the mount point alone
  TROUPE_CHECK_OK(WriteFileDurably(files_, directory + "/config.json", AsBytes("{}")));
  const v1::RankFailed lacks = fail(directory);
  EXPECT_EQ(lacks.cause(), "");
  EXPECT_EQ(lacks.code(), static_cast<int>(StatusCode::kNotFound));
  EXPECT_THAT(lacks.message(), HasSubstr("model.from: " + directory + ": has neither"));
  TROUPE_CHECK_OK(WriteFileDurably(files_, directory + "/model.safetensors", AsBytes("12345678")));
  const v1::RankFailed damaged = fail(directory);
  EXPECT_EQ(damaged.cause(), "");
  EXPECT_EQ(damaged.code(), static_cast<int>(StatusCode::kInvalidArgument));
  faulty.Add({FileOperation::kRead, "model.safetensors", 1, 1, EIO});
  expect_away(fail(directory), StatusCode::kUnavailable);
  faulty.Add({FileOperation::kOpen, "model.safetensors", 1, 1, EACCES});
  expect_away(fail(directory), StatusCode::kFailedPrecondition);
}

// Together the ranks compare the whole table, each its own rows.
TEST_F(RankRunTest, AHeadThatDiffersFromItsTiedTableIsRefusedByTheRankThatHasTheRow) {
  const std::string directory = folder_.Child("model");
  WriteSmallLlama(directory, true, NumberFormat::kFloat32);
  spec_ = SmallJob({.tensor = 2}, folder_.Child("data"), 8);
  spec_.mutable_model()->Clear();
  spec_.mutable_model()->set_from(directory);
  TROUPE_CHECK_OK(InlineHfModel(files_, spec_.mutable_model()));
  ApplyDefaults(&spec_);
  const auto tensors = LlamaTensors(spec_.model());
  TROUPE_CHECK_OK(tensors.status());
  std::vector<SafetensorsTensor> stored;
  for (const ModelTensor& tensor : *tensors) {
    stored.push_back(
        {tensor.name, "F32", tensor.shape, SmallWeights(tensor, NumberFormat::kFloat32)});
  }
  ASSERT_EQ(stored[0].name, kEmbeddingTensor);
  std::string head = stored[0].bytes;
  head.back() ^= 1;  // in the last row, which only rank 1 has
  stored.push_back({kHeadTensor, "F32", stored[0].shape, head});
  WriteText(directory + "/model.safetensors", SafetensorsFile(stored));

  LoopbackFabric fabric(2);
  int rank = 0;
  around_.make_transport = [&]() -> StatusOr<std::unique_ptr<Transport>> {
    return fabric.MakeTransport(rank);
  };
  RankRun equal(Begin(1), around_);
  const v1::RankReport address = Next();
  EXPECT_TRUE(address.worker().has_rank_address()) << address.ShortDebugString();
  equal.Handle(Stop(1, false));
  ExpectStoppedAndIdle();
  rank = 1;
  v1::BeginRank begin = Begin(2);
  begin.set_rank(rank);
  RankRun differs(begin, around_);
  const v1::RankFailed refused = EndFailed(differs, 2);
  EXPECT_EQ(refused.cause(), "");
  EXPECT_EQ(refused.code(), static_cast<int>(StatusCode::kInvalidArgument));
  EXPECT_FALSE(refused.secondary());
  EXPECT_THAT(refused.message(), HasSubstr("model.from: " + directory));
  EXPECT_THAT(refused.message(), HasSubstr("lm_head.weight has other numbers than"));
}

TEST_F(RankRunTest, AnInitialCheckpointThatIsAwayIsStorageAndADamagedOneIsBad) {
  around_.folder_limit = std::chrono::milliseconds(1);
  std::vector<double> losses;
  const v1::CheckpointIntent intent = Intent(1, 4, true);
  (void)CommitAtStep4(intent, &losses);
  FaultyFileSystem faulty(files_);
  around_.files = &faulty;
  const auto fail = [&](const std::string& path) {
    spec_.mutable_checkpoint()->set_initial_load(path);
    return FailToRestore(2, path, "");
  };
  const auto expect_away = [](const v1::RankFailed& failed, StatusCode code) {
    EXPECT_EQ(failed.cause(), "STORAGE") << failed.message();
    EXPECT_EQ(failed.code(), static_cast<int>(code)) << failed.message();
    EXPECT_TRUE(failed.of_data()) << "it is not checkpoint.folder";
    EXPECT_EQ(failed.bad_checkpoint_path(), "");
    EXPECT_FALSE(failed.secondary());
    EXPECT_THAT(failed.message(), HasSubstr("checkpoint.initial_load cannot be read: "));
  };
  // A disk that is mounted above the checkpoint, at its parent, or at the checkpoint itself.
  TROUPE_CHECK_OK(files_.MakeDirectory(folder_.Child("mount")));
  for (const std::string name : {"mount/former/step-4", "mount/step-4", "mount"})
    expect_away(fail(folder_.Child(name)), StatusCode::kFailedPrecondition);
  const std::string shard = ShardFileName(0);
  faulty.Add({FileOperation::kRead, shard, 1, 100, EIO});
  expect_away(fail(intent.path()), StatusCode::kUnavailable);
  faulty.Add({FileOperation::kOpen, kManifestFileName, 1, 1, EACCES});
  expect_away(fail(intent.path()), StatusCode::kFailedPrecondition);
  around_.files = &files_;
  {
    v1::BeginRank begin = Begin(3);
    begin.mutable_start()->set_restore_path(intent.path());
    RankRun run(begin, around_);
    EXPECT_EQ(StartUp(run, 3).step(), 4) << "it is back";
    run.Handle(Stop(3, false));
    ExpectStoppedAndIdle();
  }
  for (const std::string& lost : {shard, std::string(kManifestFileName)}) {
    // Another file keeps the directory from looking like a mount point.
    TROUPE_CHECK_OK(WriteFileDurably(files_, intent.path() + "/note", AsBytes("x")));
    TROUPE_CHECK_OK(files_.Remove(JoinPath(intent.path(), lost)));
    const v1::RankFailed failed = fail(intent.path());
    EXPECT_EQ(failed.bad_checkpoint_path(), intent.path());
    EXPECT_EQ(failed.code(), static_cast<int>(StatusCode::kDataLoss)) << failed.message();
  }
}

TEST_F(RankRunTest, APathThatLeavesItsRootEndsTheRankWithACauseThatIsFinal) {
  const std::string root = folder_.Child("root");
  TROUPE_CHECK_OK(files_.MakeDirectory(root));
  TROUPE_CHECK_OK(files_.MakeDirectory(folder_.Child("model")));
  ASSERT_EQ(symlink("..", (root + "/link").c_str()), 0);
  ASSERT_EQ(symlink("../data.bin", (root + "/file.bin").c_str()), 0);
  ASSERT_EQ(symlink("../data.idx", (root + "/file.idx").c_str()), 0);
  std::vector<std::pair<std::string, std::function<void(v1::StartRanks&)>>> cases;
  const auto set_data = [&root](const std::string& path) {
    return [&root, path](v1::StartRanks& start) {
      start.mutable_roots()->set_data(root);
      start.mutable_spec()->mutable_data()->set_train(path);
    };
  };
  for (const std::string& path :
       {root + "/link/data", root + "/../data", root + "/file", folder_.Child("data")})
    cases.emplace_back("data.train " + path, set_data(path));
  for (const std::string& path : {root + "/link/", root + "/../", folder_.Child("")}) {
    cases.emplace_back("model.from " + path, [&root, path](v1::StartRanks& start) {
      start.mutable_roots()->set_imports(root);
      start.mutable_spec()->mutable_model()->set_from(path + "model");
    });
    cases.emplace_back("checkpoint.folder " + path, [&root, path](v1::StartRanks& start) {
      start.mutable_roots()->set_checkpoints(root);
      start.mutable_spec()->mutable_checkpoint()->set_folder(path + "ck");
    });
    for (const std::string id : {"", "1"}) {
      cases.emplace_back("restore_path " + path, [&root, path, id](v1::StartRanks& start) {
        start.mutable_roots()->set_checkpoints(root);
        start.set_restore_path(path + "ck/small/step-00000004-epoch-1-attempt-1");
        start.set_restore_folder_id(id);
      });
    }
  }
  for (const auto& [name, change] : cases) {
    SCOPED_TRACE(name);
    v1::BeginRank begin = Begin(1);
    change(*begin.mutable_start());
    RankRun run(begin, around_);
    const v1::RankFailed failed = EndFailed(run, 1);
    EXPECT_EQ(failed.cause(), "PATH_OUTSIDE_ROOT");
    EXPECT_EQ(failed.code(), static_cast<int>(StatusCode::kPermissionDenied));
    EXPECT_FALSE(failed.secondary());
    EXPECT_EQ(failed.bad_checkpoint_path(), "") << "nothing is known about its contents";
    EXPECT_THAT(failed.message(), HasSubstr("the path leaves " + root));
  }
  EXPECT_FALSE(files_.Stat(folder_.Child("ck"), SymbolicLinks::kFollow).ok());
}

TEST_F(RankRunTest, ACheckpointThatWouldBeWrittenOutsideItsRootIsRefusedWithTheCause) {
  const std::string root = folder_.Child("root");
  TROUPE_CHECK_OK(files_.MakeDirectory(root));
  TROUPE_CHECK_OK(files_.MakeDirectory(folder_.Child("outside")));
  ASSERT_EQ(symlink("../outside", (root + "/small").c_str()), 0);
  for (const std::string mode : {"async", "disabled"}) {
    SCOPED_TRACE(mode);
    spec_.mutable_checkpoint()->set_folder(root);
    spec_.mutable_checkpoint()->set_async_mode(mode);
    v1::BeginRank begin = Begin(1);
    begin.mutable_start()->mutable_roots()->set_checkpoints(root);
    v1::CheckpointIntent intent = Intent(1, 1, true);
    intent.set_path(root + "/small/step-00000001-epoch-1-attempt-1");
    RankRun run(begin, around_);
    StartUp(run, 1);
    run.Handle(Ticket(1, 1, 60, {intent}));
    EXPECT_TRUE(Next().worker().has_step_report());
    const v1::RankReport failed = Next();
    ASSERT_TRUE(failed.worker().has_shard_failed()) << failed.ShortDebugString();
    EXPECT_EQ(failed.worker().shard_failed().cause(), "PATH_OUTSIDE_ROOT");
    EXPECT_THAT(failed.worker().shard_failed().reason(), HasSubstr("the path leaves " + root));
    run.Handle(Stop(1, false));
    ExpectStoppedAndIdle();
  }
  EXPECT_TRUE(files_.List(folder_.Child("outside"))->empty());
}

TEST_F(RankRunTest, BeneathItsRootsAJobTrainsCommitsAndResumes) {
  const std::string root = folder_.Child("root");
  TROUPE_CHECK_OK(files_.MakeDirectory(root));
  TROUPE_CHECK_OK(files_.MakeDirectory(root + "/disk"));
  ASSERT_EQ(symlink("disk", (root + "/ck").c_str()), 0);
  const auto begin_in = [&](uint64_t epoch) {
    v1::BeginRank begin = Begin(epoch);
    begin.mutable_start()->mutable_roots()->set_data(folder_.path());
    begin.mutable_start()->mutable_roots()->set_checkpoints(root);
    begin.mutable_start()->mutable_roots()->set_imports("/none");  // the job imports nothing
    return begin;
  };
  spec_.mutable_checkpoint()->set_folder(root + "/ck");
  v1::CheckpointIntent intent = Intent(1, 1, true);
  intent.set_path(root + "/ck/small/step-00000001-epoch-1-attempt-1");
  std::string digest;
  {
    RankRun run(begin_in(1), around_);
    StartUp(run, 1);
    run.Handle(Ticket(1, 1, 60, {intent}));
    EXPECT_TRUE(Next().worker().has_step_report());
    const v1::RankReport vote = Next();
    ASSERT_TRUE(vote.worker().has_shard_done()) << vote.ShortDebugString();
    run.Handle(ManifestOrder(intent, vote.worker().shard_done()));
    const v1::RankReport written = Next();
    ASSERT_TRUE(written.worker().has_manifest_done()) << written.ShortDebugString();
    digest = written.worker().manifest_done().digest();
    run.Handle(Stop(1, true));
    ExpectStoppedAndIdle();
  }
  EXPECT_TRUE(files_.Stat(root + "/disk/small", SymbolicLinks::kRefuse).ok());
  v1::BeginRank begin = begin_in(2);
  begin.mutable_start()->set_restore_path(intent.path());
  begin.mutable_start()->set_restore_digest(digest);
  RankRun run(begin, around_);
  EXPECT_EQ(StartUp(run, 2).step(), 1);
  run.Handle(Stop(2, false));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunTest, AMissingRootIsAFaultOfTheHostAndNotOfTheCheckpoint) {
  v1::BeginRank begin = Begin(1);
  begin.mutable_start()->mutable_roots()->set_checkpoints(folder_.Child("none"));
  begin.mutable_start()->set_restore_path(folder_.Child("none/ck/a/step-1"));
  RankRun run(begin, around_);
  const v1::RankFailed failed = EndFailed(run, 1);
  EXPECT_EQ(failed.cause(), "STORAGE");
  EXPECT_EQ(failed.bad_checkpoint_path(), "");
  EXPECT_FALSE(failed.secondary());
  EXPECT_THAT(failed.message(), HasSubstr("root " + folder_.Child("none")));
}

TEST_F(RankRunTest, AManifestIsNotWrittenBeforeEveryShardIsSeen) {
  around_.folder_limit = std::chrono::milliseconds(1);
  const v1::CheckpointIntent intent = Intent(1, 4, true);
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  run.Handle(Ticket(1, 8, 60, {intent}));
  for (int step = 1; step <= 4; ++step) EXPECT_TRUE(Next().worker().has_step_report());
  const v1::RankReport vote = Next();
  ASSERT_TRUE(vote.worker().has_shard_done()) << vote.ShortDebugString();
  v1::CoordinatorMessage write;
  write.mutable_write_manifest()->set_job("jobs/small");
  write.mutable_write_manifest()->set_group_epoch(1);
  write.mutable_write_manifest()->set_path(intent.path());
  v1::CheckpointManifest& manifest = *write.mutable_write_manifest()->mutable_manifest();
  manifest.set_format_version(kManifestFormatVersion);
  manifest.set_job("jobs/small");
  manifest.set_attempt(1);
  *manifest.mutable_state() = vote.worker().shard_done().state();
  *manifest.mutable_shards() = vote.worker().shard_done().shards();
  // The vote of another host, with a file that this host cannot see.
  v1::ShardFile other = manifest.shards(0);
  other.set_name("rank-00001.safetensors");
  *manifest.add_shards() = other;
  run.Handle(write);
  const v1::RankReport refused = Next();
  ASSERT_TRUE(refused.worker().has_shard_failed()) << refused.ShortDebugString();
  EXPECT_THAT(refused.worker().shard_failed().reason(), HasSubstr("does not see 1 of 2 shards"));
  EXPECT_FALSE(
      files_.Stat(JoinPath(intent.path(), kManifestFileName), SymbolicLinks::kFollow).ok());
  run.Handle(Stop(1, false));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunTest, ACheckpointThatLacksAFileIsBad) {
  const v1::RankFailed failed =
      FailToRestore(1, folder_.Child("step-00000004-epoch-1-attempt-7"), "");
  EXPECT_THAT(failed.bad_checkpoint_path(), HasSubstr("attempt-7"));
  EXPECT_FALSE(failed.secondary());

  const v1::CheckpointIntent intent = Intent(1, 4, true);
  std::vector<double> losses;
  const std::string digest = CommitAtStep4(intent, &losses);
  const auto entries = files_.List(intent.path());
  ASSERT_TRUE(entries.ok());
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name != kManifestFileName)
      TROUPE_CHECK_OK(files_.Remove(JoinPath(intent.path(), entry.name)));
  }
  EXPECT_EQ(FailToRestore(2, intent.path(), digest).bad_checkpoint_path(), intent.path());
}

TEST_F(RankRunTest, ACheckpointThatNeedsAChannelOfALaterBuildIsRefusedByNameAndNotBad) {
  const v1::CheckpointIntent intent = Intent(1, 4, true);
  std::vector<double> losses;
  (void)CommitAtStep4(intent, &losses);
  v1::CheckpointManifest manifest = ReadManifest(files_, intent.path(), "").value();
  const std::string path = JoinPath(intent.path(), kManifestFileName);
  const auto rewrite = [&] {
    TROUPE_CHECK_OK(files_.Remove(path));
    return WriteManifest(files_, intent.path(), manifest).value().digest;
  };
  // A later version with channels that this build knows: the rank resumes.
  const v1::Plan plan = MakeUnplacedPlan(spec_).value();
  *manifest.mutable_samples() = plan.samples();
  manifest.mutable_samples()->set_version(7);
  {
    v1::BeginRank begin = Begin(2);
    begin.mutable_start()->set_restore_path(intent.path());
    begin.mutable_start()->set_restore_digest(rewrite());
    RankRun run(begin, around_);
    EXPECT_EQ(StartUp(run, 2).step(), 4);
    run.Handle(Stop(2, false));
    ExpectStoppedAndIdle();
  }
  auto& channel = *manifest.mutable_samples()->add_channels();
  channel.set_name("region");
  channel.set_type("f32");
  channel.set_extent("token");
  channel.set_lanes(64);
  const v1::RankFailed failed = FailToRestore(3, intent.path(), rewrite());
  EXPECT_EQ(failed.code(), static_cast<int>(StatusCode::kFailedPrecondition));
  EXPECT_THAT(failed.message(),
              HasSubstr("it needs channel region f32[64] a token of sample schema 7"));
  EXPECT_EQ(failed.bad_checkpoint_path(), "");
  EXPECT_FALSE(failed.secondary());
}

TEST_F(RankRunTest, AFolderThatThisWorkerDoesNotSeeProvesNothingAboutTheCheckpoint) {
  const v1::RankFailed failed =
      FailToRestore(1, folder_.Child("not-mounted/small/step-00000004-epoch-1-attempt-7"), "");
  EXPECT_EQ(failed.bad_checkpoint_path(), "");
  EXPECT_EQ(failed.cause(), "STORAGE");
  EXPECT_EQ(failed.code(), static_cast<int>(StatusCode::kFailedPrecondition));
  EXPECT_FALSE(failed.of_data());
  EXPECT_FALSE(failed.secondary());
}

TEST_F(RankRunTest, ACheckpointThatCannotBeReadIsNotBadAndItsReadingIsTriedTwice) {
  around_.folder_limit = std::chrono::milliseconds(1);
  const v1::CheckpointIntent intent = Intent(1, 4, true);
  std::vector<double> losses;
  const std::string digest = CommitAtStep4(intent, &losses);
  FaultyFileSystem faulty(files_);
  around_.files = &faulty;
  faulty.Add({.operation = FileOperation::kRead,
              .path_contains = "attempt-1/",
              .first_call = 2,
              .calls = 1,
              .error_number = EIO});
  {
    v1::BeginRank begin = Begin(2);
    begin.mutable_start()->set_restore_path(intent.path());
    begin.mutable_start()->set_restore_digest(digest);
    RankRun run(begin, around_);
    EXPECT_EQ(StartUp(run, 2).step(), 4);
    run.Handle(Stop(2, false));
    ExpectStoppedAndIdle();
  }
  faulty.Add({.operation = FileOperation::kRead,
              .path_contains = "attempt-1/",
              .first_call = 2,
              .calls = 100,
              .error_number = EIO});
  const v1::RankFailed failed = FailToRestore(3, intent.path(), digest);
  EXPECT_EQ(failed.bad_checkpoint_path(), "") << "another host may read it";
  EXPECT_EQ(failed.cause(), "STORAGE");
  EXPECT_FALSE(failed.of_data()) << "it is in the job's checkpoint folder";
  EXPECT_THAT(failed.message(), HasSubstr(intent.path() + " cannot be read: "));
  EXPECT_FALSE(failed.secondary());
}

TEST_F(RankRunTest, ARankThatWaitsTooLongForOthersBeforeAllAreReadyIsNotWhatWentWrongFirst) {
  spec_ = SmallJob({.data = 2}, folder_.Child("data"), 8);
  v1::BeginRank begin = Begin(1);
  begin.set_hang_seconds(0.1);
  // The other one never answers.
  LoopbackFabric fabric(2);
  auto silent = fabric.MakeTransport(1);
  around_.make_transport = [&]() -> StatusOr<std::unique_ptr<Transport>> {
    return fabric.MakeTransport(0);
  };
  RankRun run(begin, around_);
  const v1::RankReport address = Next();
  ASSERT_TRUE(address.worker().has_rank_address()) << address.ShortDebugString();
  run.Handle(BookOfTwo(address.worker().rank_address()));
  const v1::RankFailed failed = EndFailed(run, 1);
  EXPECT_EQ(failed.code(), static_cast<int>(StatusCode::kDeadlineExceeded));
  EXPECT_EQ(failed.cause(), "COLLECTIVE");
  EXPECT_TRUE(failed.secondary());
}

TEST_F(RankRunTest, TooLittleSharedMemoryIsTheCauseBeforeTheTransportIsOpened) {
  around_.shared_memory = [] {
    return SharedMemory{.path = "/dev/shm", .total_bytes = 1'000'000, .free_bytes = 1'000'000};
  };
  around_.make_transport = []() -> StatusOr<std::unique_ptr<Transport>> {
    ADD_FAILURE() << "the transport was opened";
    return Unavailable("ucp_worker_create: No resources are available");
  };
  RankRun run(Begin(1), around_);
  const v1::RankFailed failed = EndFailed(run, 1);
  EXPECT_EQ(failed.cause(), "SHARED_MEMORY");
  EXPECT_EQ(failed.code(), static_cast<int>(StatusCode::kFailedPrecondition));
  EXPECT_FALSE(failed.secondary());
  EXPECT_THAT(failed.message(), HasSubstr("/dev/shm has 1.0 MB, of which 1.0 MB are free"));
}

TEST_F(RankRunTest, SharedMemoryThatAnotherRankTookMeanwhileIsTheCauseOfAFailedTransport) {
  int64_t free_bytes = 5'000'000;
  around_.shared_memory = [&free_bytes] {
    return SharedMemory{.path = "/dev/shm", .total_bytes = 64'000'000, .free_bytes = free_bytes};
  };
  around_.make_transport = [&free_bytes]() -> StatusOr<std::unique_ptr<Transport>> {
    free_bytes = 700'000;
    return Unavailable("ucp_worker_create: No resources are available");
  };
  RankRun run(Begin(1), around_);
  const v1::RankFailed failed = EndFailed(run, 1);
  EXPECT_EQ(failed.cause(), "SHARED_MEMORY");
  EXPECT_EQ(failed.code(), static_cast<int>(StatusCode::kResourceExhausted));
  EXPECT_FALSE(failed.secondary());
}

// Counts the turns of waits until one first prepares to sleep.
class TurnCounter final : public Transport {
 public:
  TurnCounter(std::unique_ptr<Transport> whole, std::atomic<int>* turns)
      : whole_(std::move(whole)), turns_(*turns) {}

  const std::string& address() const override { return whole_->address(); }
  Status Connect(int peer, const std::string& address) override {
    return whole_->Connect(peer, address);
  }
  Link LinkTo(int peer) const override { return whole_->LinkTo(peer); }
  void Send(int peer, uint64_t tag, const void* data, size_t bytes, Transfer* transfer) override {
    whole_->Send(peer, tag, data, bytes, transfer);
  }
  void Receive(int peer, uint64_t tag, void* data, size_t bytes, Transfer* transfer) override {
    whole_->Receive(peer, tag, data, bytes, transfer);
  }
  void Cancel(Transfer* transfer) override { whole_->Cancel(transfer); }
  bool Progress() override {
    if (!sleeps_) ++turns_;
    return whole_->Progress();
  }
  int event_descriptor() const override { return whole_->event_descriptor(); }
  bool Arm() override {
    sleeps_ = true;
    return whole_->Arm();
  }
  Status Close(bool flush, Duration limit) override { return whole_->Close(flush, limit); }

 private:
  const std::unique_ptr<Transport> whole_;
  std::atomic<int>& turns_;
  bool sleeps_ = false;
};

// One of two ranks, which waits for the other one in vain.
class RankRunWaitTest : public RankRunTest {
 protected:
  RankRunWaitTest() { spec_ = SmallJob({.data = 2}, folder_.Child("data"), 8); }

  // Returns the number of turns of the wait before it sleeps. The daemon moves the rank's process
  // several times: each number is that of the ranks that share the new cores. It has no network yet
  // at the moves of `before`, and has one at those of `after`.
  int TurnsBeforeSleep(const std::vector<int>& before, const std::vector<int>& after) {
    std::atomic<int> turns = 0;
    LoopbackFabric fabric(2);
    const auto silent = fabric.MakeTransport(1);
    std::promise<void> moved;
    around_.make_transport = [&]() -> StatusOr<std::unique_ptr<Transport>> {
      EXPECT_EQ(moved.get_future().wait_for(kLimit), std::future_status::ready);
      return std::make_unique<TurnCounter>(fabric.MakeTransport(0), &turns);
    };
    v1::BeginRank begin = Begin(1);
    begin.set_hang_seconds(0.3);
    RankRun run(begin, around_);
    const auto move = [&run](int ranks) {
      v1::CoreSet cores;
      cores.add_cores(0);
      cores.set_shared_by(ranks);
      run.ShareCores(cores);
    };
    for (const int ranks : before) move(ranks);
    moved.set_value();
    const v1::RankReport address = Next();
    EXPECT_TRUE(address.worker().has_rank_address()) << address.ShortDebugString();
    for (const int ranks : after) move(ranks);
    run.Handle(BookOfTwo(address.worker().rank_address()));
    EXPECT_EQ(EndFailed(run, 1).code(), static_cast<int>(StatusCode::kDeadlineExceeded));
    return turns;
  }
};

TEST_F(RankRunWaitTest, SpinsOnlyOnCoresThatNoOtherRankHas) {
  // A wait that spins reads the clock every 16 turns, so it cannot sleep sooner.
  EXPECT_GE(TurnsBeforeSleep({}, {}), 16);
  EXPECT_EQ(TurnsBeforeSleep({2}, {}), 1) << "known before the network was made";
  EXPECT_EQ(TurnsBeforeSleep({}, {2}), 1) << "another job began";
  EXPECT_GE(TurnsBeforeSleep({2}, {1}), 16) << "the other job ended";
}

TEST_F(RankRunTest, ALossThatIsNotFiniteIsTheCauseOfTheRanksFailure) {
  ExpectThatALossThatIsNotFiniteEndsTheRank();
}

TEST_F(RankRunTest, ATokenOutsideTheVocabularyIsTheCauseOfTheRanksFailure) {
  spec_.mutable_model()->set_vocab_size(8);
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  run.Handle(Ticket(1, 8));
  const v1::RankFailed failed = EndFailed(run, 1);
  EXPECT_EQ(failed.cause(), "DATA");
  EXPECT_THAT(failed.message(), HasSubstr("vocab_size 8"));
}

TEST_F(RankRunTest, AnAskedForCheckpointIsTakenInsideTheTicket) {
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  v1::CoordinatorMessage request;
  request.mutable_checkpoint_request()->set_job("jobs/small");
  request.mutable_checkpoint_request()->set_group_epoch(1);
  *request.mutable_checkpoint_request()->mutable_intent() = Intent(5, 0, true);
  run.Handle(request);
  run.Handle(Ticket(1, 8));
  EXPECT_EQ(Next().worker().step_report().step(), 1);
  const v1::RankReport vote = Next();
  ASSERT_TRUE(vote.worker().has_shard_done()) << vote.ShortDebugString();
  EXPECT_EQ(vote.worker().shard_done().attempt(), 5);
  EXPECT_EQ(vote.worker().shard_done().step(), 1);
  run.Handle(Stop(1, true));
  ExpectStoppedAndIdle();
}

// Decisions that all ranks share take effect one step later, as on devices.
class RankRunAheadTest : public RankRunTest {
 protected:
  RankRunAheadTest() { lag_steps_ = 1; }
};

TEST_F(RankRunAheadTest, RunsToItsTicketsEndAndNoFurther) {
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  run.Handle(Ticket(1, 3));
  for (int64_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(Next().worker().step_report().step(), step);
  }
  EXPECT_TRUE(Silent());
  run.Handle(Ticket(1, 4));
  EXPECT_EQ(Next().worker().step_report().step(), 4);
  run.Handle(Stop(1, false));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunAheadTest, CommitsWhatIsDueOfThatStepAlsoOfTheFirstAfterAResume) {
  std::vector<double> losses;
  const v1::CheckpointIntent intent = Intent(1, 4, true);
  const std::string digest = CommitAtStep4(intent, &losses);
  v1::BeginRank begin = Begin(2);
  begin.mutable_start()->set_restore_path(intent.path());
  begin.mutable_start()->set_restore_digest(digest);
  RankRun run(begin, around_);
  EXPECT_EQ(StartUp(run, 2).step(), 4);
  run.Handle(Ticket(2, 8, 60, {Intent(2, 5, false), Intent(3, 7, true)}));
  const TrainResult whole = Train(spec_, {.steps = 7});
  for (int64_t step = 1; step <= 4; ++step) {
    EXPECT_EQ(losses[static_cast<size_t>(step - 1)],
              whole.steps[0][static_cast<size_t>(step - 1)].event.loss());
  }
  std::vector<int64_t> steps, votes;
  while (votes.size() < 2) {
    const v1::RankReport report = Next();
    if (report.worker().has_shard_done()) {
      votes.push_back(report.worker().shard_done().step());
      continue;
    }
    const v1::StepReport& reported = report.worker().step_report();
    steps.push_back(reported.step());
    EXPECT_EQ(reported.event().loss(),
              whole.steps[0][static_cast<size_t>(reported.step() - 1)].event.loss());
    EXPECT_EQ(reported.checkpoint_attempt(), reported.step() == 5   ? 2
                                             : reported.step() == 7 ? 3
                                                                    : 0);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{5, 6, 7}));
  EXPECT_EQ(votes, (std::vector<int64_t>{5, 7}));
  EXPECT_TRUE(Silent()) << "a step after the one it was to stop at";
  run.Handle(Stop(2, true));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunAheadTest, AnAskedForCheckpointIsOfTheStepThatWasInFlight) {
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  v1::CoordinatorMessage request;
  request.mutable_checkpoint_request()->set_job("jobs/small");
  request.mutable_checkpoint_request()->set_group_epoch(1);
  *request.mutable_checkpoint_request()->mutable_intent() = Intent(5, 0, true);
  run.Handle(request);
  run.Handle(Ticket(1, 8));
  EXPECT_EQ(Next().worker().step_report().checkpoint_attempt(), 0);
  const v1::RankReport second = Next();
  EXPECT_EQ(second.worker().step_report().step(), 2);
  EXPECT_EQ(second.worker().step_report().checkpoint_attempt(), 5);
  const v1::RankReport vote = Next();
  ASSERT_TRUE(vote.worker().has_shard_done()) << vote.ShortDebugString();
  EXPECT_EQ(vote.worker().shard_done().attempt(), 5);
  EXPECT_EQ(vote.worker().shard_done().step(), 2);
  run.Handle(Stop(1, true));
  ExpectStoppedAndIdle();
}

TEST_F(RankRunAheadTest, ALossThatIsNotFiniteIsTheCauseOfTheRanksFailure) {
  ExpectThatALossThatIsNotFiniteEndsTheRank();
}

TEST_F(RankRunAheadTest, WhatFailsWhileAStepIsInFlightEndsTheRankWithItsOwnCause) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the emulator is too slow under AddressSanitizer for the limits of this test";
#endif
  ComputeOnADevice();
  ASSERT_TRUE(ArmFailpoints("step.before_update=error@3").ok());
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  run.Handle(Ticket(1, 8));
  EXPECT_EQ(Next().worker().step_report().step(), 1);
  const v1::RankFailed failed = EndFailed(run, 1);
  ASSERT_TRUE(ArmFailpoints("").ok());
  EXPECT_THAT(failed.message(), HasSubstr("step.before_update"));
}

TEST_F(RankRunAheadTest, AStopFindsAStepInFlightAndEndsIt) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the emulator is too slow under AddressSanitizer for the limits of this test";
#endif
  ComputeOnADevice();
  spec_.mutable_training()->set_steps(100);
  RankRun run(Begin(1), around_);
  StartUp(run, 1);
  run.Handle(Ticket(1, 100));
  EXPECT_EQ(Next().worker().step_report().step(), 1);
  run.Handle(Stop(1, false));
  v1::RankReport report = Next();
  while (report.worker().has_step_report()) report = Next();
  EXPECT_TRUE(report.worker().has_rank_stopped()) << report.ShortDebugString();
  EXPECT_TRUE(Next().has_idle());
}

}  // namespace
}  // namespace troupe
