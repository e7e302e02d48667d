#include "worker/rank/core_wait.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

namespace troupe {

CoreWait::~CoreWait() {
  if (file_ >= 0) close(file_);
}

double CoreWait::SecondsSinceLastCall() {
  if (file_ == -2) file_ = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file_ < 0) return 0;
  char text[96];
  const ssize_t bytes = pread(file_, text, sizeof(text), 0);
  if (bytes <= 0) return 0;
  const auto wait = WaitOfSchedstat({text, static_cast<size_t>(bytes)});
  if (!wait) return 0;
  const int64_t since = *wait - last_ns_;
  last_ns_ = *wait;
  return static_cast<double>(since) * 1e-9;
}

std::optional<int64_t> WaitOfSchedstat(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  int64_t wait = 0;
  const auto [end, error] =
      std::from_chars(text.data() + space + 1, text.data() + text.size(), wait);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  return wait;
}

}  // namespace troupe
