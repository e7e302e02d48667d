#include "base/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace troupe {

namespace {

// Upper bounds of buckets, in seconds.
constexpr double kDurationBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                      1,     2.5,    5,     10,   30,    60,   120, 300};

}  // namespace

struct Metrics::Families {
  struct HistogramFamily {
    prometheus::Family<prometheus::Histogram>* family = nullptr;
    std::vector<double> bounds;
  };

  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::mutex mutex;
  std::map<std::string_view, prometheus::Family<prometheus::Counter>*> counters;
  std::map<std::string_view, prometheus::Family<prometheus::Gauge>*> gauges;
  std::map<std::string_view, HistogramFamily> histograms;

  // These return the family, which the first call registers. REQUIRE: the mutex is locked.
  prometheus::Family<prometheus::Counter>& CounterOf(const MetricText& text) {
    return *Registered(text, prometheus::BuildCounter(), &counters[text.name]);
  }
  prometheus::Family<prometheus::Gauge>& GaugeOf(const MetricText& text) {
    return *Registered(text, prometheus::BuildGauge(), &gauges[text.name]);
  }
  prometheus::Histogram& HistogramOf(const MetricText& text, const LabelValues& labels,
                                     std::span<const double> bounds) {
    HistogramFamily& known = histograms[text.name];
    if (known.family == nullptr) known.bounds.assign(bounds.begin(), bounds.end());
    TROUPE_CHECK(std::ranges::equal(known.bounds, bounds),
                 "{} is already registered with other bounds", text.name);
    return Registered(text, prometheus::BuildHistogram(), &known.family)->Add(labels, known.bounds);
  }

 private:
  template <typename Family, typename Builder>
  Family* Registered(const MetricText& text, Builder builder, Family** family) {
    if (*family == nullptr) {
      *family = &builder.Name(std::string(text.name)).Help(HelpOf(text)).Register(*registry);
    }
    return *family;
  }
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::AddTo(const MetricText& counter, const LabelValues& labels, double value) {
  const std::lock_guard lock(families_->mutex);
  prometheus::Counter& series = families_->CounterOf(counter).Add(labels);
  if (std::isfinite(value) && value > 0) series.Increment(value);
}

void Metrics::SetTo(const MetricText& gauge, const LabelValues& labels, double value) {
  if (!std::isfinite(value)) return;
  const std::lock_guard lock(families_->mutex);
  families_->GaugeOf(gauge).Add(labels).Set(value);
}

void Metrics::ObserveIn(const MetricText& histogram, const LabelValues& labels, double value) {
  if (!std::isfinite(value)) return;
  const std::lock_guard lock(families_->mutex);
  families_->HistogramOf(histogram, labels, kDurationBounds).Observe(value);
}

void Metrics::ObserveManyIn(const MetricText& histogram, const LabelValues& labels,
                            const ObservationCounts& observations) {
  const auto& [bounds, counts, sum] = observations;
  TROUPE_CHECK(counts.size() == bounds.size() + 1, "{} counts", counts.size());
  const std::lock_guard lock(families_->mutex);
  families_->HistogramOf(histogram, labels, bounds)
      .ObserveMultiple({counts.begin(), counts.end()}, sum);
}

void Metrics::RemoveFrom(const MetricText& gauge, const LabelValues& labels) {
  const std::lock_guard lock(families_->mutex);
  prometheus::Family<prometheus::Gauge>& family = families_->GaugeOf(gauge);
  if (family.Has(labels)) family.Remove(&family.Add(labels));
}

namespace {

// `add` returns the series of a family that has the given labels.
template <typename Family, typename Add>
void RemoveSeriesOf(Family& family, const std::string& label, const std::string& value, Add add) {
  for (const prometheus::MetricFamily& collected : family.Collect()) {
    for (const prometheus::ClientMetric& series : collected.metric) {
      std::map<std::string, std::string> labels;
      for (const auto& pair : series.label) labels[pair.name] = pair.value;
      const auto found = labels.find(label);
      if (found != labels.end() && found->second == value) family.Remove(add(labels));
    }
  }
}

}  // namespace

void Metrics::RemoveSeries(const std::string& label, const std::string& value) {
  const std::lock_guard lock(families_->mutex);
  for (const auto& [name, family] : families_->counters) {
    RemoveSeriesOf(*family, label, value,
                   [&family = *family](const LabelValues& labels) { return &family.Add(labels); });
  }
  for (const auto& [name, family] : families_->gauges) {
    RemoveSeriesOf(*family, label, value,
                   [&family = *family](const LabelValues& labels) { return &family.Add(labels); });
  }
  for (const auto& [name, histogram] : families_->histograms) {
    RemoveSeriesOf(*histogram.family, label, value,
                   [&family = *histogram.family, &bounds = histogram.bounds](
                       const LabelValues& labels) { return &family.Add(labels, bounds); });
  }
}

std::string Metrics::ToText() const {
  return prometheus::TextSerializer().Serialize(families_->registry->Collect());
}

}  // namespace troupe
