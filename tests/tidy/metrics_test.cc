// Holds the code, the documentation, the dashboards and the alerts to base/metrics/metric_list.h.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/tidy/sources.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr char kList[] = "base/metrics/metric_list.h";

struct DeclaredMetric {
  std::string kind;      // "Counter", "Gauge" or "Histogram"
  std::string constant;  // "kJobStep"
};

// Returns the metrics of the list by name.
std::map<std::string, DeclaredMetric> DeclaredMetrics() {
  const std::regex declaration(
      R"((Counter|Gauge|Histogram)<[^>]*>\s*(k\w+)\{\s*"((?:troupe|process)_\w+)\")");
  const std::string text = TextOf(kList);
  std::map<std::string, DeclaredMetric> metrics;
  for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
    EXPECT_TRUE(metrics.insert({(*it)[3], {(*it)[1], (*it)[2]}}).second) << (*it)[3];
  }
  return metrics;
}

// Returns the names under which Prometheus shows the metrics.
std::set<std::string> ShownNames() {
  std::set<std::string> names;
  for (const auto& [name, metric] : DeclaredMetrics()) {
    names.insert(name);
    if (metric.kind != "Histogram") continue;
    for (const char* suffix : {"_bucket", "_sum", "_count"}) names.insert(name + suffix);
  }
  return names;
}

// Returns a pattern for the first two words of metrics' names; other names with troupe_ are
// targets, files or keys.
std::string Prefixes() {
  std::set<std::string> words;
  for (const auto& [name, metric] : DeclaredMetrics()) {
    if (!name.starts_with("troupe_")) continue;
    const size_t begin = name.find('_') + 1;
    words.insert(name.substr(begin, name.find('_', begin) - begin));
  }
  std::string pattern;
  for (const std::string& word : words) pattern += (pattern.empty() ? "" : "|") + word;
  return "troupe_(?:" + pattern + ")";
}

std::vector<fs::path> FilesBelow(const std::vector<std::string>& folders,
                                 const std::set<std::string>& extensions) {
  std::vector<fs::path> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (extensions.contains(entry.path().extension())) files.push_back(entry.path());
    }
  }
  return files;
}

std::vector<fs::path> ProductFiles() {
  std::vector<fs::path> files =
      FilesBelow({"base", "actor", "collective", "model", "plan", "kernels", "checkpoint", "data",
                  "interop", "report", "coordinator", "worker", "cli"},
                 {".h", ".cc"});
  std::erase_if(files, [](const fs::path& path) {
    return path.string().ends_with("_test.cc") || path == kList;
  });
  return files;
}

TEST(MetricList, EachMetricIsDeclaredOnce) {
  const std::string text = TextOf(kList);
  EXPECT_GT(DeclaredMetrics().size(), 40u);
  EXPECT_EQ(Matches(text, std::regex("\"((?:troupe|process)_\\w+)\"")).size(),
            DeclaredMetrics().size());
}

TEST(MetricList, TheCodeNamesMetricsByTheirConstantsOnly) {
  const std::map<std::string, DeclaredMetric> metrics = DeclaredMetrics();
  for (const fs::path& path : ProductFiles()) {
    for (const std::string& name :
         Matches(TextOf(path), std::regex("((?:troupe|process)_[a-z0-9_]+)"))) {
      EXPECT_FALSE(metrics.contains(name)) << path << " has the name " << name;
    }
  }
}

TEST(MetricList, EveryMetricIsMeasured) {
  std::set<std::string> used;
  for (const fs::path& path : ProductFiles()) {
    for (std::string& constant : Matches(TextOf(path), std::regex("metric::(k\\w+)")))
      used.insert(std::move(constant));
  }
  for (const auto& [name, metric] : DeclaredMetrics())
    EXPECT_TRUE(used.contains(metric.constant)) << name;
}

// Dashboards are *.json, alerts are rules in *.yaml.
TEST(MetricList, DocumentsDashboardsAndAlertsNameOnlyDeclaredMetrics) {
  const std::set<std::string> names = ShownNames();
  const std::regex metric("\\b(" + Prefixes() + "_[a-z0-9_]*[a-z0-9])");
  std::vector<fs::path> files =
      FilesBelow({"docs", "dashboards"}, {".md", ".json", ".yaml", ".yml"});
  // CONTRIBUTING.md shows how to add a metric that does not exist.
  for (const char* page : {"README.md", "bench/README.md"}) files.emplace_back(page);
  for (const fs::path& path : files) {
    for (const std::string& name : Matches(TextOf(path), metric)) {
      EXPECT_TRUE(names.contains(name)) << path << " names " << name;
    }
  }
}

}  // namespace
}  // namespace troupe
