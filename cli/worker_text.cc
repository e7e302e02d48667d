#include "cli/worker_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/json_text.h"

namespace troupe {

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
  for (const auto& part : worker.set_aside()) text += "; " + SetAsideText(part);
  return text;
}

}  // namespace troupe
