// The declaration of a metric: one constant with its name, kind, labels, unit and help text. All
// metrics are declared in base/metrics/metric_list.h; base/metrics/metrics.h sets their values.
//
//   using JobName = Label<"job_name">;
//   inline constexpr Counter<JobName> kReads{"troupe_reads_total", MetricUnit::kNone,
//                                            "Files read for the job"};
//
// A name without its unit's suffix does not compile, and neither does a value with other labels
// than those declared.
#ifndef TROUPE_BASE_METRICS_METRIC_H_
#define TROUPE_BASE_METRICS_METRIC_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

template <size_t size>
struct LabelName {
  consteval LabelName(const char (&name)[size]) { std::copy_n(name, size, text); }
  char text[size] = {};
};

// The value of the label `name`. An empty value is the same as no label.
template <LabelName name>
class Label {
 public:
  static constexpr const char* kName = name.text;
  explicit Label(std::string value) : value_(std::move(value)) {}
  const std::string& value() const { return value_; }

 private:
  std::string value_;
};

enum class MetricUnit { kNone, kSeconds, kUnixSeconds, kBytes, kCelsius, kWatts, kHertz };

// The end of a name with this unit (before "_total"), and what it adds to the help text.
struct MetricUnitText {
  std::string_view suffix;
  std::string_view phrase;
};

constexpr MetricUnitText TextOf(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::kNone:
      return {"", ""};
    case MetricUnit::kSeconds:
      return {"_seconds", ", in seconds"};
    case MetricUnit::kUnixSeconds:
      return {"_timestamp_seconds", ", in seconds since the Unix epoch"};
    case MetricUnit::kBytes:
      return {"_bytes", ", in bytes"};
    case MetricUnit::kCelsius:
      return {"_celsius", ", in degrees Celsius"};
    case MetricUnit::kWatts:
      return {"_watts", ", in watts"};
    case MetricUnit::kHertz:
      return {"_hertz", ", in hertz"};
  }
  return {};
}

// The part that the declarations of all kinds have in common.
struct MetricText {
  std::string_view name;
  MetricUnit unit;
  std::string_view help;  // without the unit and the full stop
};

// Returns the help text with the unit and the full stop.
inline std::string HelpOf(const MetricText& text) {
  return std::string(text.help) + std::string(TextOf(text.unit).phrase) + ".";
}

// Does not compile if the name breaks the conventions of Prometheus.
consteval MetricText CheckedText(MetricText text, bool is_counter) {
  constexpr std::string_view kTotal = "_total";
  // Prometheus's own libraries use the second prefix for figures of the process.
  if (!text.name.starts_with("troupe_") && !text.name.starts_with("process_"))
    throw "the name begins neither with troupe_ nor with process_";
  std::string_view name = text.name;
  if (name.ends_with(kTotal) != is_counter) throw "only names of counters end with _total";
  if (is_counter) name.remove_suffix(kTotal.size());
  MetricUnit found = MetricUnit::kNone;
  for (const MetricUnit unit : {MetricUnit::kSeconds, MetricUnit::kUnixSeconds, MetricUnit::kBytes,
                                MetricUnit::kCelsius, MetricUnit::kWatts, MetricUnit::kHertz}) {
    if (name.ends_with(TextOf(unit).suffix)) found = unit;
  }
  if (found != text.unit) throw "the name does not end with its unit";
  if (text.help.empty() || text.help.ends_with('.')) throw "the help text ends with a full stop";
  return text;
}

// Only increases.
template <typename... Labels>
struct Counter {
  consteval Counter(std::string_view name, MetricUnit unit, std::string_view help)
      : text(CheckedText({name, unit, help}, /*is_counter=*/true)) {}
  MetricText text;
};

// Has a current value.
template <typename... Labels>
struct Gauge {
  consteval Gauge(std::string_view name, MetricUnit unit, std::string_view help)
      : text(CheckedText({name, unit, help}, /*is_counter=*/false)) {}
  MetricText text;
};

// Counts observations in buckets.
template <typename... Labels>
struct Histogram {
  consteval Histogram(std::string_view name, MetricUnit unit, std::string_view help)
      : text(CheckedText({name, unit, help}, /*is_counter=*/false)) {}
  MetricText text;
};

}  // namespace troupe

#endif  // TROUPE_BASE_METRICS_METRIC_H_
