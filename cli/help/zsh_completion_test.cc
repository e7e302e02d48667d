#include "cli/help/zsh_completion.h"

#include <gtest/gtest.h>

#include "cli/help/sample_commands_test.h"

namespace troupe {
namespace {

TEST(ZshCompletionTest, TheScriptCompletesCommandsFlagsAndWords) {
  EXPECT_EQ(ZshCompletion(SampleCommands()),
            R"(#compdef troupe
# Completion of troupe for zsh, as `troupe completion zsh` prints it.
_troupe() {
  local -a commands
  local command=$words[2]
  if (( CURRENT == 2 )); then
    commands=(
      'up:Starts a local cluster'
      'workers:Lists the workers'
      'data:export'
      'completion:Prints a script'
    )
    _describe command commands
    return
  fi
  case $command in
    (data)
      commands=(
        'export:Writes the weights'
      )
      ;;
    (workers)
      commands=(
        'drain:Drains a worker'
      )
      ;;
  esac
  if (( CURRENT == 3 && $#commands )); then
    _describe command commands
  elif (( $#commands )) && [[ -n ${(M)commands:#$words[3]:*} ]]; then
    command+=" $words[3]"
    shift words
    (( CURRENT-- ))
  fi
  shift words
  (( CURRENT-- ))
  case $command in
    ('up')
      _arguments \
        '(-h --help)-h[print this text]' \
        '(-h --help)--help[print this text]' \
        '--workers=[it'\''s \[1\]\: \\]:N: ' \
        '*--set=[any key]:KEY=VALUE: ' \
        '--data-dir=[where]:DIR:_files -/' \
        '-o[format]:FORMAT:(json text)'
      ;;
    ('workers')
      _arguments
      ;;
    ('workers drain')
      _arguments \
        '*:NAME: '
      ;;
    ('data export')
      _arguments \
        '(-h --help)-h[print this text]' \
        '(-h --help)--help[print this text]' \
        '--to=[out]:HF_DIR:_files -/' \
        '*:PATH|JOB[@STEP]:_files'
      ;;
    ('completion')
      _arguments \
        '*:bash|zsh|fish:(bash zsh fish)'
      ;;
  esac
}
if [[ $funcstack[1] == _troupe ]]; then
  _troupe "$@"
else
  compdef _troupe troupe
fi
)");
}

}  // namespace
}  // namespace troupe
