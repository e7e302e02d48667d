#include "cli/worker_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "cli/output/json_text.h"

namespace troupe {
namespace {

std::string DrainTimeText(int64_t wall_ns) { return UtcText(wall_ns / 1'000'000'000); }

std::string DrainText(const v1::WorkerStatus& worker) {
  const v1::WorkerDrain& drain = worker.drain();
  const bool ends = drain.end_wall_time_ns() != 0;
  std::string text = ends ? fmt::format("ends by {}", DrainTimeText(drain.end_wall_time_ns()))
                          : "drained by an operator";
  if (!ends && drain.since_wall_time_ns() != 0)
    text += fmt::format(" since {}", DrainTimeText(drain.since_wall_time_ns()));
  if (!drain.reason().empty()) text += ": " + drain.reason();
  if (drain.order_end_wall_time_ns() != 0) {
    text += fmt::format("; the order ends at {}, or by `troupe workers undrain {}`",
                        DrainTimeText(drain.order_end_wall_time_ns()), worker.name());
  }
  for (const v1::StayingJob& job : drain.staying_jobs())
    text += fmt::format("; {} stays: {}", job.name(), job.reason());
  return text;
}

}  // namespace

std::string WorkerText(const v1::WorkerStatus& worker) {
  std::vector<std::string> parts;
  if (worker.devices_size() > 0) {
    parts.push_back(
        fmt::format("{} device{}", worker.devices_size(), worker.devices_size() == 1 ? "" : "s"));
  }
  if (!worker.island().empty()) parts.push_back(fmt::format("island {}", worker.island()));
  if (worker.pid() != 0) parts.push_back(fmt::format("pid {} on {}", worker.pid(), worker.host()));
  if (worker.jobs_size() > 0) {
    parts.push_back(fmt::format("runs {}", fmt::join(worker.jobs(), " ")));
  }
  std::string text =
      fmt::format("{:<20} {:<6} {}", worker.name(), worker.state(), fmt::join(parts, ", "));
  for (const auto& rank : worker.ranks()) {
    const auto& cores = rank.cores();
    text += fmt::format("; rank {} of {} on cores {}", rank.rank(), rank.job(),
                        fmt::join(cores.cores(), ","));
    if (cores.shared_by() > 1) text += fmt::format(" (shared by {} ranks)", cores.shared_by());
  }
  for (const auto& device : worker.devices()) {
    if (device.condemned().empty()) continue;
    text += fmt::format("; device {} is condemned: {}", device.index(), device.condemned());
  }
  if (worker.has_drain()) text += "; " + DrainText(worker);
  for (const auto& part : worker.set_aside()) text += "; " + SetAsideText(part);
  return text;
}

}  // namespace troupe
