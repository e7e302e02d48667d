#include "cli/output/prepare_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text/scaled.h"
#include "report/text/duration_text.h"
#include "report/text/text_columns.h"

namespace troupe {
namespace {

constexpr Duration kLeastPause = std::chrono::milliseconds(200);

}  // namespace

// The numbers have fixed widths, so that the line does not move.
std::string PrepareLine::Text(const PrepareProgress& progress, double seconds, size_t columns) {
  // Files may have grown since their bytes were counted.
  const double total = static_cast<double>(std::max<int64_t>(progress.bytes_total, 1));
  const double read = std::clamp(static_cast<double>(progress.bytes_read), 1.0, total);
  const double rate = static_cast<double>(progress.tokens) / std::max(seconds, 1e-3);
  return FittingLine({{fmt::format("{:3.0f}% of {}", 100 * read / total, Scaled(total, "B")), 4},
                      {fmt::format("{:5} documents", progress.documents), 1},
                      {fmt::format("{:8} tokens", progress.tokens), 2},
                      {fmt::format("{:7.0f} tokens/s", rate), 3},
                      {fmt::format("{} left", DurationText(seconds * (total - read) / read)), 4}},
                     columns);
}

void PrepareLine::Show(const PrepareProgress& progress) {
  const MonotonicTime now = clock_.Now();
  if (now - std::max(drawn_, began_) < kLeastPause) return;
  drawn_ = now;
  line_.Draw(Text(progress, ToSeconds(now - began_), line_.columns()));
}

}  // namespace troupe
