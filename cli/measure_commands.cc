// receipt, trace: what a job measured.
#include <fmt/format.h>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/json_text.h"
#include "cli/receipt_text.h"

namespace troupe {
namespace {

StatusOr<Json> FetchReceipt(Client* client, const std::string& job) {
  v1::GetJobReceiptRequest request;
  request.set_name(JobName(job));
  TROUPE_ASSIGN_OR_RETURN(
      const v1::GetJobReceiptResponse found,
      client->Call<v1::GetJobReceiptResponse>(
          Client::Repeat::kSafe, Client::kCallLimit, [&](auto* context, auto* response) {
            return client->jobs().GetJobReceipt(context, request, response);
          }));
  return ReceiptToJson(found.receipt());
}

ExitCode Compare(const Json& a, const Json& b, bool wants_json) {
  const std::vector<std::string> unlike = UnlikeFields(a, b);
  if (!unlike.empty()) {
    fmt::print(stderr, "{} and {} cannot be ranked: they were measured under unlike conditions\n",
               a["job"].get<std::string>(), b["job"].get<std::string>());
    for (const std::string& field : unlike) fmt::print(stderr, "  {}\n", field);
    return ExitCode::kFailed;
  }
  for (const Json* receipt : {&a, &b}) {
    if (!(*receipt)["steady"]["tokens_per_second"].is_null()) continue;
    fmt::print(stderr, "{} has no steady step: there is nothing to rank\n",
               (*receipt)["job"].get<std::string>());
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
                       {"tokens_per_second", rate(*receipt)},
                       {"of_fastest", rate(*receipt) / rate(faster)},
                       {"suspect", (*receipt)["suspect"]}});
  }
  if (wants_json) {
    fmt::print("{}\n", Dump({{"ranking", std::move(ranking)}, {"receipts", {a, b}}}));
    return ExitCode::kDone;
  }
  for (const Json& entry : ranking) {
    fmt::print("{:<40} {:>12.1f} tokens/s  {:.3f} of the fastest\n",
               entry["job"].get<std::string>(), entry["tokens_per_second"].get<double>(),
               entry["of_fastest"].get<double>());
    for (const Json& reason : entry["suspect"]) {
      fmt::print("  suspect: {}\n", reason.get<std::string>());
    }
  }
  return ExitCode::kDone;
}

StatusOr<ExitCode> Receipt(const CommandLine& line) {
  TROUPE_ASSIGN_OR_RETURN(Client client, Client::Make(line));
  TROUPE_ASSIGN_OR_RETURN(const Json receipt, FetchReceipt(&client, line.positional()[0]));
  if (const auto other = line.Get("--compare")) {
    TROUPE_ASSIGN_OR_RETURN(const Json compared, FetchReceipt(&client, *other));
    return Compare(receipt, compared, line.wants_json());
  }
  fmt::print("{}", line.wants_json() ? Dump(receipt) + "\n" : ReceiptToText(receipt));
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> MeasureCommands() {
  return {
      {.name = "receipt",
       .positionals = "JOB",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "What a job measured, and under which conditions.",
       .flags = {{"--compare", "OTHER", "rank the two by tokens a second, if conditions are alike"}},
       .run = Receipt},
  };
}

}  // namespace troupe
