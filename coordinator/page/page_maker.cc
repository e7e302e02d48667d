#include "coordinator/page/page_maker.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "base/flag_parser.h"
#include "base/security/certificate.h"
#include "coordinator/page/newest_lines.h"
#include "coordinator/page/page_answer.h"
#include "plan/job/job_name.h"
#include "report/live/assets.h"
#include "report/live/cluster_html.h"
#include "report/live/logs_html.h"
#include "report/text/json_text.h"
#include "report/text/receipt_text.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;

// The name of the page in audit records.
constexpr char kPageInAudit[] = "/page";
constexpr std::string_view kBearer = "Bearer ";

constexpr milliseconds kHistoryLimit{3000};
// Nothing marks the end of what there is of a job that goes on; it arrives within this time.
constexpr milliseconds kTailLimit{300};

constexpr size_t kMostLogLines = 500;
// A worker sends up to 4 MiB of the log of each of its ranks.
constexpr int kMostRanksOfLogs = 16;
constexpr size_t kMostBytesOfLog = size_t{4} << 20;
// Protobuf adds a few bytes to each line.
static_assert(PageCalls::kMostLogBytes >= kMostRanksOfLogs * kMostBytesOfLog * 5 / 4);

// Reads the part of the job's history that is new. REQUIRES: watched.reading is locked.
Status ReadOn(const v1::Job& job, PageCalls& calls, WatchedJob& watched) {
  constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
  const auto read = [&](milliseconds limit, int64_t last_step) {
    v1::WatchJobRequest request;
    request.set_name(job.name());
    {
      const std::lock_guard lock(watched.mutex);
      request.set_from_step(watched.steps.NextStep(job.step()));
    }
    const Status status = calls.ReadHistory(request, limit, [&](v1::WatchJobResponse update) {
      const std::lock_guard lock(watched.mutex);
      if (update.has_step()) {
        const int64_t number = update.step().step();
        watched.steps.Add(std::move(*update.mutable_step()));
        return number < last_step;
      }
      if (update.has_event()) watched.steps.Add(update.event());
      watched.is_complete = update.update_case() == v1::WatchJobResponse::kEnd;
      return !watched.is_complete;
    });
    return status.code() == StatusCode::kDeadlineExceeded ? OkStatus() : status;
  };
  if (IsEndState(job.state())) return read(kHistoryLimit, kToTheEnd);
  int64_t through = 0;
  bool is_behind = false;
  {
    const std::lock_guard lock(watched.mutex);
    through = watched.steps.Through(job.step());
    is_behind = watched.steps.IsBehind(job.step());
  }
  if (is_behind) {
    TROUPE_RETURN_IF_ERROR(read(kHistoryLimit, job.step()));
    const std::lock_guard lock(watched.mutex);
    watched.steps.EndRead(through, job.step());
  }
  return read(kTailLimit, kToTheEnd);
}

HttpPage AssetPage(PageRoute::Kind kind) {
  switch (kind) {
    case PageRoute::Kind::kStyle:
      return {200, std::string(StyleSheet()), "text/css; charset=utf-8"};
    case PageRoute::Kind::kScript:
      return {200, std::string(PageScript()), "text/javascript; charset=utf-8"};
    default:
      return {200, std::string(PageIcon()), "image/svg+xml"};
  }
}

bool IsAsset(PageRoute::Kind kind) {
  return kind == PageRoute::Kind::kStyle || kind == PageRoute::Kind::kScript ||
         kind == PageRoute::Kind::kIcon;
}

}  // namespace

PageMaker::PageMaker(const Options& options)
    : options_(options),
      channel_(options.channel, options.secret, *options.audit, contexts_),
      logs_(*options.clock) {}

HttpPage PageMaker::Answer(const HttpRequest& request) {
  if (IsAskedByOtherSite(request)) return Finished(OtherSitePage(), request, PageCaching::kNever);
  const bool is_safe = options_.has_tls || IsAddressHost(request.host);
  if (!is_safe) return Finished(WrongHostPage(), request, PageCaching::kNever);
  const StatusOr<PageRoute> route = RouteOf(request);
  if (!route.ok()) return Finished(PageOfError(route.status()), request, PageCaching::kNever);
  if (IsAsset(route->kind)) {
    return Finished(AssetPage(route->kind), request, PageCaching::kBriefly);
  }
  return Finished(PageOf(request, *route), request, PageCaching::kNever);
}

HttpPage PageMaker::PageOf(const HttpRequest& request, const PageRoute& route) {
  const StatusOr<Viewer> viewer = Authenticate(request);
  if (!viewer.ok()) return PageOfError(viewer.status(), request);
  StatusOr<std::string> html = route.kind == PageRoute::Kind::kCluster ? Cluster(*viewer, route)
                               : route.kind == PageRoute::Kind::kJob   ? OneJob(*viewer, route)
                                                                       : Logs(*viewer, route);
  return html.ok() ? HtmlPage(*std::move(html)) : PageOfError(html.status(), request);
}

StatusOr<Viewer> PageMaker::Authenticate(const HttpRequest& request) const {
  if (!options_.has_tls) return Viewer{};
  StatusOr<ViewerCredentials> given = CredentialsOf(request);
  if (!given.ok()) {
    // Every browser begins without the header, but only a guess has one that cannot be read.
    if (!request.authorization.empty()) {
      options_.audit->AppendRefusal("anonymous", kPageInAudit,
                                    std::string(Message(given.status())));
    }
    return given.status();
  }
  ViewerCredentials credentials = *std::move(given);
  std::vector<std::string> authorizations;
  if (!credentials.token.empty())
    authorizations.push_back(fmt::format("{}{}", kBearer, credentials.token));
  StatusOr<Caller> caller = options_.access->Authenticate(credentials.certificate, authorizations);
  if (caller.ok()) return Viewer{*std::move(caller), std::move(credentials)};
  const auto holder = ReadCertificate(credentials.certificate);
  std::string name = holder.ok() ? ToUri(holder->identity) : ClaimedToken(authorizations);
  options_.audit->AppendRefusal(name.empty() ? "anonymous" : std::move(name), kPageInAudit,
                                std::string(Message(caller.status())));
  return caller.status();
}

StatusOr<std::string> PageMaker::Cluster(const Viewer& viewer, const PageRoute& route) const {
  PageCalls calls(channel_, viewer);
  ClusterPageView view;
  view.caller = viewer.Name();
  view.now_ns = options_.clock->WallNanoseconds();
  view.version = kVersion;
  view.state_filter = route.state;
  view.namespace_filter = route.in_namespace;
  // Namespaces, if there are any, hide jobs from all but operators.
  view.sees_all_jobs = !viewer.caller || viewer.caller->identity->role == Role::kOperator;
  StatusOr<v1::ListJobsResponse> listed = calls.ListJobs(route.state, route.in_namespace);
  if (listed.ok()) {
    view.jobs.assign(std::make_move_iterator(listed->mutable_jobs()->begin()),
                     std::make_move_iterator(listed->mutable_jobs()->end()));
    view.more_jobs = static_cast<size_t>(listed->all_jobs()) - view.jobs.size();
    std::ranges::stable_sort(view.jobs, std::greater(), &v1::Job::create_wall_time_ns);
  } else {
    const StatusCode code = listed.status().code();
    if (code == StatusCode::kInvalidArgument || code == StatusCode::kPermissionDenied ||
        code == StatusCode::kUnauthenticated) {
      return listed.status();
    }
    view.jobs_error = ToString(listed.status());
  }
  if (StatusOr<WorkersPart> part = calls.ListWorkers(); part.ok()) {
    view.workers = std::move(part->workers);
    view.more_workers = part->more;
  } else {
    view.workers_error = ToString(part.status());
  }
  return ClusterHtml(view);
}

StatusOr<std::string> PageMaker::OneJob(const Viewer& viewer, const PageRoute& route) {
  PageCalls calls(channel_, viewer);
  JobView view;
  JobReport& report = view.report;
  TROUPE_ASSIGN_OR_RETURN(report.job, calls.GetJob(JobName(route.job)));
  view.caller = viewer.Name();
  view.version = kVersion;
  view.checkpoints.assign(report.job.checkpoints().begin(), report.job.checkpoints().end());
  const std::shared_ptr<WatchedJob> watched = watched_.Find(report.job, options_.clock->Now());
  AddSteps(calls, *watched, &view);
  AddTrace(calls, *watched, &view);
  StatusOr<v1::Receipt> receipt = calls.GetReceipt(report.job.name());
  if (receipt.ok()) {
    report.receipt_rows = ReceiptToRows(ReceiptToJson(*receipt));
    report.receipt = *std::move(receipt);
  } else {
    view.receipt_error = ToString(receipt.status());
  }
  view.now_ns = report.now_ns = options_.clock->WallNanoseconds();
  return JobHtml(view);
}

void PageMaker::AddSteps(PageCalls& calls, WatchedJob& watched, JobView* view) const {
  const v1::Job& job = view->report.job;
  {
    const std::unique_lock reading(watched.reading, std::try_to_lock);
    const Status status = reading.owns_lock() ? ReadOn(job, calls, watched) : OkStatus();
    if (!status.ok()) view->steps_error = ToString(status);
  }
  const std::lock_guard lock(watched.mutex);
  view->report.steps = watched.steps.Steps(job.step());
  view->report.events = watched.steps.Events();
  if (const std::optional<StepSums> sums = watched.steps.Sums(job.step())) {
    view->report.all_steps = sums->steps;
    view->report.trained_tokens = sums->tokens;
  }
  if (view->steps_error.empty() && !watched.is_complete)
    view->steps_error = watched.steps.Shortfall(job.step());
}

void PageMaker::AddTrace(PageCalls& calls, WatchedJob& watched, JobView* view) {
  const v1::Job& job = view->report.job;
  if (const Status may = calls.CheckMayTrace(); !may.ok()) {
    if (Trains(job)) view->trace_error = ToString(may);
    return;
  }
  if (Trains(job) && job.ranks_size() > kMostTracedRanks) {
    view->trace_error = fmt::format(
        "the page shows the steps of jobs with at most {} ranks as they ran; `troupe trace` has no "
        "such limit",
        kMostTracedRanks);
    return;
  }
  std::optional<int64_t> step;
  {
    const std::lock_guard lock(watched.mutex);
    step = StepToTrace(job, watched.steps.LastOfGroup());
  }
  Status error_of_viewer;
  if (step && watched_.MayTrace(job, options_.clock->Now())) {
    StatusOr<v1::TraceJobResponse> answer = calls.TraceStep(job.name(), *step);
    if (IsOfViewer(answer.status())) {
      error_of_viewer = answer.status();
      watched_.ForgetTrace(job);
    } else {
      const std::lock_guard lock(watched.mutex);
      TakeTrace(std::move(answer), &watched.trace);
    }
  }
  if (!error_of_viewer.ok()) {
    view->trace_error = ToString(error_of_viewer);
    return;
  }
  const std::lock_guard lock(watched.mutex);
  view->report.trace = watched.trace.trace;
  view->trace_error = watched.trace.error;
}

StatusOr<std::string> PageMaker::Logs(const Viewer& viewer, const PageRoute& route) {
  PageCalls calls(channel_, viewer);
  LogsView view;
  TROUPE_ASSIGN_OR_RETURN(view.job, calls.GetJob(JobName(route.job)));
  view.caller = viewer.Name();
  view.now_ns = options_.clock->WallNanoseconds();
  view.version = kVersion;
  view.rank = route.rank;
  if (!route.rank && view.job.ranks_size() > kMostRanksOfLogs) {
    view.error = fmt::format(
        "the job has {} ranks, and the page shows the lines of at most {} ranks together: choose "
        "one",
        view.job.ranks_size(), kMostRanksOfLogs);
    return LogsHtml(view);
  }
  v1::ReadJobLogsRequest request;
  request.set_name(view.job.name());
  if (route.rank) request.set_rank(*route.rank);
  TROUPE_RETURN_IF_ERROR(calls.CheckMayReadLogs());
  const SharedLogs::Key key = {view.job.name(), view.job.create_wall_time_ns(), route.rank};
  LogSample sample = logs_.Get(key, [&] {
    NewestLines lines(kMostLogLines, route.rank ? LinesOrder::kArrival : LinesOrder::kTime);
    Status read = calls.ReadLogs(request, [&](const std::string& line) { lines.Add(line); });
    LogSample fetched = {.lines = lines.Take(), .error = std::move(read)};
    fetched.more_lines = lines.left_out();
    return fetched;
  });
  if (sample.error.code() == StatusCode::kNotFound) return sample.error;
  if (!sample.error.ok()) view.error = ToString(sample.error);
  view.lines = std::move(sample.lines);
  view.more_lines = sample.more_lines;
  return LogsHtml(view);
}

}  // namespace troupe
