#include "cli/help/foreign_command.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view kJobs =
    "`troupe list` shows the jobs, `troupe describe JOB` one of them";
constexpr std::string_view kStop =
    "`troupe cancel JOB` stops a job after a checkpoint, and `troupe cancel --now JOB` at once; "
    "`troupe down` stops a local cluster";
constexpr std::string_view kFollow =
    "`troupe watch JOB` follows the steps of a job, `troupe logs -f JOB` its logs";
constexpr std::string_view kSubmit = "`troupe submit JOB.yaml` starts a job";
constexpr std::string_view kRemove =
    "`troupe delete JOB` removes a job that has ended; `troupe cancel JOB` ends one";
constexpr std::string_view kHosts = "`troupe workers` lists the hosts and their devices";
constexpr std::string_view kClusters =
    "`troupe up` starts a local cluster, or one that was stopped";
constexpr std::string_view kResume = "`troupe resume JOB` continues a job that has ended";
constexpr std::string_view kPlan = "`troupe plan JOB.yaml` checks a job file and plans the job";

constexpr ForeignCommand kForeignCommands[] = {
    {"status", kJobs},
    {"ps", kJobs},
    {"jobs", kJobs},
    {"job", kJobs},
    {"get", kJobs},
    {"ls", kJobs},
    {"queue", kJobs},
    {"squeue", kJobs},
    {"info", "`troupe describe JOB` shows a job, and `troupe workers` the workers"},
    {"inspect", "`troupe describe JOB` shows a job, and `troupe workers` the workers"},
    {"top", "`troupe list` shows the jobs, and `troupe watch JOB` the steps of one"},
    {"stop", kStop},
    {"kill", kStop},
    {"abort", kStop},
    {"terminate", kStop},
    {"scancel", kStop},
    {"attach", kFollow},
    {"follow", kFollow},
    {"tail", kFollow},
    {"run", kSubmit},
    {"train", kSubmit},
    {"launch", kSubmit},
    {"create", kSubmit},
    {"apply", kSubmit},
    {"sbatch", kSubmit},
    {"rm", kRemove},
    {"remove", kRemove},
    {"nodes", kHosts},
    {"hosts", kHosts},
    {"devices", kHosts},
    {"gpus", kHosts},
    {"sinfo", kHosts},
    {"start", "`troupe submit JOB.yaml` starts a job, and `troupe up` a local cluster"},
    {"init", kClusters},
    {"cluster", kClusters},
    {"restart", kResume},
    {"continue", kResume},
    {"validate", kPlan},
    {"check", kPlan},
    {"lint", kPlan},
    {"dry-run", kPlan},
    {"tokenize", "`troupe data prepare` tokenizes texts"},
    {"metrics",
     "`troupe receipt JOB` prints what a job measured, and `troupe report JOB` draws it"},
    {"profile", "`troupe trace JOB` writes a timeline of the ranks"},
    {"version", "`troupe --version` prints the version"},
};

}  // namespace

std::span<const ForeignCommand> ForeignCommands() { return kForeignCommands; }

std::string_view ForeignCommandHint(std::string_view word) {
  const auto row = std::ranges::find(kForeignCommands, word, &ForeignCommand::name);
  return row == std::end(kForeignCommands) ? std::string_view() : row->hint;
}

}  // namespace troupe
