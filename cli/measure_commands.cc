// The commands receipt, trace and report, which show what a job measured.
#include <fmt/format.h>

#include <charconv>

#include "base/file_system.h"
#include "base/program/program.h"
#include "base/text/count_text.h"
#include "base/text/printable.h"
#include "base/text/wrapped.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/output/output_file.h"
#include "cli/trace_json.h"
#include "cli/watch.h"
#include "plan/job/job_name.h"
#include "report/report_html.h"
#include "report/text/json_text.h"
#include "report/text/receipt_text.h"

namespace troupe {
namespace {

constexpr size_t kLineColumns = 80;

constexpr TextFlag kCompareFlag{
    "--compare", "OTHER", "ranks both jobs by tokens per second, if their conditions are equal"};
constexpr TextFlag kStepsFlag{"--steps", "FIRST:LAST",
                              "steps since the ranks were last started; FIRST alone is one step",
                              true};
constexpr TextFlag kProfileOutputFlag{"--output", "FILE", "file for the JSON", true};
constexpr TextFlag kPageFlag{"--output", "FILE", "file for the page", true};
constexpr NumberFlag<int64_t> kTraceStepFlag{
    {"--trace-step", "STEP",
     "also draws this step as it ran, if the ranks still have its trace; waits for a future step"},
    {1, int64_t{1} << 40}};

StatusOr<v1::Receipt> FetchReceipt(Client* client, const std::string& job) {
  v1::GetJobReceiptRequest request;
  request.set_name(JobName(job));
  TROUPE_ASSIGN_OR_RETURN(
      v1::GetJobReceiptResponse found,
      client->Call<v1::GetJobReceiptResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
            return client->jobs().GetJobReceipt(context, request, response);
          }));
  return std::move(*found.mutable_receipt());
}

// Measurements under other plans are not ranked; a line reports each of them.
void ListOtherPlans(const Json& receipt) {
  for (const Json& other : receipt["other_plans"]) {
    PrintMessage("{}: skipped, because it was measured under another plan: {}\n",
                 receipt["job"].get<std::string>(), OtherPlanLine(other));
  }
}

ExitCode Compare(const Json& a, const Json& b, bool wants_json) {
  ListOtherPlans(a);
  ListOtherPlans(b);
  const std::vector<std::string> unlike = UnlikeFields(a, b);
  if (!unlike.empty()) {
    PrintMessage("{} and {} cannot be ranked: they were measured under different conditions\n",
                 a["job"].get<std::string>(), b["job"].get<std::string>());
    for (const std::string& field : unlike) PrintMessage("  {}\n", field);
    return ExitCode::kFailed;
  }
  for (const Json* receipt : {&a, &b}) {
    if (!(*receipt)["steady"]["tokens_per_second"].is_null()) continue;
    PrintMessage("{} has no steady step under its plan {}, so there is nothing to rank\n",
                 (*receipt)["job"].get<std::string>(),
                 (*receipt)["plan_digest"].get<std::string>());
    return ExitCode::kFailed;
  }
  const auto rate = [](const Json& receipt) {
    return receipt["steady"]["tokens_per_second"].get<double>();
  };
  const bool first = rate(a) >= rate(b);
  const Json& faster = first ? a : b;
  const Json& slower = first ? b : a;
  Json ranking = Json::array();
  for (const Json* receipt : {&faster, &slower}) {
    ranking.push_back({{"job", (*receipt)["job"]},
                       {"plan_digest", (*receipt)["plan_digest"]},
                       {"tokens_per_second", rate(*receipt)},
                       {"of_fastest", rate(*receipt) / rate(faster)},
                       {"suspect", (*receipt)["suspect"]}});
  }
  if (wants_json) {
    PrintOutput("{}\n", Dump({{"ranking", std::move(ranking)}, {"receipts", {a, b}}}));
    return ExitCode::kDone;
  }
  for (const Json& entry : ranking) {
    PrintOutput("{:<36} {:>12.1f} tokens/s  {:.3f} of the fastest\n",
                entry["job"].get<std::string>(), entry["tokens_per_second"].get<double>(),
                entry["of_fastest"].get<double>());
    for (const Json& reason : entry["suspect"]) {
      const std::string line = "suspect: " + PrintableLine(reason.get<std::string>());
      PrintOutput("  {}\n", Lines{Wrapped(line, kLineColumns - 2, "    ")});
    }
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Receipt(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(const v1::Receipt found, FetchReceipt(&client, line.positional()[0]));
  const Json receipt = ReceiptToJson(found);
  if (const auto& other = line.Get(kCompareFlag)) {
    TROUPE_ASSIGN_OR_RETURN(const v1::Receipt compared, FetchReceipt(&client, *other));
    return Compare(receipt, ReceiptToJson(compared), line.wants_json());
  }
  PrintOutput("{}", Lines{line.wants_json() ? Dump(receipt) + "\n" : ReceiptToText(receipt)});
  return ExitCode::kDone;
}

// Parses "5:8", or "5" for one step.
StatusOr<v1::TraceJobRequest> ParseSteps(const std::string& text) {
  v1::TraceJobRequest request;
  const char* const end = text.data() + text.size();
  int64_t first = 0;
  const auto begin = std::from_chars(text.data(), end, first);
  int64_t last = first;
  bool ok = begin.ec == std::errc();
  if (ok && begin.ptr != end) {
    const auto rest = *begin.ptr == ':' ? std::from_chars(begin.ptr + 1, end, last)
                                        : std::from_chars_result{end, std::errc::invalid_argument};
    ok = rest.ec == std::errc() && rest.ptr == end;
  }
  if (!ok) return InvalidArgument("{}: \"{}\" is not FIRST:LAST or FIRST", kStepsFlag.name, text);
  request.set_first_step(first);
  request.set_last_step(last);
  return request;
}

StatusOr<v1::TraceJobResponse> FetchTrace(Client* client, const v1::TraceJobRequest& request) {
  return client->Call<v1::TraceJobResponse>(
      Client::Repeat::kSafe, Client::kTraceLimit, [&](auto* context, auto* response) {
        return client->jobs().TraceJob(context, request, response);
      });
}

StatusOr<ExitCode> Trace(const CommandLine& line) {
  const std::string& output = *line.Get(kProfileOutputFlag);
  PosixFileSystem files;
  TROUPE_RETURN_IF_ERROR(CheckNamesFile(files, kProfileOutputFlag.name, output));
  TROUPE_ASSIGN_OR_RETURN(v1::TraceJobRequest request, ParseSteps(*line.Get(kStepsFlag)));
  request.set_name(JobName(line.positional()[0]));
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(const v1::Job job, client.GetJob(request.name()));
  TROUPE_ASSIGN_OR_RETURN(const v1::TraceJobResponse trace, FetchTrace(&client, request));
  const Json json = TraceToJson(trace, job);
  TROUPE_RETURN_IF_ERROR(WriteOutputFile(files, output, Dump(json) + "\n"));
  int64_t dropped = 0;
  for (const v1::RankTrace& rank : trace.ranks()) dropped += rank.dropped_operations();
  if (dropped > 0)
    PrintMessage(
        "warning: {} operations are missing, because the ranks' buffers for operations were full\n",
        dropped);
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"output", output},
                              {"ranks", trace.ranks_size()},
                              {"events", json["traceEvents"].size()}}));
  } else {
    PrintOutput("{}: {} of {}\n", output, CountText(json["traceEvents"].size(), "event"),
                CountText(trace.ranks_size(), "rank"));
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Report(const CommandLine& line) {
  const std::string& output = *line.Get(kPageFlag);
  PosixFileSystem files;
  TROUPE_RETURN_IF_ERROR(CheckNamesFile(files, kPageFlag.name, output));
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  JobReport report;
  const std::string name = JobName(line.positional()[0]);
  TROUPE_ASSIGN_OR_RETURN(report.job, client.GetJob(name));
  if (const auto& step = line.Get(kTraceStepFlag)) {
    v1::TraceJobRequest request;
    request.set_name(name);
    request.set_first_step(*step);
    request.set_last_step(*step);
    TROUPE_ASSIGN_OR_RETURN(report.trace, FetchTrace(&client, request));
    TROUPE_ASSIGN_OR_RETURN(report.job, client.GetJob(name));  // the step may have been waited for
  }
  TROUPE_ASSIGN_OR_RETURN(JobHistory history, ReadHistory(&client, report.job));
  for (auto& [number, step] : history.steps) report.steps.push_back(std::move(step));
  report.events = std::move(history.events);
  TROUPE_ASSIGN_OR_RETURN(report.receipt, FetchReceipt(&client, name));
  report.receipt_rows = ReceiptToRows(ReceiptToJson(*report.receipt));
  TROUPE_RETURN_IF_ERROR(WriteOutputFile(files, output, ReportHtml(report)));
  if (line.wants_json()) {
    PrintOutput("{}\n", Dump({{"output", output},
                              {"steps", report.steps.size()},
                              {"events", report.events.size()}}));
  } else {
    PrintOutput("{}: {} and {} of {}\n", output, CountText(report.steps.size(), "step"),
                CountText(report.events.size(), "event"), report.job.name());
  }
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> MeasureCommands() {
  return {
      {.name = "receipt",
       .positionals = "JOB",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Prints what a job measured, and under which conditions.",
       .flags = {&kCompareFlag},
       .run = Receipt},
      {.name = "trace",
       .positionals = "JOB",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Writes a timeline of each rank for Chrome's tracing or Perfetto; waits for "
                  "future steps.",
       .flags = {&kStepsFlag, &kProfileOutputFlag},
       .run = Trace},
      {.name = "report",
       .positionals = "JOB",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Draws what a job did and measured into one HTML file that needs no network.",
       .flags = {&kPageFlag, &kTraceStepFlag},
       .run = Report},
  };
}

}  // namespace troupe
