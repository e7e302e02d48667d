#include "cli/commands.h"

#include <utility>

namespace troupe {

std::vector<Command> AllCommands() {
  std::vector<Command> commands;
  for (auto list : {ClusterCommands, JobCommands, MeasureCommands, PlanCommands, KeyCommands,
                    DataCommands, CheckpointCommands, CatalogCommands, InteropCommands,
                    CertsCommands, JoinCommands, TokensCommands, AuditCommands, HelpCommands}) {
    for (Command& command : list()) commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace troupe
