// The commands; each list is in its own file.
#ifndef TROUPE_CLI_COMMANDS_H_
#define TROUPE_CLI_COMMANDS_H_

#include <vector>

#include "cli/command_line.h"

namespace troupe {

// submit list describe watch cancel delete resume logs workers, workers drain, workers undrain
std::vector<Command> JobCommands();
std::vector<Command> MeasureCommands();     // receipt trace report
std::vector<Command> PlanCommands();        // plan
std::vector<Command> KeyCommands();         // keys
std::vector<Command> DataCommands();        // data prepare, data show
std::vector<Command> CheckpointCommands();  // checkpoints list create show verify
std::vector<Command> InteropCommands();     // checkpoints import export
std::vector<Command> CatalogCommands();     // checkpoints diff pin unpin rebuild-catalog
std::vector<Command> ClusterCommands();     // up down supervise
std::vector<Command> AuditCommands();       // audit verify
std::vector<Command> CertsCommands();       // certs init issue revoke revoked
std::vector<Command> JoinCommands();        // certs token, certs join
std::vector<Command> TokensCommands();      // tokens create list revoke
std::vector<Command> HelpCommands();        // completion man

// All of these, in the order of the help text.
std::vector<Command> AllCommands();

}  // namespace troupe

#endif  // TROUPE_CLI_COMMANDS_H_
