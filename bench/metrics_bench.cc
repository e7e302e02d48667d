// Measures a scrape of a coordinator with many jobs: GET /metrics over the loopback, for a registry
// in which each job has as many series as a job may have. Prints one JSON line.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/flag_parser.h"
#include "base/http/test_http_client.h"
#include "base/metrics/metric_list.h"
#include "base/metrics/metrics.h"
#include "base/metrics/metrics_server.h"
#include "base/metrics/purpose.h"

namespace troupe {
namespace {

constexpr int kJobs = 100;
constexpr int kSeriesOfAJob = 400;  // the limit at which coordinator/service/measure_test.cc counts
constexpr int kScrapes = 41;

// Fills the registry like a job at the limit: a histogram, and else single series with two labels.
void AddJob(int index, Metrics* metrics) {
  constexpr int kSeriesOfAHistogram = 20;
  const label::JobName job(fmt::format("llama-8b-run-{}", index));
  metrics->Observe(metric::kJobStepDuration, 0.25, job);
  int series = kSeriesOfAHistogram;
  for (const std::string_view purpose : kPurposeNames) {
    metrics->Add(metric::kJobCommunication, 1234.567 + index, job,
                 label::Purpose(std::string(purpose)));
    ++series;
  }
  for (int expert = 0; series < kSeriesOfAJob; ++expert, ++series) {
    metrics->Add(metric::kJobRouterLoad, 1e9 / (expert + index + 1.0), job,
                 label::Expert(std::to_string(expert)));
  }
}

size_t SeriesIn(std::string_view text) {
  size_t series = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (text.substr(begin, end - begin).find("job_name=") != std::string_view::npos) ++series;
    begin = end + 1;
  }
  return series;
}

void MeasureScrapes() {
  Metrics metrics;
  for (int job = 0; job < kJobs; ++job) AddJob(job, &metrics);
  StatusOr<std::unique_ptr<MetricsServer>> server =
      MetricsServer::Start(metrics, {.listen = "127.0.0.1:0"});
  TROUPE_CHECK_OK(server.status());
  std::vector<double> seconds;
  std::string page;
  for (int i = 0; i < kScrapes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    page = GetPlain((*server)->port(), "/metrics");
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  fmt::print(
      "{{\"bench\": \"metrics\", \"jobs\": {}, \"series\": {}, \"bytes\": {}, \"scrapes\": {}, "
      "\"p50_ms\": {:.1f}, \"max_ms\": {:.1f}}}\n",
      kJobs, SeriesIn(page), page.size(), kScrapes, seconds[kScrapes / 2] * 1e3,
      seconds.back() * 1e3);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::FlagParser parser(
      {.name = "troupe-bench-metrics",
       .usage = "troupe-bench-metrics",
       .summary = "Measures a scrape of the metrics of 100 jobs; prints a JSON line."});
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  signal(SIGPIPE, SIG_IGN);
  troupe::MeasureScrapes();
  return 0;
}
