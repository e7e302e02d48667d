#include "base/program/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace troupe {
namespace {

// The lowest free descriptor is the one that open returns.
void OpenStandardStreams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    const int flags = descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (open("/dev/null", flags) < 0) return;  // without it, writes fail as well
  }
}

std::string ErrorText(int error_number) {
  return std::error_code(error_number, std::generic_category()).message();
}

// Returns why a part of the output was not written; empty if all of it was.
std::string CloseOutput() {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fclose(stdout) != 0) return errno == EPIPE ? "" : ErrorText(errno);
  return failed_before ? "an earlier write failed" : "";
}

int ReportOutput(std::string_view name, std::string_view reason, int code) {
  PrintMessage("{}: standard output cannot be written: {}\n", name, reason);
  return code == 0 ? kOutputFailed : code;
}

}  // namespace

void WriteMessage(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void WriteOutput(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  throw std::system_error(errno, std::generic_category());
}

void FlushOutput() {
  if (std::fflush(stdout) == 0) return;
  if (errno != EPIPE) throw std::system_error(errno, std::generic_category());
  std::clearerr(stdout);
}

int RunProgram(std::string_view name, const std::function<int()>& body) {
  OpenStandardStreams();
  int code = 0;
  try {
    code = body();
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) throw;
    return ReportOutput(name, error.code().message(), kOutputFailed);
  }
  const std::string reason = CloseOutput();
  return reason.empty() ? code : ReportOutput(name, reason, code);
}

}  // namespace troupe
