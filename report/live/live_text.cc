#include "report/live/live_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/text/count_text.h"
#include "base/text/printable.h"
#include "base/text/scaled.h"

namespace troupe {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

std::string UtcOf(int64_t wall_time_ns) { return UtcText(wall_time_ns / kNanosecondsPerSecond); }

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u; }

}  // namespace

std::string Clipped(std::string_view text, size_t most_characters) {
  const std::string shown = PrintableLines(text);  // UTF-8
  const auto characters = static_cast<size_t>(std::ranges::count_if(shown, BeginsCharacter));
  if (characters <= most_characters) return shown;
  size_t left = most_characters, end = 0;
  for (; end < shown.size(); ++end) {
    if (BeginsCharacter(shown[end]) && left-- == 0) break;
  }
  return fmt::format("{}… ({})", shown.substr(0, end),
                     CountText(characters - most_characters, "more character"));
}

std::string MinuteText(int64_t wall_time_ns) {
  const std::string text = UtcOf(wall_time_ns);  // "2026-11-24T06:37:13Z"
  const size_t separator = text.find('T'), seconds = text.rfind(':');
  if (separator == std::string::npos || seconds == std::string::npos) return text;
  return fmt::format("{} {} UTC", text.substr(0, separator),
                     text.substr(separator + 1, seconds - separator - 1));
}

std::string ReasonOf(const v1::Job& job) {
  if (!job.moving().empty()) return job.moving();
  if (!job.waiting_for().empty()) return job.waiting_for();
  const v1::Failure& failure = job.failure();
  return failure.message().empty() ? failure.cause() : failure.cause() + ": " + failure.message();
}

std::string DeviceFacts(const v1::WorkerStatus& worker) {
  std::set<std::string> models;
  int cores = 0;
  int64_t bytes = 0;
  for (const v1::Device& device : worker.devices()) {
    if (!device.kind().model().empty()) models.insert(device.kind().model());
    cores = std::max(cores, device.cores());  // devices of a host share its cores
    bytes += device.memory_bytes();
  }
  std::vector<std::string> facts(models.begin(), models.end());
  if (cores > 0) facts.push_back(CountText(cores, "core"));
  if (bytes > 0) facts.push_back(Scaled(static_cast<double>(bytes), "B"));
  return fmt::format("{}", fmt::join(facts, ", "));
}

}  // namespace troupe
