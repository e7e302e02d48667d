// The command audit verify.
#include <fmt/format.h>

#include "base/audit/audit_file.h"
#include "base/file_system.h"
#include "cli/commands.h"
#include "cli/json_text.h"

namespace troupe {
namespace {

StatusOr<ExitCode> VerifyAudit(const CommandLine& line) {
  const std::string& path = line.positional()[0];
  PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const AuditedFile audited, CheckAuditFile(files, path));
  const bool intact = audited.error.ok();
  if (line.wants_json()) {
    Json json = {{"ok", intact}, {"records", audited.head.sequence}, {"hash", audited.head.hash}};
    if (!intact) json["error"] = std::string(Message(audited.error));
    fmt::print("{}\n", Dump(json));
  } else if (intact) {
    fmt::print("{} records, intact; the hash of the last one is {}\n", audited.head.sequence,
               audited.head.hash);
  } else {
    fmt::print("damaged after {} records: {}\n", audited.head.sequence, Message(audited.error));
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
                      "data directory).",
           .cluster = ClusterUse::kNone,
           .run = VerifyAudit}};
}

}  // namespace troupe
