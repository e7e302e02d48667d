#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <exception>
#include <mutex>
#include <utility>

#include "base/check.h"

namespace troupe {

struct Metrics::Families {
  struct HistogramFamily {
    prometheus::Family<prometheus::Histogram>* family = nullptr;
    std::vector<double> buckets;
  };

  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  mutable std::mutex mutex;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counters;
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauges;
  std::map<std::string, HistogramFamily> histograms;

  void CheckNew(const std::string& name) const {
    TROUPE_CHECK(!counters.contains(name) && !gauges.contains(name) && !histograms.contains(name),
                 "metric {} is declared twice", name);
  }
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::DeclareCounter(const std::string& name, const std::string& help) {
  const std::lock_guard lock(families_->mutex);
  families_->CheckNew(name);
  families_->counters[name] =
      &prometheus::BuildCounter().Name(name).Help(help).Register(*families_->registry);
}

void Metrics::DeclareGauge(const std::string& name, const std::string& help) {
  const std::lock_guard lock(families_->mutex);
  families_->CheckNew(name);
  families_->gauges[name] =
      &prometheus::BuildGauge().Name(name).Help(help).Register(*families_->registry);
}

void Metrics::DeclareHistogram(const std::string& name, const std::string& help,
                               std::vector<double> buckets) {
  const std::lock_guard lock(families_->mutex);
  families_->CheckNew(name);
  families_->histograms[name] = {
      &prometheus::BuildHistogram().Name(name).Help(help).Register(*families_->registry),
      std::move(buckets)};
}

void Metrics::Add(const std::string& name, const MetricLabels& labels, double value) {
  const std::lock_guard lock(families_->mutex);
  const auto family = families_->counters.find(name);
  TROUPE_CHECK(family != families_->counters.end(), "no counter {}", name);
  prometheus::Counter& counter = family->second->Add(labels);
  if (std::isfinite(value) && value > 0) counter.Increment(value);
}

void Metrics::Set(const std::string& name, const MetricLabels& labels, double value) {
  const std::lock_guard lock(families_->mutex);
  const auto family = families_->gauges.find(name);
  TROUPE_CHECK(family != families_->gauges.end(), "no gauge {}", name);
  if (std::isfinite(value)) family->second->Add(labels).Set(value);
}

void Metrics::Observe(const std::string& name, const MetricLabels& labels, double value) {
  const std::lock_guard lock(families_->mutex);
  const auto family = families_->histograms.find(name);
  TROUPE_CHECK(family != families_->histograms.end(), "no histogram {}", name);
  if (std::isfinite(value))
    family->second.family->Add(labels, family->second.buckets).Observe(value);
}

void Metrics::ObserveMany(const std::string& name, const MetricLabels& labels,
                          const std::vector<double>& counts, double sum) {
  const std::lock_guard lock(families_->mutex);
  const auto family = families_->histograms.find(name);
  TROUPE_CHECK(family != families_->histograms.end(), "no histogram {}", name);
  TROUPE_CHECK(counts.size() == family->second.buckets.size() + 1, "{} counts", counts.size());
  family->second.family->Add(labels, family->second.buckets).ObserveMultiple(counts, sum);
}

void Metrics::Remove(const std::string& name, const MetricLabels& labels) {
  const std::lock_guard lock(families_->mutex);
  const auto family = families_->gauges.find(name);
  TROUPE_CHECK(family != families_->gauges.end(), "no gauge {}", name);
  if (family->second->Has(labels)) family->second->Remove(&family->second->Add(labels));
}

namespace {

// `add` returns the series of a family that has the given labels.
template <typename Family, typename Add>
void RemoveSeriesOf(Family& family, const std::string& label, const std::string& value, Add add) {
  for (const prometheus::MetricFamily& collected : family.Collect()) {
    for (const prometheus::ClientMetric& series : collected.metric) {
      MetricLabels labels;
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
                   [&](const MetricLabels& labels) { return &family->Add(labels); });
  }
  for (const auto& [name, family] : families_->gauges) {
    RemoveSeriesOf(*family, label, value,
                   [&](const MetricLabels& labels) { return &family->Add(labels); });
  }
  for (const auto& [name, histogram] : families_->histograms) {
    RemoveSeriesOf(*histogram.family, label, value, [&](const MetricLabels& labels) {
      return &histogram.family->Add(labels, histogram.buckets);
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
    family.name = "troupe_health_age_seconds";
    family.help = "Time since this process last showed that it works.";
    family.type = prometheus::MetricType::Gauge;
    family.metric.emplace_back().gauge.value = age_().count();
    return {std::move(family)};
  }

 private:
  const MetricsServer::HealthAge age_;
};

}  // namespace

// Each thread has one connection at a time, also one that says nothing. Whoever watches over the
// process asks through the same threads: strangers must not keep him from an answer.
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

std::vector<double> SecondsBuckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
}

}  // namespace troupe
