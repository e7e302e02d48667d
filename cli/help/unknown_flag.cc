#include "cli/help/unknown_flag.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/edit_distance.h"

namespace troupe {
namespace {

constexpr ForeignFlag kForeignFlags[] = {
    {"--follow", "logs", "it is called -f here"},
    {"--lines", "logs", "it is called --tail here"},
    {"-n", "logs", "it is called --tail here"},
    {"--last", "logs", "it is called --tail here"},
    {"--timestamps", "logs", "each line has its time, and the order is that of time"},
    {"--follow", "submit", "it is called --wait here"},
    {"-f", "submit", "the job file needs no flag: troupe submit JOB.yaml"},
    {"--file", "submit", "the job file needs no flag: troupe submit JOB.yaml"},
    {"-n", "submit", "it is called --name here"},
    {"-d", "submit", "without --wait the command does not wait for the job"},
    {"--detach", "submit", "without --wait the command does not wait for the job"},
    {"-f", "plan", "the job file needs no flag: troupe plan JOB.yaml"},
    {"--file", "plan", "the job file needs no flag: troupe plan JOB.yaml"},
    {"-n", "plan", "it is called --workers here"},
    {"--follow", "watch", "the command follows the job without a flag"},
    {"-f", "watch", "the command follows the job without a flag"},
    {"-w", "list", "`troupe watch JOB` follows a job"},
    {"--watch", "list", "`troupe watch JOB` follows a job"},
    {"-a", "list", "the command lists all jobs, unless --state or --namespace select some"},
    {"--all", "list", "the command lists all jobs, unless --state or --namespace select some"},
    {"--status", "list", "it is called --state here"},
    {"-n", "list", "it is called --namespace here"},
    {"-n", "up", "it is called --workers here"},
    {"--nproc", "up", "it is called --workers here"},
    {"--num-workers", "up", "it is called --workers here"},
    {"--gpus", "up", "--devices cuda:N takes N of them"},
    {"--force", "cancel", "--now cancels without a checkpoint"},
    {"-f", "cancel", "--now cancels without a checkpoint"},
    {"--force", "delete", "a job is cancelled first: troupe cancel --now JOB"},
    {"-f", "delete", "a job is cancelled first: troupe cancel --now JOB"},
    {"--json", "", "it is written -o json"},
    {"--format", "", "it is called -o here"},
    {"--output", "", "the form of the output is chosen by -o"},
    {"--host", "", "--coordinator HOST:PORT names the coordinator"},
    {"--server", "", "--coordinator HOST:PORT names the coordinator"},
    {"--address", "", "--coordinator HOST:PORT names the coordinator"},
    {"--token", "", "--token-file FILE names a file with the token"},
    {"-v", "", "`troupe --version` prints the version"},
    {"--version", "", "`troupe --version` prints the version"},
};

}  // namespace

std::span<const ForeignFlag> ForeignFlags() { return kForeignFlags; }

std::string UnknownFlagHint(std::string_view command, const std::string& flag,
                            const std::vector<std::string>& names) {
  for (const ForeignFlag& row : kForeignFlags) {
    if (row.name == flag && (row.command.empty() || row.command == command))
      return fmt::format("; {}", row.hint);
  }
  std::string_view nearest;
  size_t least = std::max<size_t>(1, flag.size() / 4) + 1;
  for (const std::string& name : names) {
    const std::string_view spelling = std::string_view(name).substr(name.rfind(',') + 1);
    // A letter alone is near to every other one.
    if (!flag.starts_with("--") || !spelling.starts_with("--")) continue;
    const size_t distance = EditDistance(flag, spelling);
    if (distance >= least) continue;
    least = distance;
    nearest = spelling;
  }
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

}  // namespace troupe
