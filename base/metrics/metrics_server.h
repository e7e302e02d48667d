// The pages `/metrics` and `/health` of a process.
//
// On the loopback and without TLS files they are plain HTTP. Elsewhere they are HTTPS, and a client
// needs a certificate of its cluster with a role that may read the API.
#ifndef TROUPE_BASE_METRICS_METRICS_SERVER_H_
#define TROUPE_BASE_METRICS_METRICS_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/http/http_server.h"
#include "base/metrics/metrics.h"
#include "base/security/tls_files.h"
#include "base/status.h"

namespace troupe {

struct MetricsServerOptions {
  std::string listen;  // HOST:PORT; port 0 selects a free one
  // The host of the URL if `listen` is on all addresses; empty: the URL has the host of `listen`.
  std::string announced_host;
  std::optional<TlsFiles> tls;  // those of this process
  // With TLS, what a reader's certificate, in PEM, has to pass besides CheckMetricsReader. Absent:
  // nothing. Thread-safe.
  std::function<Status(const std::string& certificate)> check_certificate;
  // Called with the certificate, in PEM, of a reader who is refused, and the reason. Absent:
  // nothing. Thread-safe.
  std::function<void(const std::string& certificate, const Status& reason)> record_refusal;
  // Returns the time since the process last showed that it works. Thread-safe. With it there is the
  // page /health: metric::kHealthAge and metric::kHealthAsked alone, for a process supervisor.
  std::function<std::chrono::duration<double>()> health_age;
};

// Thread-safe.
class MetricsServer {
 public:
  // UNAVAILABLE if the address cannot be listened on; INVALID_ARGUMENT if the TLS files cannot be
  // used. `metrics` must outlive the server.
  static StatusOr<std::unique_ptr<MetricsServer>> Start(const Metrics& metrics,
                                                        const MetricsServerOptions& options);

  int port() const { return server_->port(); }
  const std::string& url() const { return url_; }  // of /metrics

 private:
  MetricsServer(std::unique_ptr<HttpServer> server, std::string url);

  const std::unique_ptr<HttpServer> server_;
  const std::string url_;
};

// PERMISSION_DENIED unless `reader` may read the metrics of processes of `cluster`: viewers,
// submitters, operators and coordinators of it.
Status CheckMetricsReader(const Identity& reader, const std::string& cluster);

}  // namespace troupe

#endif  // TROUPE_BASE_METRICS_METRICS_SERVER_H_
