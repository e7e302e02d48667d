#include "cli/watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// The job service of a fake coordinator: the n-th WatchJob runs `streams[n]`.
class PretendedJobs final : public v1::JobService::Service {
 public:
  using Stream =
      std::function<grpc::Status(grpc::ServerContext*, grpc::ServerWriter<v1::WatchJobResponse>*)>;
  std::vector<Stream> streams;
  std::atomic<size_t> watched{0};
  std::atomic<int64_t> from_step{-1};  // from the newest WatchJob
  v1::JobState state = v1::JOB_STATE_RUNNING;

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::GetJobResponse* response) override {
    if (request->name() != "jobs/a") return {grpc::StatusCode::NOT_FOUND, request->name()};
    response->mutable_job()->set_name(request->name());
    response->mutable_job()->set_steps(5);
    response->mutable_job()->set_state(state);
    return grpc::Status::OK;
  }
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override {
    const size_t index = watched++;
    from_step = request->from_step();
    return index < streams.size() ? streams[index](context, writer) : grpc::Status::CANCELLED;
  }
};

void WriteStep(grpc::ServerWriter<v1::WatchJobResponse>* writer, int64_t step, uint64_t epoch) {
  v1::WatchJobResponse response;
  response.mutable_step()->set_step(step);
  response.mutable_step()->set_group_epoch(epoch);
  writer->Write(response);
}

void WriteEnd(grpc::ServerWriter<v1::WatchJobResponse>* writer, v1::JobState state) {
  v1::WatchJobResponse response;
  response.set_end(state);
  writer->Write(response);
}

// A terminal that is standard output and standard error until Restore.
class Terminal {
 public:
  // Whether this machine has pseudo-terminals.
  static bool IsAvailable() {
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    const bool is_available = master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0 &&
                              access(ptsname(master), R_OK | W_OK) == 0;
    if (master >= 0) close(master);
    return is_available;
  }

  explicit Terminal(unsigned short columns) {
    master_ = posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_EQ(grantpt(master_) | unlockpt(master_), 0);
    const int terminal = open(ptsname(master_), O_RDWR | O_NOCTTY);
    EXPECT_GE(terminal, 0);
    winsize window{};
    window.ws_col = columns;
    EXPECT_EQ(ioctl(terminal, TIOCSWINSZ, &window), 0);
    Flush();
    former_ = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    dup2(terminal, STDOUT_FILENO);
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    reader_ = std::thread([this] {
      char bytes[4096];
      for (ssize_t count = 1; count > 0;) {
        count = read(master_, bytes, sizeof bytes);
        if (count > 0) text_.append(bytes, static_cast<size_t>(count));
      }
    });
  }

  // Returns what was shown, with the terminal's ends of lines as "\n".
  std::string Restore() {
    Flush();
    dup2(former_.first, STDOUT_FILENO);
    dup2(former_.second, STDERR_FILENO);
    close(former_.first);
    close(former_.second);
    reader_.join();  // nobody can write any more
    close(master_);
    for (size_t at = text_.find("\r\n"); at != text_.npos; at = text_.find("\r\n", at))
      text_.erase(at, 1);
    return text_;
  }

 private:
  static void Flush() {
    std::fflush(stdout);
    std::fflush(stderr);
  }

  int master_ = -1;
  std::pair<int, int> former_;
  std::string text_;
  std::thread reader_;
};

class WatchTest : public testing::Test {
 protected:
  void Serve() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&jobs_);
    server_ = builder.BuildAndStart();
  }
  Client MakeClient() const { return Client::At(fmt::format("127.0.0.1:{}", port_)); }
  StatusOr<ExitCode> Run(const std::string& job) {
    Client client = MakeClient();
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto code = WatchJob(&client, &interrupt_, {.job = job, .json = true});
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }
  // Returns what a person sees of a watch on a terminal of 50 columns.
  std::string Seen(const char* no_color) {
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", no_color, 1);
    unsetenv("COLUMNS");
    Client client = MakeClient();
    Terminal terminal(50);
    const auto code = WatchJob(&client, &interrupt_, {.job = "jobs/a"});
    std::string text = terminal.Restore();
    unsetenv("NO_COLOR");
    EXPECT_TRUE(code.ok()) << code.status();
    return text;
  }
  // Returns "1@1 2@1 …": step and group epoch of each line.
  std::string Steps() const {
    std::string steps;
    std::istringstream lines(out_);
    for (std::string line; std::getline(lines, line);) {
      const auto number = [&](const char* key) {
        return line.substr(
            line.find(key) + std::strlen(key),
            line.find_first_of(",}", line.find(key)) - line.find(key) - std::strlen(key));
      };
      if (line.find("\"type\":\"step\"") == std::string::npos) continue;
      steps += (steps.empty() ? "" : " ") + number("\"step\":") + "@" + number("\"group_epoch\":");
    }
    return steps;
  }

  InterruptWatch interrupt_;
  PretendedJobs jobs_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::string out_, err_;
};

TEST_F(WatchTest, GoesOnAfterALostStreamWithoutRepeatingOrLosingSteps) {
  jobs_.streams = {[](auto*, auto* writer) {
                     for (int step = 1; step <= 3; ++step) WriteStep(writer, step, 1);
                     return grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down");
                   },
                   [](auto*, auto* writer) {
                     // Meanwhile a recovery has repeated step 3 under group epoch 2.
                     WriteStep(writer, 1, 1);
                     WriteStep(writer, 2, 1);
                     for (int step = 3; step <= 5; ++step) WriteStep(writer, step, 2);
                     WriteEnd(writer, v1::JOB_STATE_SUCCEEDED);
                     return grpc::Status::OK;
                   }};
  Serve();
  const auto code = Run("jobs/a");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kDone);
  EXPECT_EQ(Steps(), "1@1 2@1 3@1 3@2 4@2 5@2");
  EXPECT_THAT(out_, EndsWith("{\"type\":\"end\",\"state\":\"SUCCEEDED\"}\n"));
  EXPECT_THAT(err_, HasSubstr("the coordinator cannot be reached"));
}

TEST_F(WatchTest, AReaderThatWasTooSlowGoesOnBehindTheLastStepItSaw) {
  jobs_.streams = {[](auto*, auto* writer) {
                     for (int step = 1; step <= 3; ++step) WriteStep(writer, step, 1);
                     return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too slow");
                   },
                   [](auto*, auto* writer) {
                     for (int step = 4; step <= 5; ++step) WriteStep(writer, step, 1);
                     WriteEnd(writer, v1::JOB_STATE_SUCCEEDED);
                     return grpc::Status::OK;
                   }};
  Serve();
  const auto code = Run("jobs/a");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kDone);
  EXPECT_EQ(Steps(), "1@1 2@1 3@1 4@1 5@1");
  EXPECT_EQ(jobs_.from_step, 4);
}

TEST_F(WatchTest, EveryStepIsRecordedUntilThatFails) {
  jobs_.streams = {[](auto*, auto* writer) {
    for (int step = 1; step <= 3; ++step) WriteStep(writer, step, 1);
    WriteEnd(writer, v1::JOB_STATE_SUCCEEDED);
    return grpc::Status::OK;
  }};
  jobs_.streams.push_back(jobs_.streams.front());
  Serve();
  Client client = MakeClient();
  std::vector<int64_t> recorded;
  WatchOptions options = {.job = "jobs/a", .json = true};
  options.record = [&recorded](const v1::StepEvent& step) {
    recorded.push_back(step.step());
    return OkStatus();
  };
  testing::internal::CaptureStdout();
  EXPECT_EQ(*WatchJob(&client, &interrupt_, options), ExitCode::kDone);
  EXPECT_THAT(recorded, testing::ElementsAre(1, 2, 3));
  options.record = [&recorded](const v1::StepEvent& step) {
    recorded.push_back(step.step());
    return ResourceExhausted("the disk is full");
  };
  const auto code = WatchJob(&client, &interrupt_, options);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("\"step\":3"));
  EXPECT_EQ(code.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(recorded, testing::ElementsAre(1, 2, 3, 1));
}

TEST_F(WatchTest, AStreamThatTheCoordinatorCancelsIsNoInterruption) {
  Serve();
  const auto code = Run("jobs/a");
  EXPECT_EQ(code.status().code(), StatusCode::kCancelled);
  EXPECT_EQ(ExitCodeOf(code.status()), ExitCode::kFailed);
}

TEST_F(WatchTest, AJobThatFailedOrWasCancelledIsExitCodeOne) {
  for (v1::JobState state : {v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED}) {
    jobs_.streams.push_back([state](auto*, auto* writer) {
      WriteEnd(writer, state);
      return grpc::Status::OK;
    });
  }
  Serve();
  EXPECT_EQ(*Run("jobs/a"), ExitCode::kFailed);
  EXPECT_EQ(*Run("jobs/a"), ExitCode::kFailed);
}

TEST_F(WatchTest, AnUnknownJobIsNotFound) {
  Serve();
  EXPECT_EQ(Run("jobs/b").status().code(), StatusCode::kNotFound);
}

TEST_F(WatchTest, AStepIsReadFromAStreamThatGoesOn) {
  jobs_.streams = {[](auto* context, auto* writer) {
                     v1::WatchJobResponse event;
                     event.mutable_event()->set_event("STARTED");
                     writer->Write(event);
                     WriteStep(writer, 3, 2);
                     const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                     while (!context->IsCancelled() && std::chrono::steady_clock::now() < end) {
                       sched_yield();
                     }
                     return grpc::Status::CANCELLED;
                   },
                   [](auto*, auto* writer) {
                     WriteEnd(writer, v1::JOB_STATE_CANCELLED);
                     return grpc::Status::OK;
                   }};
  Serve();
  Client client = MakeClient();
  const auto step = ReadStep(&client, "jobs/a", 3);
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->group_epoch(), 2u);
  EXPECT_EQ(jobs_.from_step, 3);
  EXPECT_FALSE(ReadStep(&client, "jobs/a", 3).has_value()) << "the history has no such step";
}

TEST_F(WatchTest, TheHistoryOfAJobThatRunsIsReadWithoutWaitingForItsEnd) {
  const auto write_event = [](auto* writer, const char* word) {
    v1::WatchJobResponse response;
    response.mutable_event()->set_event(word);
    response.mutable_event()->set_wall_time_ns(word[0]);
    writer->Write(response);
  };
  const auto wait = [](auto* context) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!context->IsCancelled() && std::chrono::steady_clock::now() < end) sched_yield();
    return grpc::Status::CANCELLED;
  };
  jobs_.streams = {[&](auto* context, auto* writer) {
                     write_event(writer, "STARTED");
                     for (int step = 1; step <= 3; ++step) WriteStep(writer, step, step);
                     return wait(context);
                   },
                   [&](auto* context, auto* writer) {
                     write_event(writer, "STARTED");
                     write_event(writer, "RECOVERED");
                     WriteStep(writer, 4, 3);
                     return wait(context);
                   }};
  Serve();
  Client client = MakeClient();
  v1::Job job;
  job.set_name("jobs/a");
  job.set_step(3);
  const auto history = ReadHistory(&client, job);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(jobs_.from_step, 4);
  EXPECT_EQ(history->steps.size(), 4u);
  EXPECT_EQ(history->steps.at(3).group_epoch(), 3u);
  ASSERT_EQ(history->events.size(), 2u) << "none twice";
  EXPECT_EQ(history->events[0].event(), "RECOVERED");
  EXPECT_EQ(history->events[1].event(), "STARTED");
}

TEST_F(WatchTest, TheHistoryOfAnEndedJobEndsWithIt) {
  for (int i = 0; i < 2; ++i) {
    jobs_.streams.push_back([i](auto*, auto* writer) {
      if (i == 0) WriteStep(writer, 1, 1);
      WriteEnd(writer, v1::JOB_STATE_FAILED);
      return grpc::Status::OK;
    });
  }
  Serve();
  Client client = MakeClient();
  v1::Job job;
  job.set_name("jobs/a");
  job.set_step(1);
  const auto history = ReadHistory(&client, job);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->steps.size(), 1u);
  jobs_.streams.clear();
  EXPECT_EQ(ReadHistory(&client, job).status().code(), StatusCode::kCancelled);
}

TEST_F(WatchTest, WhyTheLastStepIsNotSavedIsTheNewestFailureAfterItsCommit) {
  // Each stream goes on, as that of a job that tries again.
  const auto events = [](std::vector<std::pair<const char*, const char*>> list) {
    return [list](auto* context, auto* writer) {
      for (const auto& [word, message] : list) {
        v1::WatchJobResponse response;
        response.mutable_event()->set_event(word);
        response.mutable_event()->set_message(message);
        writer->Write(response);
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!context->IsCancelled() && std::chrono::steady_clock::now() < end) sched_yield();
      return grpc::Status::CANCELLED;
    };
  };
  jobs_.streams = {
      events({{"CHECKPOINT_ABORTED", "attempt 1: no space"},
              {"CHECKPOINT_ABORTED", "attempt 2: denied"},
              {"RANK_LOST", "rank 1"}}),
      events({{"CHECKPOINT_ABORTED", "attempt 1: no space"}, {"CHECKPOINT_COMMITTED", "step 5"}}),
      [](auto*, auto*) { return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "no"); }};
  Serve();
  Client client = MakeClient();
  v1::Job job;
  job.set_name("jobs/a");
  job.set_step(5);
  EXPECT_EQ(ReadSaveFailure(&client, job), "attempt 2: denied");
  EXPECT_EQ(jobs_.from_step, 6) << "the events of the last step are those before the next one";
  EXPECT_EQ(ReadSaveFailure(&client, job), "");
  EXPECT_EQ(ReadSaveFailure(&client, job), "");
}

// Writes five steps of 3 s, the third with a validation loss and a checkpoint, and the end.
grpc::Status WriteFiveSteps(grpc::ServerContext*,
                            grpc::ServerWriter<v1::WatchJobResponse>* writer) {
  for (int64_t number = 1; number <= 5; ++number) {
    v1::WatchJobResponse response;
    v1::StepEvent& step = *response.mutable_step();
    step.set_step(number);
    step.set_group_epoch(1);
    step.set_step_seconds(3);
    step.set_loss(2.5);
    if (number == 3) step.set_validation_loss(2.75);
    writer->Write(response);
    if (number != 3) continue;
    response.mutable_event()->set_event("CHECKPOINT_COMMITTED");
    response.mutable_event()->set_message("step 3, attempt 1: /c");
    response.mutable_event()->set_step(3);
    writer->Write(response);
  }
  WriteEnd(writer, v1::JOB_STATE_SUCCEEDED);
  return grpc::Status::OK;
}

TEST_F(WatchTest, ATerminalKeepsAHistoryAboveTheLine) {
  if (!Terminal::IsAvailable()) GTEST_SKIP() << "this machine has no pseudo-terminals";
  jobs_.streams = {WriteFiveSteps, WriteFiveSteps};
  Serve();
  const std::string text = Seen("1");
  EXPECT_THAT(text, HasSubstr(" step       loss  validation  learning rate\n"));
  EXPECT_THAT(text, HasSubstr("\033[K    3     2.5000      2.7500      0.000e+00\n"));
  EXPECT_THAT(text, HasSubstr("\033[K    3  CHECKPOINT_COMMITTED step 3, attempt 1: /c\n"));
  EXPECT_THAT(text, HasSubstr("\033[Kstep 3/5  loss  2.5000      6 s left"));
  EXPECT_THAT(text, EndsWith("\033[Kjobs/a: SUCCEEDED, step 5 of 5\n"));
  EXPECT_THAT(text.substr(text.rfind("step 5/5")), Not(HasSubstr("left")));
  EXPECT_THAT(Seen(""), EndsWith("jobs/a: \033[32mSUCCEEDED\033[0m, step 5 of 5\n"));
}

TEST_F(WatchTest, LinesNameTheValidationLossAsTheHistoryOfATerminalDoes) {
  jobs_.streams = {WriteFiveSteps};
  Serve();
  Client client = MakeClient();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto code = WatchJob(&client, &interrupt_, {.job = "jobs/a"});
  const std::string text = testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(text, HasSubstr("step 3  loss 2.500000  "));
  EXPECT_THAT(text, HasSubstr(" tokens/s  validation 2.750000\n"));
}

TEST_F(WatchTest, AJobThatHasEndedHasNoTimeLeft) {
  if (!Terminal::IsAvailable()) GTEST_SKIP() << "this machine has no pseudo-terminals";
  jobs_.streams = {WriteFiveSteps};
  jobs_.state = v1::JOB_STATE_SUCCEEDED;
  Serve();
  const std::string text = Seen("1");
  EXPECT_THAT(text, HasSubstr("\033[Kstep 3/5  loss  2.5000"));
  EXPECT_THAT(text, Not(HasSubstr("left")));
}

TEST_F(WatchTest, CtrlCDetachesFromAStreamThatIsSilent) {
  jobs_.streams = {[](grpc::ServerContext* context, auto*) {
    kill(getpid(), SIGINT);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!context->IsCancelled() && std::chrono::steady_clock::now() < end) sched_yield();
    return grpc::Status::CANCELLED;
  }};
  Serve();
  EXPECT_EQ(*Run("jobs/a"), ExitCode::kInterrupted);
  EXPECT_THAT(err_, HasSubstr("detached; jobs/a continues"));
}

}  // namespace
}  // namespace troupe
