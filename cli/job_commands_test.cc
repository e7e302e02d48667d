// Tests `troupe cancel` with a job service that the test plays.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

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
  CancelTest() {
    // The threads of the server inherit the mask; the command waits for the signal.
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupts, nullptr);
  }

  // Runs `troupe cancel a FLAGS`.
  StatusOr<ExitCode> Cancel(std::vector<std::string> flags = {}) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&jobs_);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    std::vector<std::string> words = {"a", "--coordinator", fmt::format("127.0.0.1:{}", port)};
    words.insert(words.end(), flags.begin(), flags.end());
    for (const Command& command : JobCommands()) {
      if (command.name != "cancel") continue;
      TROUPE_ASSIGN_OR_RETURN(const CommandLine line, command.Parse(words));
      testing::internal::CaptureStdout();
      testing::internal::CaptureStderr();
      auto code = command.run(line);
      out_ = testing::internal::GetCapturedStdout();
      err_ = testing::internal::GetCapturedStderr();
      return code;
    }
    return NotFound("cancel");
  }

  TrainingJob jobs_;
  std::string out_, err_;
};

TEST_F(CancelTest, AnnouncesTheCheckpointAndReportsWhyStepsAreLost) {
  EXPECT_EQ(Cancel().value_or(ExitCode::kUsage), ExitCode::kDone);
  EXPECT_TRUE(jobs_.asked.checkpoint_if_training());
  EXPECT_FALSE(jobs_.asked.checkpoint());
  EXPECT_EQ(out_, "jobs/a CANCELLED\n");
  EXPECT_THAT(err_, HasSubstr("jobs/a commits a checkpoint first; Ctrl-C detaches"));
  EXPECT_THAT(err_, HasSubstr("jobs/a: cancelled without a commit: no space\n"));
}

TEST_F(CancelTest, AtOnceAnnouncesNothingAndNamesTheLossToo) {
  EXPECT_EQ(Cancel({"--now"}).value_or(ExitCode::kUsage), ExitCode::kDone);
  EXPECT_FALSE(jobs_.asked.checkpoint_if_training());
  EXPECT_EQ(err_, "jobs/a: cancelled without a commit: no space\n");
}

TEST_F(CancelTest, CtrlCDetachesAndLeavesTheJobToItsCheckpoint) {
  jobs_.ends = false;
  EXPECT_EQ(Cancel().value_or(ExitCode::kUsage), ExitCode::kInterrupted);
  EXPECT_THAT(err_, HasSubstr("detached; jobs/a ends after its checkpoint. To end it at once: "
                              "troupe cancel --now a\n"));
  EXPECT_TRUE(jobs_.abandoned);
}

TEST_F(CancelTest, RefusesNowWithCheckpoint) {
  const auto refused = Cancel({"--now", "--checkpoint"});
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(refused.status()), "--now excludes --checkpoint");
}

}  // namespace
}  // namespace troupe
