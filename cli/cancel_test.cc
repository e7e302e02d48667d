#include "cli/cancel.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// A job of 20 steps that trains, with a commit of step 10. `ends`: the cancel is answered at once;
// otherwise it waits until the caller has gone.
class TrainingJob final : public v1::JobService::Service {
 public:
  bool ends = true;
  v1::CancelJobRequest asked;
  std::atomic<bool> abandoned{false};

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*,
                      v1::GetJobResponse* response) override {
    *response->mutable_job() = JobIn(v1::JOB_STATE_RUNNING);
    return grpc::Status::OK;
  }
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::CancelJobResponse* response) override {
    asked = *request;
    if (!ends) {
      kill(getpid(), SIGINT);
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!context->IsCancelled() && std::chrono::steady_clock::now() < end) sched_yield();
      abandoned = context->IsCancelled();
      return grpc::Status::CANCELLED;
    }
    *response->mutable_job() = JobIn(v1::JOB_STATE_CANCELLED);
    return grpc::Status::OK;
  }
  grpc::Status WatchJob(grpc::ServerContext*, const v1::WatchJobRequest*,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override {
    v1::WatchJobResponse response;
    response.mutable_event()->set_event("CANCELLED");
    response.mutable_event()->set_message("cancelled without a commit: no space");
    writer->Write(response);
    response.set_end(v1::JOB_STATE_CANCELLED);
    writer->Write(response);
    return grpc::Status::OK;
  }

 private:
  static v1::Job JobIn(v1::JobState state) {
    v1::Job job;
    job.set_name("jobs/a");
    job.set_state(state);
    job.set_step(20);
    job.mutable_spec()->mutable_checkpoint()->set_folder("/folder");
    v1::CheckpointRecord& commit = *job.add_checkpoints();
    commit.set_step(10);
    commit.set_state(v1::CHECKPOINT_STATE_COMMITTED);
    return job;
  }
};

class CancelTest : public testing::Test {
 protected:
  StatusOr<std::optional<v1::Job>> Cancel(const v1::CancelJobRequest& request) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&jobs_);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    Client client = Client::At(fmt::format("127.0.0.1:{}", port));
    testing::internal::CaptureStderr();
    auto cancelled = CancelJob(&client, &interrupt_, request);
    err_ = testing::internal::GetCapturedStderr();
    return cancelled;
  }

  InterruptWatch interrupt_;
  TrainingJob jobs_;
  std::string err_;
};

v1::CancelJobRequest CancelRequest(bool if_training) {
  v1::CancelJobRequest request;
  request.set_name("jobs/a");
  request.set_checkpoint_if_training(if_training);
  return request;
}

TEST_F(CancelTest, AnnouncesTheCheckpointAndSaysWhyStepsAreLost) {
  const auto cancelled = Cancel(CancelRequest(true));
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ((*cancelled)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(jobs_.asked.checkpoint_if_training());
  EXPECT_THAT(err_, HasSubstr("jobs/a commits a checkpoint first; Ctrl-C detaches"));
  EXPECT_THAT(err_, HasSubstr("jobs/a: cancelled without a commit: no space\n"));
}

TEST_F(CancelTest, AtOnceAnnouncesNothingAndNamesTheLossToo) {
  const auto cancelled = Cancel(CancelRequest(false));
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_FALSE(jobs_.asked.checkpoint_if_training());
  EXPECT_EQ(err_, "jobs/a: cancelled without a commit: no space\n");
}

TEST_F(CancelTest, CtrlCDetachesAndLeavesTheJobToItsCheckpoint) {
  jobs_.ends = false;
  const auto cancelled = Cancel(CancelRequest(true));
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_FALSE(cancelled->has_value());
  EXPECT_THAT(err_, HasSubstr("detached; jobs/a ends after its checkpoint. To end it at once: "
                              "troupe cancel --now a\n"));
  EXPECT_TRUE(jobs_.abandoned);
}

TEST(CancelCommand, RefusesNowBesideCheckpoint) {
  for (const Command& command : JobCommands()) {
    if (command.name != "cancel") continue;
    const auto line = command.Parse({"a", "--now", "--checkpoint"});
    ASSERT_TRUE(line.ok()) << line.status();
    const Status refused = command.run(*line).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(refused), "--now excludes --checkpoint");
  }
}

}  // namespace
}  // namespace troupe
