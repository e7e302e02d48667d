#include "cli/help/fish_completion.h"

#include <gtest/gtest.h>

#include "cli/help/sample_commands_test.h"

namespace troupe {
namespace {

TEST(FishCompletionTest, TheScriptCompletesCommandsFlagsAndWords) {
  EXPECT_EQ(FishCompletion(SampleCommands()),
            R"(# Completion of troupe for fish, as `troupe completion fish` prints it.
function __troupe_command
    set -l words (commandline -opc)
    switch "$words[2] $words[3]"
        case 'workers drain' 'data export'
            echo "$words[2] $words[3]"
        case '*'
            echo "$words[2]"
    end
end
function __troupe_in
    contains -- "$argv" (__troupe_command)
end
function __troupe_after
    set -l words (commandline -opc)
    test "$words[2..]" = "$argv"
end
complete -c troupe -f
complete -c troupe -n '__troupe_after' -a up -d 'Starts a local cluster'
complete -c troupe -n '__troupe_after' -a workers -d 'Lists the workers'
complete -c troupe -n '__troupe_after' -a data -d 'export'
complete -c troupe -n '__troupe_after' -a completion -d 'Prints a script'
complete -c troupe -n '__troupe_after data' -a export -d 'Writes the weights'
complete -c troupe -n '__troupe_after workers' -a drain -d 'Drains a worker'
complete -c troupe -n '__troupe_in up' -s h -l help -d 'print this text'
complete -c troupe -n '__troupe_in up' -l workers -x -d 'it\'s [1]: \\'
complete -c troupe -n '__troupe_in up' -l set -x -d 'any key'
complete -c troupe -n '__troupe_in up' -l data-dir -x -a '(__fish_complete_directories)' -d 'where'
complete -c troupe -n '__troupe_in up' -s o -x -a 'json text' -d 'format'
complete -c troupe -n '__troupe_in data export' -s h -l help -d 'print this text'
complete -c troupe -n '__troupe_in data export' -l to -x -a '(__fish_complete_directories)' -d 'out'
complete -c troupe -n '__troupe_in data export' -F
complete -c troupe -n '__troupe_in completion' -a 'bash zsh fish'
)");
}

}  // namespace
}  // namespace troupe
