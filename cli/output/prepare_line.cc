#include "cli/output/prepare_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/output/duration_text.h"

namespace troupe {
namespace {

constexpr Duration kLeastPause = std::chrono::milliseconds(200);

}  // namespace

std::string PrepareLine::Text(const PrepareProgress& progress, double seconds) {
  // Files may have grown since their bytes were counted.
  const double total = static_cast<double>(std::max<int64_t>(progress.bytes_total, 1));
  const double read = std::clamp(static_cast<double>(progress.bytes_read), 1.0, total);
  return fmt::format("{:.0f}% of {:.1f} MB  {} documents  {} tokens  {:.0f} tokens/s  {} left",
                     100 * read / total, total / 1e6, progress.documents, progress.tokens,
                     static_cast<double>(progress.tokens) / std::max(seconds, 1e-3),
                     DurationText(seconds * (total - read) / read));
}

void PrepareLine::Show(const PrepareProgress& progress) {
  const MonotonicTime now = clock_.Now();
  if (now - std::max(drawn_, began_) < kLeastPause) return;
  drawn_ = now;
  line_.Draw(Text(progress, ToSeconds(now - began_)));
}

}  // namespace troupe
