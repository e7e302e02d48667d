// Tests of jobs whose final checkpoint cannot be saved.
#include "coordinator/job/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = v1::CoordinatorMessage;

class Images : public ::testing::Test {
 protected:
  // Two ranks that have done all ten steps; the first save of the last step has failed.
  Images() {
    cluster_.Connect("worker-0");
    cluster_.Connect("worker-1");
    v1::JobSpec spec = TestSpec("a", 2, 10);
    spec.mutable_checkpoint()->set_final_save_seconds(100);
    cluster_.Submit(spec);
    cluster_.StartRanks("a");
    for (int64_t step = 1; step <= 10; ++step) {
      cluster_.Report("a", step, 0);
      cluster_.Report("a", step, 1);
    }
    FailToSave();
  }
  const Job& job() { return cluster_.job("a"); }

  void FailToSave() {
    v1::WorkerMessage failed;
    failed.mutable_shard_failed()->set_job("a");
    failed.mutable_shard_failed()->set_group_epoch(job().record.group_epoch());
    failed.mutable_shard_failed()->set_attempt(job().record.last_attempt());
    failed.mutable_shard_failed()->set_reason("no space left");
    cluster_.SendFrom("worker-0", failed);
  }
  // Advances time while every save fails. Returns whether images were requested.
  bool FailFor(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      cluster_.Heartbeat();
      cluster_.Pass(std::chrono::seconds(1));
      if (cluster_.Last("worker-1", Kind::kSaveImages) != nullptr) return true;
      FailToSave();
    }
    return false;
  }
  void SayImage(int rank, const std::string& error = "") {
    v1::WorkerMessage message;
    v1::ImageSaved& saved = *message.mutable_image_saved();
    saved.set_job("a");
    saved.set_group_epoch(job().record.group_epoch());
    saved.set_rank(rank);
    saved.set_step(10);
    saved.set_path(fmt::format("/data-{}/images/a/step-10", rank));
    saved.set_digest(fmt::format("sha256:{}", rank));
    saved.set_error(error);
    cluster_.SendFrom(job().plan.ranks(rank).worker(), message);
  }
  void EndWithImages() {
    ASSERT_TRUE(FailFor(110));
    SayImage(0);
    SayImage(1);
    cluster_.StopRanks("a", job().record.group_epoch(), {"worker-0", "worker-1"});
    ASSERT_EQ(job().record.state(), v1::JOB_STATE_FAILED);
  }
  Status Resume(bool discard = false, int64_t steps = 0, int ranks = 0) {
    ResumeJobCall resume{cluster_.next_call++, {}};
    resume.request.set_name("a");
    resume.request.set_discard_images(discard);
    if (steps > 0) resume.request.mutable_overrides()->mutable_training()->set_steps(steps);
    if (ranks > 0) {
      resume.request.mutable_overrides()->mutable_parallelism()->set_data_parallel_replicate_degree(
          ranks);
    }
    return cluster_.Do(resume).replies.at(0).status;
  }
  // The worker of `rank` reports its image, of group epoch 1 by default, in its next Hello.
  void Keeps(int rank, uint64_t epoch = 1, const std::string& of_job = "a") {
    v1::HeldImage image;
    image.set_job(of_job);
    image.set_group_epoch(epoch);
    image.set_path(fmt::format("/data-{}/images/{}/step-10", rank, of_job));
    cluster_.worker(fmt::format("worker-{}", rank)).images.push_back(image);
  }
  const v1::StartRanks& Started() {
    return cluster_.Last("worker-0", Kind::kStartRanks)->start_ranks();
  }

  TestCluster cluster_;
};

TEST_F(Images, AreTakenAtTheStatedLimitAndTheJobFailsWithThem) {
  EXPECT_FALSE(FailFor(98));
  EXPECT_TRUE(FailFor(5));
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RUNNING);
  SayImage(1);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RUNNING) << "rank 0 has not answered";
  SayImage(0);
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_FAILED);
  const v1::Failure& failure = job().record.failure();
  EXPECT_EQ(failure.cause(), "FINAL_CHECKPOINT_UNWRITABLE");
  EXPECT_THAT(failure.message(), HasSubstr("could not be written for 100 s"));
  EXPECT_THAT(failure.message(), HasSubstr("no space left"));
  EXPECT_THAT(failure.message(), HasSubstr("worker-1:/data-1/images/a/step-10"));
}

TEST_F(Images, AreWhatResumeGoesOnFromAlsoAfterARestartAndTheCommitOfThemEndsThem) {
  EndWithImages();
  cluster_.Restart();
  cluster_.Reconnect("worker-0");
  cluster_.Reconnect("worker-1");
  ASSERT_TRUE(Resume().ok());
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
  ASSERT_EQ(Started().restore_images().images_size(), 2);
  EXPECT_EQ(Started().restore_images().images(1).digest(), "sha256:1");
  EXPECT_EQ(Started().restore_path(), "");
  cluster_.StartRanks("a", 10);
  cluster_.Pass(std::chrono::milliseconds(1));
  const v1::CoordinatorMessage* const request = cluster_.Last("worker-1", Kind::kCheckpointRequest);
  ASSERT_NE(request, nullptr) << "all steps are done: they are saved";
  EXPECT_EQ(request->checkpoint_request().intent().step(), 10);
  cluster_.Commit("a", request->checkpoint_request().intent().attempt(), 10);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job().images.step(), 0);
  EXPECT_EQ(cluster_.Last("worker-1", Kind::kDeleteImages)->delete_images().paths(0),
            "/data-1/images/a/step-10");
}

TEST_F(Images, ADamagedOneEndsTheJobAtOnceAndNamesTheRemedy) {
  EndWithImages();
  ASSERT_TRUE(Resume().ok());
  v1::WorkerMessage message;
  v1::RankFailed& failed = *message.mutable_rank_failed();
  failed.set_job("a");
  failed.set_group_epoch(job().record.group_epoch());
  failed.set_rank(1);
  failed.set_code(static_cast<int>(StatusCode::kDataLoss));
  failed.set_message("/data-1/images/a/step-10/image.json: digest x is not y");
  cluster_.SendFrom("worker-1", message);
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job().record.failure().cause(), "BAD_IMAGE");
  EXPECT_THAT(job().record.failure().message(), HasSubstr("step-10/image.json: digest x is not y"));
  EXPECT_THAT(job().record.failure().message(), HasSubstr("--discard-images"));
  cluster_.StopRanks("a", job().record.group_epoch(), {"worker-0", "worker-1"});
  EXPECT_TRUE(Resume(true).ok());
}

TEST_F(Images, PlaceEachRankOnTheWorkerThatHasItsOwn) {
  EndWithImages();
  cluster_.Connect("worker-00");
  ASSERT_TRUE(Resume(false, 20).ok());
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(job().plan.ranks(0).worker(), "worker-0");
  EXPECT_EQ(job().plan.ranks(1).worker(), "worker-1");
  cluster_.StartRanks("a", 10);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(job().record.step(), 10);
}

TEST_F(Images, KeepAJobWhoseCheckpointsFailOnTheirWorkers) {
  EndWithImages();
  cluster_.Connect("worker-2");
  cluster_.Connect("worker-3");
  ResumeJobCall resume{cluster_.next_call++, {}};
  resume.request.set_name("a");
  resume.request.mutable_overrides()->mutable_training()->set_steps(100);
  resume.request.mutable_overrides()->mutable_checkpoint()->set_interval(10);
  ASSERT_TRUE(cluster_.Do(resume).replies.at(0).status.ok());
  cluster_.StartRanks("a", 10);
  for (int64_t step = 11; step <= 50; ++step) {
    cluster_.Report("a", step, 0);
    cluster_.Report("a", step, 1);
    if (step % 10 != 0) continue;
    v1::WorkerMessage failed;
    failed.mutable_shard_failed()->set_job("a");
    failed.mutable_shard_failed()->set_group_epoch(job().record.group_epoch());
    failed.mutable_shard_failed()->set_rank(1);
    failed.mutable_shard_failed()->set_attempt(AttemptOf(cluster_, step));
    failed.mutable_shard_failed()->set_reason("read-only file system");
    cluster_.SendFrom("worker-1", failed);
  }
  EXPECT_EQ(job().record.restarts(), 0) << "other hosts cannot read the images";
  EXPECT_EQ(job().record.step(), 50);
}

TEST_F(Images, AFolderThatTheirWorkersCannotWriteIsFailedWithWhatToDo) {
  EndWithImages();
  EXPECT_THAT(job().record.failure().message(),
              HasSubstr("the job can run only on worker-0, worker-1, because"));
  EXPECT_THAT(job().record.failure().message(), HasSubstr("--set checkpoint.folder=DIR"));
  ASSERT_TRUE(Resume(false, 20).ok());
  v1::WorkerMessage message;
  v1::RankFailed& failed = *message.mutable_rank_failed();
  failed.set_job("a");
  failed.set_group_epoch(job().record.group_epoch());
  failed.set_rank(1);
  failed.set_code(static_cast<int>(StatusCode::kFailedPrecondition));
  failed.set_cause("STORAGE");
  failed.set_message("/ck is not a directory");
  cluster_.SendFrom("worker-1", message);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RECOVERING);
  EXPECT_THAT(job().record.last_failure().message(),
              HasSubstr("/ck is not a directory; the job can run only on worker-0, worker-1"));
}

TEST_F(Images, DataThatTheirWorkersCannotReadGiveNoAdviceAboutTheFolder) {
  EndWithImages();
  ASSERT_TRUE(Resume(false, 20).ok());
  v1::WorkerMessage message;
  v1::RankFailed& failed = *message.mutable_rank_failed();
  failed.set_job("a");
  failed.set_group_epoch(job().record.group_epoch());
  failed.set_rank(1);
  failed.set_code(static_cast<int>(StatusCode::kFailedPrecondition));
  failed.set_cause("STORAGE");
  failed.set_of_data(true);
  failed.set_message("data.train cannot be read");
  cluster_.SendFrom("worker-1", message);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(job().record.last_failure().message(), "data.train cannot be read");
}

TEST_F(Images, OnAWorkerThatIsNotThereOrForAnotherLayoutAreRefusedByName) {
  EndWithImages();
  const Status other = Resume(false, 0, 1);
  EXPECT_EQ(other.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(other)), HasSubstr("same layout"));
  cluster_.Disconnect("worker-1");
  const Status away = Resume();
  EXPECT_EQ(away.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(away)), HasSubstr("worker-1 is not connected"));
  EXPECT_EQ(job().images.step(), 10);
  cluster_.Connect("worker-2");
  ASSERT_TRUE(Resume(true).ok());
  EXPECT_EQ(job().images.step(), 0);
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
  EXPECT_FALSE(Started().has_restore_images());
}

TEST_F(Images, ThatCannotBeWrittenEitherLoseNothing) {
  ASSERT_TRUE(FailFor(110));
  SayImage(0, "no space left here either");
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(cluster_.Events("a"), Contains("IMAGES_FAILED"));
  cluster_.worker("worker-1").inbox.clear();
  cluster_.Heartbeat();
  cluster_.Pass(std::chrono::seconds(1));
  ASSERT_NE(cluster_.Last("worker-1", Kind::kCheckpointRequest), nullptr)
      << "the checkpoint is retried";
  cluster_.Commit("a", job().record.last_attempt(), 10);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(Images, OfATryThatWasGivenUpAreRemovedWhenTheJobEnds) {
  ASSERT_TRUE(FailFor(110));
  SayImage(1);
  SayImage(0, "no space left here either");
  SayImage(0);  // too late
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kDeleteImages), 0) << "the next try writes there";
  cluster_.Pass(std::chrono::seconds(1));
  cluster_.Commit("a", job().record.last_attempt(), 10);
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_SUCCEEDED);
  for (const int rank : {0, 1}) {
    const auto* const order = cluster_.Last(fmt::format("worker-{}", rank), Kind::kDeleteImages);
    ASSERT_NE(order, nullptr) << rank;
    EXPECT_EQ(order->delete_images().paths(0), fmt::format("/data-{}/images/a/step-10", rank));
  }
}

TEST_F(Images, OnAWorkerThatIsAwayWhenTheyAreForgottenAreRemovedOnceItIsBack) {
  EndWithImages();
  cluster_.Disconnect("worker-1");
  cluster_.Connect("worker-2");
  ASSERT_TRUE(Resume(true).ok());
  cluster_.worker("worker-1").inbox.clear();
  Keeps(1);
  cluster_.Reconnect("worker-1");
  const auto* const order = cluster_.Last("worker-1", Kind::kDeleteImages);
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(order->delete_images().job(), "a");
  ASSERT_EQ(order->delete_images().paths_size(), 1);
  EXPECT_EQ(order->delete_images().paths(0), "/data-1/images/a/step-10");
}

TEST_F(Images, FromWhichAJobGoesOnStayWhenTheirWorkerReportsThatItHasThem) {
  EndWithImages();
  cluster_.Restart();
  for (const int rank : {0, 1}) {
    Keeps(rank);
    cluster_.Reconnect(fmt::format("worker-{}", rank));
    EXPECT_EQ(cluster_.Count(fmt::format("worker-{}", rank), Kind::kDeleteImages), 0);
  }
}

TEST_F(Images, OfATryThatWasGivenUpBeforeARestartAreRemovedWhenTheJobEnds) {
  ASSERT_TRUE(FailFor(110));
  SayImage(1);
  SayImage(0, "no space left here either");
  cluster_.Restart();
  Keeps(1);
  cluster_.Reconnect("worker-0");
  cluster_.Reconnect("worker-1");
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kDeleteImages), 0) << "the next try writes there";
  for (int second = 0; second < 6; ++second) {
    cluster_.Heartbeat();
    cluster_.Pass(std::chrono::seconds(1));
  }
  cluster_.Commit("a", job().record.last_attempt(), 10);
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kDeleteImages), 1);
}

TEST_F(Images, OfATryInProgressAreRemovedWhenTheGroupFails) {
  ASSERT_TRUE(FailFor(110));
  SayImage(1);
  cluster_.Crash("a", 0);
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kDeleteImages), 1);
}

TEST_F(Images, GoWithTheirJobAndThoseOfAnotherStay) {
  EndWithImages();
  ASSERT_TRUE(cluster_.Submit(TestSpec("b", 3, 10)).status.ok());
  CancelJobCall cancel{cluster_.next_call++, {}};
  cancel.request.set_name("b");
  cluster_.Do(cancel);
  v1::JobImages& others = cluster_.state().jobs.at("b").images;
  others.set_step(10);
  v1::RankImage& image = *others.add_images();
  image.set_worker("worker-1");
  image.set_path("/data-1/images/b/step-10");
  DeleteJobCall erase{cluster_.next_call++, {}};
  erase.request.set_name("a");
  cluster_.Do(erase);
  cluster_.Do(erase);  // a repeated request does not wait for the files of aborted attempts
  ASSERT_FALSE(cluster_.state().jobs.contains("a"));
  for (const int rank : {0, 1}) {
    const std::string worker = fmt::format("worker-{}", rank);
    ASSERT_EQ(cluster_.Count(worker, Kind::kDeleteImages), 1);
    const auto& order = cluster_.Last(worker, Kind::kDeleteImages)->delete_images();
    EXPECT_EQ(order.job(), "a");
    EXPECT_THAT(order.paths(), ElementsAre(fmt::format("/data-{}/images/a/step-10", rank)));
  }
  // A job that takes the name does not continue from them, and a resumed job keeps its own.
  ASSERT_TRUE(cluster_.Submit(TestSpec("a", 3, 10)).status.ok());
  EXPECT_EQ(job().images.step(), 0);
  for (TestWorker* const worker : {&cluster_.worker("worker-0"), &cluster_.worker("worker-1")})
    worker->inbox.clear();
  Keeps(1, 3, "b");
  cluster_.Reconnect("worker-1");
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kDeleteImages), 0);
}

TEST_F(Images, OfAJobThatTheCatalogDoesNotHaveStay) {
  Keeps(1, 3, "of-another-catalog");
  cluster_.Disconnect("worker-1");
  cluster_.Reconnect("worker-1");
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kDeleteImages), 0);
}

TEST_F(Images, OfAnEarlierEndAreRemovedWhereLaterOnesTakeTheirPlace) {
  EndWithImages();
  ASSERT_TRUE(Resume().ok());
  cluster_.StartRanks("a", 10);
  cluster_.worker("worker-1").inbox.clear();
  ASSERT_TRUE(FailFor(120));
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kDeleteImages), 0);
  SayImage(0);
  SayImage(1);
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kDeleteImages), 1);
  EXPECT_EQ(job().images.images_size(), 2);
  cluster_.Restart();
  EXPECT_EQ(job().images.images_size(), 2);
}

TEST_F(Images, AreNotWrittenAgainByRanksThatHaveThem) {
  ASSERT_TRUE(FailFor(110));
  SayImage(1);
  cluster_.worker("worker-1").inbox.clear();
  cluster_.Reconnect("worker-1");
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kSaveImages), 0);
}

TEST_F(Images, AreAskedForAgainOnANewStream) {
  ASSERT_TRUE(FailFor(110));
  cluster_.worker("worker-1").inbox.clear();
  cluster_.Reconnect("worker-1");
  EXPECT_EQ(cluster_.Count("worker-1", Kind::kSaveImages), 1);
  EXPECT_THAT(cluster_.Events("a"), Not(Contains("IMAGES_FAILED")));
}

TEST_F(Images, AreNotTakenWhereTheSaveSucceedsInTime) {
  EXPECT_FALSE(FailFor(50));
  for (int i = 0; i < 60 && job().attempts.empty(); ++i) {
    cluster_.Heartbeat();
    cluster_.Pass(std::chrono::seconds(1));
  }
  cluster_.Commit("a", job().record.last_attempt(), 10);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job().images.step(), 0);
}

TEST_F(Images, OfAWorkerThatIsAwayHoldUpNoOtherJob) {
  EndWithImages();
  cluster_.Connect("worker-2");
  ASSERT_TRUE(Resume().ok());
  cluster_.StartRanks("a", 10);
  cluster_.Disconnect("worker-1");
  for (int i = 0; i < 60; ++i) {
    cluster_.Heartbeat();
    cluster_.Pass(std::chrono::seconds(1));
  }
  cluster_.StopRanks("a", job().record.group_epoch(), {"worker-0"});
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_RECOVERING);
  EXPECT_THAT(job().waiting_for, HasSubstr("worker-1"));
  cluster_.Submit(TestSpec("b", 1, 10));
  EXPECT_EQ(cluster_.job("b").record.state(), v1::JOB_STATE_STARTING);
}

TEST_F(Images, OnAWorkerThatDoesNotReturnEndTheJobAndAreKept) {
  EndWithImages();
  ASSERT_TRUE(Resume().ok());
  cluster_.StartRanks("a", 10);
  cluster_.Disconnect("worker-1");
  const auto pass = [this](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      cluster_.Heartbeat();
      cluster_.Pass(std::chrono::seconds(1));
    }
  };
  pass(10);
  cluster_.StopRanks("a", job().record.group_epoch(), {"worker-0"});
  pass(340);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RECOVERING);
  pass(30);
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job().record.failure().cause(), "BAD_IMAGE");
  EXPECT_THAT(job().record.failure().message(), HasSubstr("worker-1 (not connected)"));
  EXPECT_EQ(job().images.images_size(), 2);
}

TEST_F(Images, OfMuchStateMayTakeLongToRestore) {
  EndWithImages();
  ASSERT_TRUE(Resume().ok());
  EXPECT_EQ(Started().start_seconds(), 120);
  cluster_.StartRanks("a", 10);
  // 30 GB at 50 MB/s.
  v1::RankMemory* const memory = cluster_.state().jobs.at("a").plan.add_memory();
  memory->set_parameter_bytes(5'000'000'000);
  memory->set_optimizer_bytes(10'000'000'000);
  cluster_.Crash("a", 0);
  cluster_.StopRanks("a", job().record.group_epoch(), {"worker-0", "worker-1"});
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(Started().start_seconds(), 60 + 600);
}

}  // namespace
}  // namespace troupe
