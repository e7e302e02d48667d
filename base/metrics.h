// Metrics in Prometheus' text format: a thin seam over prometheus-cpp.
//
// A family is declared once, with its help text; after that values are set by family name and
// labels. Counters only rise; names carry base units. Thread-safe.
#ifndef TROUPE_BASE_METRICS_H_
#define TROUPE_BASE_METRICS_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

using MetricLabels = std::map<std::string, std::string>;

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // REQUIRES: `name` is not declared yet; `buckets` (upper bounds) rise.
  void DeclareCounter(const std::string& name, const std::string& help);
  void DeclareGauge(const std::string& name, const std::string& help);
  void DeclareHistogram(const std::string& name, const std::string& help,
                        std::vector<double> buckets);

  // REQUIRES, for all of these: `name` is declared and of that kind. Values that are not finite,
  // and negative ones for a counter, are dropped.
  void Add(const std::string& name, const MetricLabels& labels, double value);
  void Set(const std::string& name, const MetricLabels& labels, double value);
  void Observe(const std::string& name, const MetricLabels& labels, double value);
  // Adds observations made elsewhere: `counts` of them in each bucket (the last: above all bounds), `sum` in all.
  // REQUIRES: as many counts as the family has buckets, and one.
  void ObserveMany(const std::string& name, const MetricLabels& labels,
                   const std::vector<double>& counts, double sum);
  // The gauge's series with these labels disappears, if there is one.
  void Remove(const std::string& name, const MetricLabels& labels);

  // Every series of any kind with this label disappears.
  void RemoveSeries(const std::string& label, const std::string& value);

  // All families as `/metrics` serves them.
  std::string ToText() const;

 private:
  friend class MetricsServer;
  struct Families;
  const std::unique_ptr<Families> families_;
};

// Serves `/metrics` over HTTP until it is destroyed, and, where it is told how to know, `/health`:
// the gauge troupe_health_age_seconds alone, for whoever watches over the process.
class MetricsServer {
 public:
  // `listen` is HOST:PORT; port 0 takes a free one. UNAVAILABLE if the address cannot be listened
  // on. `metrics` outlives the server.
  // `health_age` says how long ago the process last showed that it works; thread-safe.
  using HealthAge = std::function<std::chrono::duration<double>()>;
  static StatusOr<std::unique_ptr<MetricsServer>> Start(const Metrics& metrics,
                                                        const std::string& listen,
                                                        HealthAge health_age = nullptr);
  ~MetricsServer();

  int port() const;

 private:
  struct Exposition;
  explicit MetricsServer(std::unique_ptr<Exposition> exposition);
  const std::unique_ptr<Exposition> exposition_;
};

// Bounds in seconds for things that take from a millisecond to minutes.
std::vector<double> SecondsBuckets();

}  // namespace troupe

#endif  // TROUPE_BASE_METRICS_H_
