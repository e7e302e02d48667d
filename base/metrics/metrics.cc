#include "base/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/metrics/metric_list.h"

namespace troupe {

namespace {

// Upper bounds of buckets, in seconds.
constexpr double kDurationBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                      1,     2.5,    5,     10,   30,    60,   120, 300};

std::string HelpOf(const MetricText& text) {
  return std::string(text.help) + std::string(TextOf(text.unit).phrase) + ".";
}

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
                   [&](const LabelValues& labels) { return &family->Add(labels); });
  }
  for (const auto& [name, family] : families_->gauges) {
    RemoveSeriesOf(*family, label, value,
                   [&](const LabelValues& labels) { return &family->Add(labels); });
  }
  for (const auto& [name, histogram] : families_->histograms) {
    RemoveSeriesOf(*histogram.family, label, value, [&](const LabelValues& labels) {
      return &histogram.family->Add(labels, histogram.bounds);
    });
  }
}

std::string Metrics::ToText() const {
  return prometheus::TextSerializer().Serialize(families_->registry->Collect());
}

namespace {

class HealthPage final : public prometheus::Collectable {
 public:
  explicit HealthPage(MetricsServer::HealthAge age) : age_(std::move(age)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    prometheus::MetricFamily family;
    family.name = metric::kHealthAge.text.name;
    family.help = HelpOf(metric::kHealthAge.text);
    family.type = prometheus::MetricType::Gauge;
    family.metric.emplace_back().gauge.value = age_().count();
    return {std::move(family)};
  }

 private:
  const MetricsServer::HealthAge age_;
};

}  // namespace

// Each thread serves one connection at a time, including one that sends nothing. The process
// supervisor uses the same threads, so idle connections must not occupy all of them.
constexpr char kThreads[] = "16";
constexpr char kRequestMs[] = "1000";

struct MetricsServer::Exposition {
  explicit Exposition(const std::string& listen)
      : exposer({"listening_ports", listen, "num_threads", kThreads, "request_timeout_ms",
                 kRequestMs, "enable_keep_alive", "no", "linger_timeout_ms", "100"}) {}
  prometheus::Exposer exposer;
  std::shared_ptr<HealthPage> health;
};

MetricsServer::MetricsServer(std::unique_ptr<Exposition> exposition)
    : exposition_(std::move(exposition)) {}
MetricsServer::~MetricsServer() = default;

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const Metrics& metrics,
                                                              const std::string& listen,
                                                              HealthAge health_age) {
  try {
    auto exposition = std::make_unique<Exposition>(listen);
    exposition->exposer.RegisterCollectable(metrics.families_->registry);
    if (health_age) {
      exposition->health = std::make_shared<HealthPage>(std::move(health_age));
      exposition->exposer.RegisterCollectable(exposition->health, "/health");
    }
    return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(exposition)));
  } catch (const std::exception& error) {
    return Unavailable("cannot serve metrics on {}: {}", listen, error.what());
  }
}

int MetricsServer::port() const {
  const std::vector<int> ports = exposition_->exposer.GetListeningPorts();
  return ports.empty() ? 0 : ports.front();
}

}  // namespace troupe
