// The values of metrics, in Prometheus's text format: a thin interface over prometheus-cpp.
//
// Metrics are declared as typed constants (base/metrics/metric.h); a metric appears with its first
// value. Thread-safe.
#ifndef TROUPE_BASE_METRICS_METRICS_H_
#define TROUPE_BASE_METRICS_METRICS_H_

#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "base/metrics/metric.h"
#include "base/status.h"

namespace troupe {

// Observations that were counted elsewhere.
struct ObservationCounts {
  std::span<const double> bounds;  // upper bounds of the buckets, in increasing order
  std::span<const double> counts;  // one more than bounds: the last bucket is above all bounds
  double sum = 0;                  // total of the observed values
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Each of these takes exactly the labels of the metric's declaration, in their order. Values that
  // are not finite are dropped, and for a counter also negative ones.
  template <typename... Labels>
  void Add(const Counter<Labels...>& counter, double value,
           const std::type_identity_t<Labels>&... labels) {
    AddTo(counter.text, ValuesOf(labels...), value);
  }
  template <typename... Labels>
  void Set(const Gauge<Labels...>& gauge, double value,
           const std::type_identity_t<Labels>&... labels) {
    SetTo(gauge.text, ValuesOf(labels...), value);
  }
  // Counts `value` in buckets for durations from a millisecond to minutes.
  template <typename... Labels>
  void Observe(const Histogram<Labels...>& histogram, double value,
               const std::type_identity_t<Labels>&... labels) {
    ObserveIn(histogram.text, ValuesOf(labels...), value);
  }
  // REQUIRES: all calls for a histogram have the same bounds, and none is mixed with Observe.
  template <typename... Labels>
  void ObserveMany(const Histogram<Labels...>& histogram, const ObservationCounts& observations,
                   const std::type_identity_t<Labels>&... labels) {
    ObserveManyIn(histogram.text, ValuesOf(labels...), observations);
  }
  // Removes the gauge's series with these labels, if there is one.
  template <typename... Labels>
  void Remove(const Gauge<Labels...>& gauge, const std::type_identity_t<Labels>&... labels) {
    RemoveFrom(gauge.text, ValuesOf(labels...));
  }

  // Removes every series, of any kind, that has this label.
  template <LabelName name>
  void RemoveSeries(const Label<name>& label) {
    RemoveSeries(label.kName, label.value());
  }

  // Returns all families in the text that `/metrics` serves.
  std::string ToText() const;

 private:
  using LabelValues = std::map<std::string, std::string>;
  struct Families;

  template <typename... Labels>
  static LabelValues ValuesOf(const Labels&... labels) {
    LabelValues values;
    ((labels.value().empty() ? void() : void(values.emplace(labels.kName, labels.value()))), ...);
    return values;
  }

  void AddTo(const MetricText& counter, const LabelValues& labels, double value);
  void SetTo(const MetricText& gauge, const LabelValues& labels, double value);
  void ObserveIn(const MetricText& histogram, const LabelValues& labels, double value);
  void ObserveManyIn(const MetricText& histogram, const LabelValues& labels,
                     const ObservationCounts& observations);
  void RemoveFrom(const MetricText& gauge, const LabelValues& labels);
  void RemoveSeries(const std::string& label, const std::string& value);

  const std::unique_ptr<Families> families_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_METRICS_METRICS_H_
