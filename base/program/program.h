// The frame of every program: its standard streams are open, its messages are printed, and output
// that cannot be written is reported and changes the exit code.
//
// A program prints texts that others chose, and a terminal obeys some. PrintMessage and PrintOutput
// show them as PrintableLine does, so that none moves the cursor or begins a line.
#ifndef TROUPE_BASE_PROGRAM_PROGRAM_H_
#define TROUPE_BASE_PROGRAM_PROGRAM_H_

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/text/printable.h"

namespace troupe {

// The exit code of a program whose standard output cannot be written.
inline constexpr int kOutputFailed = 1;

// Writes `text` to standard error. What cannot be written is dropped: a message is not worth the
// work that it describes. Thread-safe.
void WriteMessage(std::string_view text);

// An argument of PrintMessage or PrintOutput that is a text of several lines. Whoever made it has
// shown what others chose of it as PrintableLine does.
struct Lines {
  std::string_view text;
};

// Returns an argument as it is printed.
template <typename Argument>
auto Shown(const Argument& argument) {
  if constexpr (std::is_same_v<Argument, Lines>) {
    return PrintableLines(argument.text);
  } else if constexpr (std::is_convertible_v<const Argument&, std::string_view>) {
    return PrintableLine(argument);
  } else {
    return argument;
  }
}

template <typename Argument>
using ShownType = decltype(Shown(std::declval<const Argument&>()));

template <typename... Arguments>
using ShownFormat = fmt::format_string<ShownType<Arguments>...>;

// Formats `shown`, arguments that Shown has returned. Lists among them may have control characters
// yet.
template <typename... ShownArguments>
std::string FormatShown(fmt::format_string<ShownArguments...> format, ShownArguments... shown) {
  return PrintableLines(fmt::vformat(format, fmt::make_format_args(shown...)));
}

// Prints a message on standard error, as WriteMessage does.
template <typename... Arguments>
void PrintMessage(ShownFormat<Arguments...> format, const Arguments&... arguments) {
  WriteMessage(FormatShown<ShownType<Arguments>...>(format, Shown(arguments)...));
}

// Writes `text` to standard output. Throws std::system_error if that fails, as fmt::print does.
void WriteOutput(std::string_view text);

// Prints results on standard output, as WriteOutput does. JSON stays the same JSON.
template <typename... Arguments>
void PrintOutput(ShownFormat<Arguments...> format, const Arguments&... arguments) {
  WriteOutput(FormatShown<ShownType<Arguments>...>(format, Shown(arguments)...));
}

// Writes what is buffered for standard output. It throws std::system_error if that fails, as
// WriteOutput does, unless the reader of a pipe has left.
void FlushOutput();

// Runs `body`, closes standard output and returns the exit code of the program: that of `body`, or
// kOutputFailed if `body` returns 0 or is ended by an exception of WriteOutput or FlushOutput, but
// its output cannot be written. Then standard error gets a sentence that begins with `name`. If
// SIGPIPE is ignored, a reader of a pipe that has left is an error only where WriteOutput fails.
//
// A standard stream that is closed is opened first, such that no other file gets its number: writes
// to such a standard output fail, and standard error drops them.
int RunProgram(std::string_view name, const std::function<int()>& body);

}  // namespace troupe

#endif  // TROUPE_BASE_PROGRAM_PROGRAM_H_
