// Tests `troupe cancel` and `troupe list` with a job service that the test plays.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/output/list_filter.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// A job of 20 steps that trains, with a commit of step 10.
class TrainingJob final : public v1::JobService::Service {
 public:
  // When the user presses Ctrl-C; the call is not answered before its caller has gone.
  enum class CtrlC { kNever, kDuringLook, kDuringCancel };
  CtrlC ctrl_c = CtrlC::kNever;
  // The code with which the cancel fails, and the later look at the job too if `is_gone`.
  grpc::StatusCode refusal = grpc::OK;
  bool is_gone = false;
  v1::JobState before = v1::JOB_STATE_RUNNING;       // its state until the cancel
  v1::JobState after = v1::JOB_STATE_CHECKPOINTING;  // its state from then on
  v1::CancelJobRequest asked;
  std::atomic<int> cancels{0};
  std::atomic<bool> abandoned{false};

  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest*,
                      v1::GetJobResponse* response) override {
    if (ctrl_c == CtrlC::kDuringLook) return Interrupt(context);
    if (cancels > 0 && is_gone) return {grpc::NOT_FOUND, "there is no such job"};
    *response->mutable_job() = JobIn(cancels > 0 ? after : before);
    return grpc::Status::OK;
  }
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::CancelJobResponse* response) override {
    asked = *request;
    ++cancels;
    if (refusal != grpc::OK) {
      if (ctrl_c == CtrlC::kDuringCancel) kill(getpid(), SIGINT);
      return {refusal, "refused"};
    }
    if (ctrl_c == CtrlC::kDuringCancel) return Interrupt(context);
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
  grpc::Status Interrupt(grpc::ServerContext* context) {
    kill(getpid(), SIGINT);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!context->IsCancelled() && std::chrono::steady_clock::now() < end) sched_yield();
    abandoned = context->IsCancelled();
    return grpc::Status::CANCELLED;
  }

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
    sigemptyset(&interrupts_);
    sigaddset(&interrupts_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupts_, nullptr);
  }
  ~CancelTest() override {
    // A command that has ended before the signal came leaves it to the next one.
    const timespec now{};
    while (sigtimedwait(&interrupts_, nullptr, &now) > 0) {
    }
  }

  // Runs `troupe cancel a FLAGS`; without a coordinator unless `is_up_`.
  StatusOr<ExitCode> Cancel(std::vector<std::string> flags = {}) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&jobs_);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (!is_up_) server->Shutdown();
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

  sigset_t interrupts_;
  TrainingJob jobs_;
  bool is_up_ = true;
  std::string out_, err_;
};

TEST_F(CancelTest, AnnouncesTheCheckpointAndReportsWhyStepsAreLost) {
  EXPECT_EQ(Cancel().value_or(ExitCode::kUsage), ExitCode::kDone);
  EXPECT_TRUE(jobs_.asked.checkpoint_if_training());
  EXPECT_FALSE(jobs_.asked.checkpoint());
  EXPECT_EQ(out_, "jobs/a CANCELLED\n");
  EXPECT_THAT(err_, HasSubstr("jobs/a is to commit a checkpoint first; Ctrl-C detaches"));
  EXPECT_THAT(err_, HasSubstr("jobs/a: cancelled without a commit: no space\n"));
}

TEST_F(CancelTest, AtOnceAnnouncesNothingAndNamesTheLossToo) {
  EXPECT_EQ(Cancel({"--now"}).value_or(ExitCode::kUsage), ExitCode::kDone);
  EXPECT_FALSE(jobs_.asked.checkpoint_if_training());
  EXPECT_EQ(err_, "jobs/a: cancelled without a commit: no space\n");
}

TEST_F(CancelTest, CtrlCDetachesAndLeavesTheJobToItsCheckpoint) {
  jobs_.ctrl_c = TrainingJob::CtrlC::kDuringCancel;
  EXPECT_EQ(Cancel().value_or(ExitCode::kUsage), ExitCode::kInterrupted);
  EXPECT_THAT(err_, HasSubstr("interrupted; jobs/a ends after its checkpoint. To end it at once: "
                              "troupe cancel --now a\n"));
  EXPECT_TRUE(jobs_.abandoned);
}

TEST_F(CancelTest, CtrlCOfAStrictCancelPromisesNoEndIfNothingCanBeCommitted) {
  jobs_.ctrl_c = TrainingJob::CtrlC::kDuringCancel;
  EXPECT_EQ(Cancel({"--checkpoint"}).value_or(ExitCode::kUsage), ExitCode::kInterrupted);
  EXPECT_THAT(err_, HasSubstr("interrupted; jobs/a ends after its checkpoint, if that can be "
                              "committed. To end it at once: troupe cancel --now a\n"));
}

TEST_F(CancelTest, CtrlCStatesThatTheJobMayNotBeCancelledWhereItDoesNotShow) {
  struct Case {
    std::vector<std::string> flags;
    v1::JobState before, after;
    std::string expected;
  };
  const std::string maybe = "jobs/a may not have been cancelled: it is ";
  const std::string look = ". To look again: troupe describe a\n";
  const Case cases[] = {
      {{}, v1::JOB_STATE_RUNNING, v1::JOB_STATE_RUNNING, maybe + "RUNNING" + look},
      {{},
       v1::JOB_STATE_CHECKPOINTING,
       v1::JOB_STATE_CHECKPOINTING,
       maybe + "CHECKPOINTING" + look},
      {{"--now"},
       v1::JOB_STATE_RUNNING,
       v1::JOB_STATE_CHECKPOINTING,
       maybe + "CHECKPOINTING" + look},
      {{}, v1::JOB_STATE_RUNNING, v1::JOB_STATE_CANCELLED, "jobs/a is CANCELLED\n"},
  };
  jobs_.ctrl_c = TrainingJob::CtrlC::kDuringCancel;
  for (const Case& shown : cases) {
    jobs_.before = shown.before;
    jobs_.after = shown.after;
    jobs_.cancels = 0;
    EXPECT_EQ(Cancel(shown.flags).value_or(ExitCode::kUsage), ExitCode::kInterrupted);
    EXPECT_THAT(err_, HasSubstr("interrupted; " + shown.expected));
  }
}

TEST_F(CancelTest, CtrlCBeforeTheCallIsSentCancelsNothing) {
  for (const bool is_up : {true, false}) {
    is_up_ = is_up;
    if (is_up) {
      jobs_.ctrl_c = TrainingJob::CtrlC::kDuringLook;
    } else {
      kill(getpid(), SIGINT);
    }
    EXPECT_EQ(Cancel().value_or(ExitCode::kUsage), ExitCode::kInterrupted);
    EXPECT_EQ(err_, "interrupted; jobs/a is not cancelled\n");
    EXPECT_EQ(jobs_.cancels.load(), 0);
  }
  EXPECT_TRUE(jobs_.abandoned) << "the look at the job ends too";
}

TEST_F(CancelTest, CtrlCHidesNoError) {
  jobs_.ctrl_c = TrainingJob::CtrlC::kDuringCancel;
  jobs_.refusal = grpc::NOT_FOUND;
  jobs_.is_gone = true;
  const StatusOr<ExitCode> code = Cancel();
  EXPECT_EQ(err_.find("ends after its checkpoint"), std::string::npos);
  // The error and the signal arrive at the same time.
  if (code.ok()) {
    EXPECT_THAT(err_, HasSubstr("jobs/a may not have been cancelled: NOT_FOUND: there is no such"));
  } else {
    EXPECT_EQ(code.status().code(), StatusCode::kNotFound);
  }
}

TEST_F(CancelTest, ThatTheCheckpointOutlastsStatesThatTheJobStillEndsAfterIt) {
  for (const bool is_strict : {false, true}) {
    jobs_.refusal = grpc::DEADLINE_EXCEEDED;
    jobs_.before = v1::JOB_STATE_CHECKPOINTING;
    jobs_.cancels = 0;
    const StatusOr<ExitCode> code =
        Cancel(is_strict ? std::vector<std::string>{"--checkpoint"} : std::vector<std::string>{});
    EXPECT_EQ(code.status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ(Message(code.status()),
              fmt::format("refused; jobs/a ends after its checkpoint{}. To end it at once: troupe "
                          "cancel --now a",
                          is_strict ? ", if that can be committed" : ""));
  }
}

TEST_F(CancelTest, RefusesNowWithCheckpoint) {
  const auto refused = Cancel({"--now", "--checkpoint"});
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(refused.status()), "--now excludes --checkpoint");
}

v1::Job JobAt(const std::string& name, v1::JobState state, int64_t step) {
  v1::Job job;
  job.set_name(name);
  job.set_state(state);
  job.set_step(step);
  job.set_steps(20);
  return job;
}

// Two pages of jobs, of which the first one has one job.
class PagedJobs final : public v1::JobService::Service {
 public:
  std::vector<v1::Job> jobs = {JobAt("jobs/a", v1::JOB_STATE_RUNNING, 7),
                               JobAt("jobs/lab.b", v1::JOB_STATE_QUEUED, 0)};

  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    const bool is_first = request->page_token().empty();
    for (size_t i = is_first ? 0 : 1; i < (is_first ? 1 : jobs.size()); ++i)
      *response->add_jobs() = jobs[i];
    if (is_first) response->set_next_page_token("1");
    return grpc::Status::OK;
  }
};

const Command& ListCommand() {
  static const std::vector<Command> commands = JobCommands();
  return *std::ranges::find(commands, "list", &Command::name);
}

class ListTest : public testing::Test {
 protected:
  ListTest() {
    // The threads of the server inherit the mask: tests of other commands send this process SIGINT.
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupts, nullptr);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&jobs_);
    server_ = builder.BuildAndStart();
  }

  StatusOr<ExitCode> List(std::vector<std::string> words) {
    words.push_back("--coordinator");
    words.push_back(fmt::format("127.0.0.1:{}", port_));
    TROUPE_ASSIGN_OR_RETURN(const CommandLine line, ListCommand().Parse(words));
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto code = ListCommand().run(line);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }

  PagedJobs jobs_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::string out_, err_;
};

TEST_F(ListTest, HasTheLossesThatTheCoordinatorKnows) {
  jobs_.jobs[0].set_loss(2.5);
  EXPECT_EQ(*List({}), ExitCode::kDone);
  EXPECT_EQ(out_,
            "NAME        STATE    STEP  DONE    LOSS\n"
            "jobs/a      RUNNING  7/20   35%  2.5000\n"
            "jobs/lab.b  QUEUED   0/20    0%       -\n");
  EXPECT_EQ(err_, "");
}

TEST_F(ListTest, FiltersTextAndJson) {
  EXPECT_EQ(*List({"--state", "queued"}), ExitCode::kDone);
  EXPECT_THAT(out_, HasSubstr("\njobs/lab.b "));
  EXPECT_EQ(out_.find("jobs/a "), std::string::npos) << out_;
  EXPECT_EQ(*List({"--namespace", "default", "-o", "json"}), ExitCode::kDone);
  EXPECT_EQ(out_, R"({"jobs":[{"name":"jobs/a","state":"RUNNING","step":7,"steps":20,"loss":null,)"
                  R"("group_epoch":0,"restarts":0}]})"
                  "\n");
  EXPECT_EQ(List({"--state", "done"}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ListTest, AnEmptyListIsAMessage) {
  EXPECT_EQ(*List({"--state", "FAILED", "--state", "CANCELLED"}), ExitCode::kDone);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(err_, "none of 2 jobs is FAILED or CANCELLED\n");
  EXPECT_EQ(*List({"--state", "FAILED", "-o", "json"}), ExitCode::kDone);
  EXPECT_EQ(out_, "{\"jobs\":[]}\n");
  EXPECT_EQ(err_, "");
}

TEST(ListCommandTest, CompletesTheStatesThatItAccepts) {
  const std::vector<Flag> flags = ListCommand().ShownFlags();
  const auto state = std::ranges::find(flags, "--state", &Flag::name);
  ASSERT_NE(state, flags.end());
  EXPECT_EQ(std::ssize(state->words), v1::JobState_descriptor()->value_count())
      << "every state but UNSPECIFIED, and MOVING";
  for (const std::string& word : state->words)
    EXPECT_TRUE(ListFilter::Make({word}, std::nullopt).ok()) << word;
}

TEST(LogsCommandTest, RefusesWhatItCannotPrint) {
  const std::vector<Command> commands = JobCommands();
  const Command& logs = *std::ranges::find(commands, "logs", &Command::name);
  const auto refusal = [&logs](const std::vector<std::string>& words) {
    const auto line = logs.Parse(words);
    return line.ok() ? std::string(Message(logs.run(*line).status())) : ToString(line.status());
  };
  EXPECT_EQ(refusal({"a", "-f", "-o", "json"}), "-f excludes -o json");
  EXPECT_EQ(refusal({"a", "--since", "5"}),
            "--since is \"5\", must be a time such as 30d or 1h30m (d, h, m, s)");
}

}  // namespace
}  // namespace troupe
