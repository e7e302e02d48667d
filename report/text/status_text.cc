#include "report/text/status_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>

#include "base/clock.h"
#include "plan/job/message_json.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

std::string UtcOfNs(int64_t wall_time_ns) { return UtcText(wall_time_ns / 1'000'000'000); }

std::string DrainReason(const v1::WorkerDrain& drain) {
  const bool ends = drain.end_wall_time_ns() != 0;
  std::string text =
      ends ? "ends by " + UtcOfNs(drain.end_wall_time_ns()) : "drained by an operator";
  if (!ends && drain.since_wall_time_ns() != 0)
    text += " since " + UtcOfNs(drain.since_wall_time_ns());
  return drain.reason().empty() ? text : text + ": " + drain.reason();
}

void AddDrainLines(const v1::WorkerStatus& worker, std::vector<std::string>* lines) {
  const v1::WorkerDrain& drain = worker.drain();
  lines->push_back(DrainReason(drain));
  if (drain.order_end_wall_time_ns() != 0) {
    lines->push_back(fmt::format("the order ends at {}, or by `troupe workers undrain {}`",
                                 UtcOfNs(drain.order_end_wall_time_ns()), worker.name()));
  }
  for (const v1::StayingJob& job : drain.staying_jobs())
    lines->push_back(fmt::format("{} stays: {}", job.name(), job.reason()));
}

}  // namespace

std::string FailureLine(const v1::Failure& failure) {
  std::string text = failure.cause();
  if (failure.rank() >= 0) text += fmt::format(" of rank {}", failure.rank());
  if (!failure.worker().empty()) text += " on " + failure.worker();
  if (failure.signal() != 0) text += fmt::format(", signal {}", failure.signal());
  if (failure.exit_code() != 0) text += fmt::format(", exit code {}", failure.exit_code());
  if (!failure.last_operation().empty()) text += ", in " + failure.last_operation();
  return failure.message().empty() ? text : text + ": " + failure.message();
}

std::string CoordinatesText(const v1::MeshDegrees& layout, const v1::MeshCoordinates& place) {
  const Json degrees = MessageToJson(layout), places = MessageToJson(place);
  std::vector<std::string> axes;
  for (const auto& [axis, degree] : degrees.items()) {
    if (degree.get<int64_t>() > 1)
      axes.push_back(fmt::format("{} {}", axis, places[axis].get<int64_t>()));
  }
  return fmt::format("{}", fmt::join(axes, ", "));
}

std::string CoreRanges(const v1::CoreSet& set) {
  std::string text;
  for (int i = 0; i < set.cores_size();) {
    int last = i;
    while (last + 1 < set.cores_size() && set.cores(last + 1) == set.cores(last) + 1) ++last;
    if (!text.empty()) text += ",";
    text += fmt::to_string(set.cores(i));
    if (last > i) text += fmt::format("-{}", set.cores(last));
    i = last + 1;
  }
  if (!text.empty() && set.shared_by() > 1)
    text += fmt::format(" (shared by {} ranks)", set.shared_by());
  return text;
}

std::string DeviceCounts(const v1::WorkerStatus& worker) {
  std::map<std::string, int> devices;  // by kind
  for (const v1::Device& device : worker.devices()) ++devices[device.kind().kind()];
  std::vector<std::string> counts;
  for (const auto& [kind, count] : devices) counts.push_back(fmt::format("{} {}", count, kind));
  return fmt::format("{}", fmt::join(counts, ", "));
}

std::vector<std::string> Restrictions(const v1::WorkerStatus& worker) {
  std::vector<std::string> lines;
  for (const v1::Device& device : worker.devices()) {
    if (!device.condemned().empty()) {
      lines.push_back(
          fmt::format("device {} is condemned: {}", device.index(), device.condemned()));
    }
  }
  if (worker.has_drain()) AddDrainLines(worker, &lines);
  for (const v1::SetAside& part : worker.set_aside()) lines.push_back(SetAsideText(part));
  return lines;
}

}  // namespace troupe
