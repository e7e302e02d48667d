#include "base/metrics/metrics_server.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metrics/metric_list.h"
#include "base/metrics/process_metrics.h"
#include "base/security/certificate.h"
#include "base/security/listen_policy.h"

namespace troupe {
namespace {

constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

prometheus::MetricFamily FamilyOf(const MetricText& text, prometheus::MetricType type,
                                  double value) {
  prometheus::MetricFamily family;
  family.name = text.name;
  family.help = HelpOf(text);
  family.type = type;
  prometheus::ClientMetric& series = family.metric.emplace_back();
  (type == prometheus::MetricType::Counter ? series.counter.value : series.gauge.value) = value;
  return family;
}

HttpPages PagesOf(const Metrics& metrics, const MetricsServerOptions& options) {
  auto asked = std::make_shared<std::atomic<int64_t>>(0);
  return [&metrics, age = options.health_age, asked](const HttpRequest& request) -> HttpPage {
    const std::string& path = request.path;
    if (path == "/metrics") return {200, metrics.ToText() + ProcessMetricsText(), kMetricsType};
    if (path != "/health" || !age) return NotFoundPage();
    const std::vector<prometheus::MetricFamily> families = {
        FamilyOf(metric::kHealthAge.text, prometheus::MetricType::Gauge, age().count()),
        FamilyOf(metric::kHealthAsked.text, prometheus::MetricType::Counter,
                 static_cast<double>(++*asked))};
    return {200, prometheus::TextSerializer().Serialize(families), kMetricsType};
  };
}

}  // namespace

Status CheckMetricsReader(const Identity& reader, const std::string& cluster) {
  if (reader.cluster != cluster) {
    return PermissionDenied("{} is of another cluster than {}", ToUri(reader), cluster);
  }
  if (reader.role != Role::kWorker) return OkStatus();
  return PermissionDenied(
      "metrics require the role viewer, submitter, operator or coordinator; "
      "{} has the role {}",
      reader.name, RoleName(reader.role));
}

StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const Metrics& metrics,
                                                              const MetricsServerOptions& options) {
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  HttpServerOptions http{.listen = options.listen,
                         .handlers = {.pages = PagesOf(metrics, options)}};
  if (options.tls && !IsLoopbackHost(host)) {
    http.tls = options.tls;
    http.handlers.admit = [cluster = options.tls->identity.cluster,
                           check = options.check_certificate,
                           record = options.record_refusal](const std::string& certificate) {
      const auto reader = ReadCertificate(certificate);
      Status admitted =
          reader.ok() ? CheckMetricsReader(reader->identity, cluster) : reader.status();
      if (admitted.ok() && check) admitted = check(certificate);
      if (!admitted.ok() && record) record(certificate, admitted);
      return admitted;
    };
  }
  const std::string_view scheme = http.tls ? "https" : "http";
  auto server = HttpServer::Start(std::move(http));
  if (!server.ok()) return Annotate(server.status(), "metrics");
  std::string shown = host;
  if (IsAnyHost(host) && !options.announced_host.empty()) {
    const bool is_six = options.announced_host.find(':') != std::string::npos;
    shown = is_six ? fmt::format("[{}]", options.announced_host) : options.announced_host;
  }
  std::string url = fmt::format("{}://{}:{}/metrics", scheme, shown, (*server)->port());
  return std::unique_ptr<MetricsServer>(new MetricsServer(*std::move(server), std::move(url)));
}

MetricsServer::MetricsServer(std::unique_ptr<HttpServer> server, std::string url)
    : server_(std::move(server)), url_(std::move(url)) {}

}  // namespace troupe
