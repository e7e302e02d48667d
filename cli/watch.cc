#include "cli/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <thread>
#include <tuple>

#include "base/program/program.h"
#include "cli/output/colour.h"
#include "cli/output/progress_line.h"
#include "cli/output/relative_path.h"
#include "cli/output/state_line.h"
#include "cli/output/step_history.h"
#include "cli/output/text_style.h"
#include "plan/job/job_name.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

using std::chrono::steady_clock;

// A watch ends if the coordinator is unreachable for longer than this.
constexpr std::chrono::seconds kAwayLimit{60};
constexpr std::chrono::milliseconds kPauseBetweenTries{200};
constexpr std::chrono::seconds kHistoryLimit{60};
constexpr std::chrono::milliseconds kSaveFailureLimit{300};

// Kinds of events after a save that failed, and after one that did not.
constexpr std::string_view kSaveFailures[] = {"CHECKPOINT_ABORTED", "SAVING_IMAGES",
                                              "IMAGES_FAILED"};
constexpr std::string_view kCommitted = "CHECKPOINT_COMMITTED";

class Watch {
 public:
  Watch(Client* client, InterruptWatch* interrupt, const WatchOptions& options, const v1::Job& job)
      : client_(client),
        interrupt_(interrupt),
        options_(options),
        steps_(job.steps()),
        directory_(WorkingDirectoryOrNone()),
        progress_(job.steps(), IsEndState(job.state())),
        history_(job.steps(), progress_.shows_colours(), directory_),
        from_step_(options.from_step),
        reached_step_(job.step()) {
    lines_ = options.lines && (options.json || !progress_.draws() || isatty(STDOUT_FILENO) == 0);
  }

  StatusOr<ExitCode> Run() {
    auto away_since = steady_clock::now();
    while (true) {
      const bool heard = Follow();
      if (interrupt_->interrupted()) {
        progress_.PrintLine(
            fmt::format("detached; {} continues. To watch it again: troupe watch {}", options_.job,
                        JobId(options_.job)));
        return ExitCode::kInterrupted;
      }
      TROUPE_RETURN_IF_ERROR(recorded_);
      if (end_ != v1::JOB_STATE_UNSPECIFIED) {
        return end_ == v1::JOB_STATE_SUCCEEDED ? ExitCode::kDone : ExitCode::kFailed;
      }
      if (last_status_.code() == StatusCode::kResourceExhausted && heard) {
        // This client read too slowly: it continues after the last step that it has seen, without
        // the lost events.
        from_step_ = std::max(from_step_, last_step_ + 1);
        away_since = steady_clock::now();
        continue;
      }
      if (last_status_.code() == StatusCode::kUnauthenticated && heard) {
        // The certificate with which the stream began has expired, and may have been renewed since.
        // A stream that does not begin ends the watch.
        from_step_ = std::max(from_step_, last_step_ + 1);
        continue;
      }
      if (!last_status_.ok() && last_status_.code() != StatusCode::kUnavailable) {
        return last_status_;
      }
      if (heard) {
        away_since = steady_clock::now();
        progress_.PrintLine("the coordinator cannot be reached; waiting for it");
      }
      if (steady_clock::now() - away_since > kAwayLimit) {
        return OfCoordinator(Unavailable("{}: not reached for more than {} s", client_->address(),
                                         kAwayLimit.count()));
      }
      // While no thread waits for the channel, gRPC looks at its sockets every 5 s only, and TLS
      // handshakes time out: a mere pause would keep the command away from its coordinator.
      if (client_->WaitUntilConnected(kPauseBetweenTries).ok())
        std::this_thread::sleep_for(kPauseBetweenTries);
    }
  }

 private:
  // Reads one stream to its end and returns whether anything arrived. Steps that arrived on an
  // earlier stream are not printed again.
  bool Follow() {
    grpc::ClientContext context;
    const CancelOnInterrupt cancel(interrupt_, &context);
    v1::WatchJobRequest request;
    request.set_name(options_.job);
    request.set_from_step(from_step_);
    auto reader = client_->jobs().WatchJob(&context, request);
    v1::WatchJobResponse response;
    bool heard = false;
    while (reader->Read(&response)) {
      heard = true;
      Show(response);
      if (!recorded_.ok()) context.TryCancel();
    }
    last_status_ = FromGrpcStatus(reader->Finish());
    return heard;
  }

  void Show(const v1::WatchJobResponse& response) {
    if (response.has_step()) {
      const auto& step = response.step();
      uint64_t& epoch = epoch_of_step_[step.step()];
      if (epoch != 0 && epoch >= step.group_epoch()) return;
      epoch = step.group_epoch();
      last_step_ = step.step();
      reached_step_ = std::max(reached_step_, last_step_);
      if (options_.record && recorded_.ok()) recorded_ = options_.record(step);
      ShowStep(step);
    } else if (response.has_event()) {
      const auto& event = response.event();
      if (!events_.emplace(event.wall_time_ns(), event.event(), event.message()).second) return;
      ShowEvent(event);
    } else if (response.update_case() == v1::WatchJobResponse::kEnd) {
      end_ = response.end();
      ShowEnd();
    }
  }

  bool scrolls() const { return !lines_ && progress_.draws(); }

  void ShowEnd() {
    if (lines_) {
      Line(options_.json ? EndToJsonLine(end_) : StateText(end_));
    } else if (scrolls()) {
      progress_.PrintShown(
          StateLine({.name = options_.job,
                     .state = StateText(end_),
                     .colour = progress_.shows_colours() ? ColourOf(end_) : Colour::kNone,
                     .step = reached_step_,
                     .steps = steps_},
                    progress_.columns()));
    } else {
      progress_.PrintLine(StateText(end_));
    }
  }

  void ShowStep(const v1::StepEvent& step) {
    if (scrolls()) {
      const std::string row = history_.StepText(step, steady_clock::now(), progress_.columns());
      if (!row.empty()) progress_.PrintShown(row);
    }
    progress_.Show(step);
    if (!lines_) return;
    if (options_.json) {
      Line(StepToJsonLine(step));
      return;
    }
    std::string text = fmt::format(
        "step {}  loss {:.6f}  grad_norm {:.4f}  lr {:.3e}  {:.0f} tokens/s", step.step(),
        step.loss(), step.grad_norm(), step.learning_rate(), step.tokens_per_second());
    if (step.has_mfu()) text += fmt::format("  MFU {:.1f}%", 100 * step.mfu());
    if (step.has_validation_loss())
      text += fmt::format("  validation {:.6f}", step.validation_loss());
    Line(text);
  }

  void ShowEvent(const v1::JobEvent& event) {
    if (lines_) {
      Line(options_.json ? EventToJsonLine(event)
                         : fmt::format("{} {}", event.event(),
                                       WithRelativePaths(event.message(), directory_)));
    } else if (scrolls()) {
      progress_.PrintShown(history_.EventText(event, progress_.columns()));
    }
  }

  void Line(const std::string& text) {
    PrintOutput("{}\n", text);
    FlushOutput();
  }

  Client* client_;
  InterruptWatch* interrupt_;
  const WatchOptions options_;
  const int64_t steps_;
  const std::string directory_;  // paths below it are relative in texts
  ProgressLine progress_;
  StepHistory history_;
  bool lines_ = false;
  int64_t from_step_ = 0;                      // the next stream begins with its history
  int64_t last_step_ = 0;                      // the last step shown
  int64_t reached_step_ = 0;                   // the highest step that is known
  std::map<int64_t, uint64_t> epoch_of_step_;  // highest printed epoch
  std::set<std::tuple<int64_t, std::string, std::string>> events_;
  v1::JobState end_ = v1::JOB_STATE_UNSPECIFIED;
  Status last_status_;
  Status recorded_;  // the first error of options_.record
};

}  // namespace

StatusOr<ExitCode> WatchJob(Client* client, InterruptWatch* interrupt,
                            const WatchOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const v1::Job job, client->GetJob(options.job));
  return Watch(client, interrupt, options, job).Run();
}

std::optional<v1::StepEvent> ReadStep(Client* client, const std::string& job, int64_t step) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kStepLimit);
  v1::WatchJobRequest request;
  request.set_name(job);
  request.set_from_step(step);
  auto reader = client->jobs().WatchJob(&context, request);
  v1::WatchJobResponse response;
  std::optional<v1::StepEvent> found;
  while (!found && reader->Read(&response)) {
    if (response.has_step()) found = response.step();
  }
  context.TryCancel();  // the stream goes on to the end of the job
  reader->Finish();
  return found;
}

namespace {

// A part of a job's history, read from one stream.
struct HistoryPart {
  int64_t from_step = 0;
  int64_t last_step = 0;  // the stream is left after it
  std::chrono::milliseconds limit{0};
};

// Adds to `history` what arrives until the part is complete or the job has ended.
Status ReadPart(Client* client, const std::string& job, const HistoryPart& part,
                JobHistory* history) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + part.limit);
  v1::WatchJobRequest request;
  request.set_name(job);
  request.set_from_step(part.from_step);
  auto reader = client->jobs().WatchJob(&context, request);
  v1::WatchJobResponse response;
  bool is_complete = false;
  while (!is_complete && reader->Read(&response)) {
    if (response.has_step()) {
      v1::StepEvent& kept = history->steps[response.step().step()];
      if (response.step().group_epoch() >= kept.group_epoch()) kept = response.step();
      is_complete = response.step().step() >= part.last_step;
    } else if (response.has_event()) {
      history->events.push_back(response.event());
    } else {
      is_complete = true;
    }
  }
  if (is_complete) context.TryCancel();  // the stream goes on to the end of the job
  const Status status = FromGrpcStatus(reader->Finish());
  return is_complete ? OkStatus() : status;
}

}  // namespace

std::string ReadEndMessage(Client* client, const v1::Job& job) {
  JobHistory history;
  const HistoryPart rest = {.from_step = job.step() + 1,
                            .last_step = std::numeric_limits<int64_t>::max(),
                            .limit = kStepLimit};
  std::string message;
  if (!ReadPart(client, job.name(), rest, &history).ok()) return message;
  for (const v1::JobEvent& event : history.events) {
    if (event.event() == StateText(job.state())) message = event.message();
  }
  return message;
}

std::string ReadSaveFailure(Client* client, const v1::Job& job) {
  JobHistory history;
  const HistoryPart rest = {.from_step = job.step() + 1,
                            .last_step = std::numeric_limits<int64_t>::max(),
                            .limit = kSaveFailureLimit};
  // The stream goes on to the end of the job, so the limit ends it.
  const Status read = ReadPart(client, job.name(), rest, &history);
  if (!read.ok() && read.code() != StatusCode::kDeadlineExceeded) return "";
  std::string failure;
  for (const v1::JobEvent& event : history.events) {
    if (std::ranges::count(kSaveFailures, event.event()) != 0) {
      failure = event.message();
    } else if (event.event() == kCommitted) {
      failure.clear();
    }
  }
  return failure;
}

StatusOr<JobHistory> ReadHistory(Client* client, const v1::Job& job) {
  JobHistory history;
  if (job.step() > 0) {
    TROUPE_RETURN_IF_ERROR(
        ReadPart(client, job.name(), {.last_step = job.step(), .limit = kHistoryLimit}, &history));
  }
  // Events of the present step come after it. Of a job that has none, nothing else may come.
  const Status rest = ReadPart(
      client, job.name(),
      {.from_step = job.step() + 1, .last_step = job.step() + 1, .limit = kStepLimit}, &history);
  if (!rest.ok() && rest.code() != StatusCode::kDeadlineExceeded) return rest;
  const auto key = [](const v1::JobEvent& event) {
    return std::tuple(event.wall_time_ns(), event.event(), event.message());
  };
  std::ranges::sort(history.events, {}, key);
  const auto repeated =
      std::unique(history.events.begin(), history.events.end(),
                  [&](const v1::JobEvent& a, const v1::JobEvent& b) { return key(a) == key(b); });
  history.events.erase(repeated, history.events.end());
  return history;
}

}  // namespace troupe
