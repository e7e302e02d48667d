#include "cli/help/bash_completion.h"

#include <gtest/gtest.h>

#include "cli/help/sample_commands_test.h"

namespace troupe {
namespace {

TEST(BashCompletionTest, TheScriptCompletesCommandsFlagsAndWords) {
  EXPECT_EQ(BashCompletion(SampleCommands()),
            R"(# Completion of troupe for bash, as `troupe completion bash` prints it.
_troupe() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $current == '=' ]]; then
    current=
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  local command=${COMP_WORDS[1]} words= flags= files=
  if ((COMP_CWORD == 1)); then
    command=
    words='up workers data completion help' flags='-h --help --version'
  elif ((COMP_CWORD == 2)); then
    case $command in
      data) words='export' flags='-h --help' ;;
      workers) words='drain' flags='-h --help' ;;
    esac
  else
    case "$command ${COMP_WORDS[2]}" in
      'workers drain' | 'data export') command+=" ${COMP_WORDS[2]}" ;;
    esac
  fi
  case $command in
    'up')
      case $before in
        --data-dir) files=-d ;;
        -o) words='json text' ;;
        --workers | --set) ;;
        *) flags='-h --help --workers --set --data-dir -o' ;;
      esac
      ;;
    'workers')
      case $before in
        *) ;;
      esac
      ;;
    'workers drain')
      case $before in
        *) ;;
      esac
      ;;
    'data export')
      case $before in
        --to) files=-d ;;
        *) flags='-h --help --to' files=-f ;;
      esac
      ;;
    'completion')
      case $before in
        *) words='bash zsh fish' ;;
      esac
      ;;
  esac
  [[ $current != -* ]] || words=$flags files=
  mapfile -t COMPREPLY < <(
    compgen -W "$words" -- "$current"
    [[ -z $files ]] || compgen $files -- "$current"
  )
  [[ -z $files ]] || compopt -o filenames 2> /dev/null
}
complete -F _troupe troupe
)");
}

}  // namespace
}  // namespace troupe
