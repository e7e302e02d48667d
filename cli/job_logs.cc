#include "cli/job_logs.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/program/program.h"
#include "base/text/scaled.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLongestPause{30'000};
// While the coordinator is away, Ctrl-C is noticed this often.
constexpr milliseconds kConnectSlice{200};
constexpr milliseconds kPauseBeforeRepeat{50};

struct LogRead {
  std::vector<LogLine> lines;        // selected
  int64_t left_out = 0;              // lines that were selected, but not kept
  std::vector<std::string> notices;  // about workers that cannot be reached
  Status status;
};

// Whether the answer is one line of the coordinator, which no rank has logged.
bool IsNotice(const v1::ReadJobLogsResponse& answer) {
  return answer.lines_size() == 1 && answer.lines(0).starts_with("… ") &&
         !MarksMissingBytes(answer.lines(0));
}

// Waits until the channel is connected: UNAVAILABLE at `end`, CANCELLED at an interrupt.
// `interrupt` may be null.
Status WaitForCoordinator(Client* client, InterruptWatch* interrupt, steady_clock::time_point end) {
  while (true) {
    if (interrupt != nullptr && interrupt->interrupted()) return Cancelled("interrupted");
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    Status status = client->WaitUntilConnected(std::clamp(left, milliseconds(0), kConnectSlice));
    if (status.ok() || left <= kConnectSlice) return status;
  }
}

// Reads what there is now: the lines of `selection` that are new to `seen`, which may be null, as
// may `interrupt`.
LogRead ReadLogs(Client* client, InterruptWatch* interrupt, const LogOptions& options,
                 const LogSelection& selection, SeenLogLines* seen) {
  LogRead read;
  read.status =
      WaitForCoordinator(client, interrupt, steady_clock::now() + Client::kReconnectLimit);
  if (!read.status.ok()) return read;
  v1::ReadJobLogsRequest request;
  request.set_name(options.job);
  if (options.rank) request.set_rank(*options.rank);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + Client::kCallLimit);
  std::optional<CancelOnInterrupt> cancel;
  if (interrupt != nullptr) cancel.emplace(interrupt, &context);
  auto reader = client->jobs().ReadJobLogs(&context, request);
  SelectedLogLines selected(selection, options.rank ? LogOrder::kArrival : LogOrder::kTime);
  int64_t time_ms = 0;
  v1::ReadJobLogsResponse answer;
  while (reader->Read(&answer)) {
    if (IsNotice(answer)) {
      read.notices.push_back(answer.lines(0));
      continue;
    }
    for (LogLine& line : WithTimes({answer.lines().begin(), answer.lines().end()}, time_ms)) {
      time_ms = line.time_ms;
      if (seen == nullptr || seen->IsNew(line.text)) selected.Add(std::move(line));
    }
  }
  read.status = FromGrpcStatus(reader->Finish());
  client->WarnIfInsecure(context);
  read.lines = selected.Take();
  read.left_out = selected.left_out();
  return read;
}

LogReadEnd EndOf(const LogRead& read) {
  if (!read.status.ok()) return LogReadEnd::kFailed;
  return read.notices.empty() ? LogReadEnd::kComplete : LogReadEnd::kWithoutWorkers;
}

void PrintLeftOut(int64_t lines, const LogSelection& selection) {
  if (lines == 0) return;
  PrintMessage("at most {} of lines are kept, so that the oldest ones are left out: {}\n",
               Scaled(static_cast<double>(selection.most_bytes), "B"), lines);
}

// Waits for `pause`, or until an interrupt.
void Pause(InterruptWatch* interrupt, milliseconds pause) {
  std::mutex mutex;
  std::condition_variable ended;
  interrupt->OnInterrupt([&] {
    const std::lock_guard lock(mutex);
    ended.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    ended.wait_for(lock, pause, [&] { return interrupt->interrupted(); });
  }
  interrupt->OnInterrupt(nullptr);
}

// Returns the job now. While the coordinator restarts, it is asked again.
StatusOr<v1::Job> LookAtJob(Client* client, InterruptWatch* interrupt, const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  const auto end = steady_clock::now() + Client::kReconnectLimit;
  while (true) {
    TROUPE_RETURN_IF_ERROR(WaitForCoordinator(client, interrupt, end));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + Client::kCallLimit);
    v1::GetJobResponse found;
    Status status;
    {
      const CancelOnInterrupt ends(interrupt, &context);
      status = FromGrpcStatus(client->jobs().GetJob(&context, request, &found));
    }
    client->WarnIfInsecure(context);
    if (status.ok()) return std::move(*found.mutable_job());
    if (status.code() != StatusCode::kUnavailable) return status;
    if (steady_clock::now() >= end) return Annotate(status, client->address());
    Pause(interrupt, kPauseBeforeRepeat);
  }
}

// Whether the logs may be readable again soon.
bool IsPassing(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kFailedPrecondition ||
         status.code() == StatusCode::kDeadlineExceeded ||
         status.code() == StatusCode::kResourceExhausted;
}

class Follow {
 public:
  Follow(Client* client, InterruptWatch* interrupt, const LogOptions& options)
      : client_(client), interrupt_(interrupt), options_(options), selection_(options.selection) {}

  StatusOr<ExitCode> Run() {
    bool had_ended = false;
    for (bool is_first = true;; is_first = false) {
      const StatusOr<v1::Job> job = LookAtJob(client_, interrupt_, options_.job);
      const auto began = steady_clock::now();
      const Status status = job.ok() ? ReadAndShow() : job.status();
      if (interrupt_->interrupted()) return ExitCode::kInterrupted;
      if (is_first) TROUPE_RETURN_IF_ERROR(job.status());
      TROUPE_RETURN_IF_ERROR(Excuse(status));
      // Ranks may log a little after the end of the job: there is one more read after it.
      const bool has_ended = status.ok() && IsEndState(job->state());
      if (has_ended && had_ended) return ExitCode::kDone;
      had_ended = has_ended;
      const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
      Pause(interrupt_, std::min(std::max(options_.pause, 4 * took), kLongestPause));
      if (interrupt_->interrupted()) return ExitCode::kInterrupted;
    }
  }

 private:
  // Prints what has arrived, even if the read fails then, unless an interrupt ended it.
  Status ReadAndShow() {
    const LogRead read = ReadLogs(client_, interrupt_, options_, selection_, &seen_);
    if (interrupt_->interrupted()) return read.status;
    seen_.EndRead(EndOf(read));
    for (const LogLine& line : read.lines) PrintOutput("{}\n", line.text);
    FlushOutput();
    for (const std::string& notice : read.notices) {
      if (notices_.insert(notice).second) PrintMessage("{}\n", notice);
    }
    PrintLeftOut(read.left_out, selection_);
    if (read.status.ok()) selection_.tail = std::nullopt;
    return read.status;
  }

  // Returns the error unless it may pass, and errors have lasted for no longer than the limit.
  Status Excuse(const Status& status) {
    if (status.ok()) {
      away_since_ = std::nullopt;
      return status;
    }
    const auto now = steady_clock::now();
    if (!IsPassing(status)) return status;
    if (!away_since_) {
      PrintMessage("{}; waiting for the logs\n", Message(status));
      away_since_ = now;
    }
    return now - *away_since_ > options_.away_limit ? status : OkStatus();
  }

  Client* const client_;
  InterruptWatch* const interrupt_;
  const LogOptions options_;
  LogSelection selection_;  // that of the next read
  SeenLogLines seen_;
  std::set<std::string> notices_;                       // those that were printed
  std::optional<steady_clock::time_point> away_since_;  // the first failure in a row
};

}  // namespace

StatusOr<ExitCode> PrintLogs(Client* client, const LogOptions& options) {
  const LogRead read = ReadLogs(client, nullptr, options, options.selection, nullptr);
  if (options.json) {
    TROUPE_RETURN_IF_ERROR(read.status);
    Json texts = read.notices;
    for (const LogLine& line : read.lines) texts.push_back(line.text);
    PrintOutput("{}\n", Dump({{"lines", std::move(texts)}}));
    PrintLeftOut(read.left_out, options.selection);
    return ExitCode::kDone;
  }
  for (const std::string& notice : read.notices) PrintMessage("{}\n", notice);
  for (const LogLine& line : read.lines) PrintOutput("{}\n", line.text);
  PrintLeftOut(read.left_out, options.selection);
  TROUPE_RETURN_IF_ERROR(read.status);
  return ExitCode::kDone;
}

StatusOr<ExitCode> FollowLogs(Client* client, InterruptWatch* interrupt,
                              const LogOptions& options) {
  return Follow(client, interrupt, options).Run();
}

}  // namespace troupe
