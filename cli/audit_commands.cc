// The command audit verify.
#include <fmt/format.h>

#include "base/audit/audit_file.h"
#include "base/file_system.h"
#include "base/program/program.h"
#include "base/text/count_text.h"
#include "cli/commands.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr SwitchFlag kAloneFlag{"--alone", "", "checks only FILE, which may begin with any record"};

StatusOr<ExitCode> VerifyAudit(const CommandLine& line) {
  const std::string& path = line.positional()[0];
  PosixFileSystem files;
  const bool alone = line.Get(kAloneFlag);
  const StatusOr<AuditedFile> checked =
      alone ? CheckAuditFile(files, path) : CheckAuditLog(files, path);
  // A directory or a device is bad input.
  if (checked.status().code() == StatusCode::kFailedPrecondition)
    return InvalidArgument("{}", Message(checked.status()));
  TROUPE_ASSIGN_OR_RETURN(const AuditedFile audited, checked);
  const bool intact = audited.error.ok();
  const int64_t records = audited.head.sequence - audited.before.sequence;
  if (line.wants_json()) {
    Json json = {{"ok", intact},
                 {"records", records},
                 {"empty", audited.is_empty},
                 {"hash", audited.head.hash}};
    if (alone) {
      json["first"] = audited.before.sequence + 1;
      json["previous"] = audited.before.hash;
    }
    if (!intact) json["error"] = std::string(Message(audited.error));
    PrintOutput("{}\n", Dump(json));
  } else if (intact && records == 0) {
    PrintOutput("{} is empty: it has no record, so it proves nothing\n", path);
  } else if (intact) {
    PrintOutput("{}, intact{}; the hash of the last one is {}\n", CountText(records, "record"),
                alone ? fmt::format(", from record {}, which follows the hash {}",
                                    audited.before.sequence + 1, audited.before.hash)
                      : "",
                audited.head.hash);
    if (audited.is_empty)
      PrintOutput("{} has no record, so later ones may have been removed\n", path);
  } else {
    PrintOutput("damaged after {}: {}\n", CountText(records, "record"), Message(audited.error));
  }
  return intact ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

std::vector<Command> AuditCommands() {
  return {{.name = "audit verify",
           .positionals = "FILE",
           .least_positionals = 1,
           .most_positionals = 1,
           .summary = "Checks the chain of hashes of a coordinator's audit log (audit.log in its "
                      "data directory) with its full files (FILE.N).",
           .flags = {&kAloneFlag},
           .cluster = ClusterUse::kNone,
           .run = VerifyAudit}};
}

}  // namespace troupe
