#include "base/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/metrics/metric_list.h"
#include "base/text_file.h"

namespace troupe {
namespace {

struct Usage {
  double cpu_seconds = 0;
  double start_seconds = 0;  // after the boot
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

std::optional<Usage> ReadUsage() {
  const StatusOr<std::string> text = ReadTextFile("/proc/self/stat");
  if (!text.ok()) return {};
  // The second field is the program's name in parentheses, which may contain anything. Fields are
  // counted from 1, as in proc(5).
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text->substr(name_end + 1));
  std::string state;
  fields >> state;
  constexpr int kFirst = 4, kUserTime = 14, kSystemTime = 15, kStart = 22, kVirtual = 23,
                kResident = 24;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  Usage usage;
  int64_t value = 0;
  int field = kFirst;
  for (; field <= kResident && fields >> value; ++field) {
    const auto number = static_cast<double>(value);
    if (field == kUserTime || field == kSystemTime) usage.cpu_seconds += number / ticks;
    if (field == kStart) usage.start_seconds = number / ticks;
    if (field == kVirtual) usage.virtual_bytes = number;
    if (field == kResident) usage.resident_bytes = number * page;
  }
  if (field <= kResident) return {};
  return usage;
}

// Returns the wall time at which the system booted.
std::optional<double> BootSeconds() {
  const StatusOr<std::string> text = ReadTextFile("/proc/stat");
  constexpr std::string_view kBoot = "\nbtime ";
  const size_t at = text.ok() ? text->find(kBoot) : std::string::npos;
  if (at == std::string::npos) return {};
  double seconds = 0;
  std::istringstream(text->substr(at + kBoot.size())) >> seconds;
  return seconds;
}

std::optional<double> OpenDescriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator descriptors("/proc/self/fd", error);
  if (error) return {};
  return static_cast<double>(std::distance(begin(descriptors), end(descriptors)));
}

void Append(const MetricText& metric, const char* type, double value, std::string* text) {
  *text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", metric.name, HelpOf(metric),
                       type, value);
}

}  // namespace

std::string ProcessMetricsText() {
  std::string text;
  if (const std::optional<Usage> usage = ReadUsage()) {
    Append(metric::kProcessCpu.text, "counter", usage->cpu_seconds, &text);
    Append(metric::kProcessResident.text, "gauge", usage->resident_bytes, &text);
    Append(metric::kProcessVirtual.text, "gauge", usage->virtual_bytes, &text);
    if (const std::optional<double> boot = BootSeconds()) {
      Append(metric::kProcessStart.text, "gauge", *boot + usage->start_seconds, &text);
    }
  }
  if (const std::optional<double> open = OpenDescriptors()) {
    Append(metric::kProcessOpenFiles.text, "gauge", *open, &text);
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    Append(metric::kProcessMostFiles.text, "gauge", static_cast<double>(limit.rlim_cur), &text);
  }
  return text;
}

}  // namespace troupe
