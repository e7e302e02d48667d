// Metrics in Prometheus's text format: a thin interface over prometheus-cpp.
//
// A family is declared once, with its help text; afterwards values are set by family name and
// labels. Counters only increase; names carry base units. Thread-safe.
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

  // REQUIRES: `name` is not declared yet; `buckets` (upper bounds) are in increasing order.
  void DeclareCounter(const std::string& name, const std::string& help);
  void DeclareGauge(const std::string& name, const std::string& help);
  void DeclareHistogram(const std::string& name, const std::string& help,
                        std::vector<double> buckets);

  // REQUIRES, for each of these: `name` is declared and of that kind. Values that are not finite
  // are dropped, and for a counter also negative ones.
  void Add(const std::string& name, const MetricLabels& labels, double value);
  void Set(const std::string& name, const MetricLabels& labels, double value);
  void Observe(const std::string& name, const MetricLabels& labels, double value);
  // Adds observations made elsewhere: `counts` observations per bucket (the last bucket is above
  // all bounds) with the total `sum`. REQUIRES: `counts` has one entry more than the family has
  // bounds.
  void ObserveMany(const std::string& name, const MetricLabels& labels,
                   const std::vector<double>& counts, double sum);
  // Removes the gauge's series with these labels, if there is one.
  void Remove(const std::string& name, const MetricLabels& labels);

  // Removes every series, of any kind, that has this label.
  void RemoveSeries(const std::string& label, const std::string& value);

  // Returns all families in the text that `/metrics` serves.
  std::string ToText() const;

 private:
  friend class MetricsServer;
  struct Families;
  const std::unique_ptr<Families> families_;
};

// Serves `/metrics` over HTTP until it is destroyed. With a `health_age` it also serves `/health`:
// the gauge troupe_health_age_seconds alone, for a process supervisor.
class MetricsServer {
 public:
  // `listen` is HOST:PORT; port 0 selects a free one. UNAVAILABLE if the server cannot listen on
  // the address. `metrics` must outlive the server.
  //
  // `health_age` returns the time since the process last showed that it works; it must be
  // thread-safe.
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

// Returns bucket bounds in seconds, for durations from a millisecond to minutes.
std::vector<double> SecondsBuckets();

}  // namespace troupe

#endif  // TROUPE_BASE_METRICS_H_
