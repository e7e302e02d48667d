#include "base/metrics/process_metrics.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace troupe {
namespace {

// Returns the value of the metric in `text`; -1 if there is none.
double ValueOf(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

TEST(ProcessMetrics, DescribeThisProcess) {
  const std::string text = ProcessMetricsText();
  EXPECT_GE(ValueOf(text, "process_cpu_seconds_total"), 0);
  EXPECT_GT(ValueOf(text, "process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(ValueOf(text, "process_virtual_memory_bytes"),
            ValueOf(text, "process_resident_memory_bytes"));
  EXPECT_GE(ValueOf(text, "process_open_fds"), 3);
  EXPECT_GE(ValueOf(text, "process_max_fds"), ValueOf(text, "process_open_fds"));
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_NEAR(ValueOf(text, "process_start_time_seconds"), now, 3600);
}

TEST(ProcessMetrics, HaveHelpAndType) {
  const std::string text = ProcessMetricsText();
  EXPECT_NE(
      text.find("# HELP process_start_time_seconds Start of the process after the Unix epoch, "
                "in seconds.\n# TYPE process_start_time_seconds gauge\n"),
      std::string::npos);
}

}  // namespace
}  // namespace troupe
