// The frame of every program: its standard streams are open, its messages are printed, and output
// that cannot be written is reported and changes the exit code.
#ifndef TROUPE_BASE_PROGRAM_PROGRAM_H_
#define TROUPE_BASE_PROGRAM_PROGRAM_H_

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

namespace troupe {

// The exit code of a program whose standard output cannot be written.
inline constexpr int kOutputFailed = 1;

// Writes `text` to standard error. What cannot be written is dropped: a message is not worth the
// work that it describes. Thread-safe.
void WriteMessage(std::string_view text);

template <typename... Arguments>
void PrintMessage(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  WriteMessage(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Writes what is buffered for standard output. It throws std::system_error if that fails, as
// fmt::print does, unless the reader of a pipe has left.
void FlushOutput();

// Runs `body`, closes standard output and returns the exit code of the program: that of `body`, or
// kOutputFailed if `body` returns 0 or is ended by an exception of fmt::print or FlushOutput, but
// its output cannot be written. Then standard error gets a sentence that begins with `name`. If
// SIGPIPE is ignored, a reader of a pipe that has left is an error only where fmt::print fails.
//
// A standard stream that is closed is opened first, such that no other file gets its number: writes
// to such a standard output fail, and standard error drops them.
int RunProgram(std::string_view name, const std::function<int()>& body);

}  // namespace troupe

#endif  // TROUPE_BASE_PROGRAM_PROGRAM_H_
