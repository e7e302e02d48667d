// The Prometheus that `troupe up --monitoring` starts for a local cluster. It scrapes the targets
// of DIR/prometheus_targets.json and evaluates the rules of dashboards/prometheus, which are built
// into the command. Its files are in DIR/prometheus.
#ifndef TROUPE_CLI_CLUSTER_PROMETHEUS_H_
#define TROUPE_CLI_CLUSTER_PROMETHEUS_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

// The name of its process, and of its log.
inline constexpr char kPrometheusName[] = "prometheus";

// Returns the absolute path of the program `prometheus` in the folders of `path`, which has the
// form of $PATH. FAILED_PRECONDITION with the name of the package if there is none.
StatusOr<std::string> FindPrometheus(std::string_view path);

// Checks the output of `BINARY --version`. FAILED_PRECONDITION if the version is too old, or if the
// output states none.
Status CheckPrometheusVersion(const std::string& binary, std::string_view output);

// Runs `BINARY --version` for at most 10 s and checks what it prints, which is kept in
// DIR/prometheus/version.log. REQUIRES: the process has one thread.
Status CheckPrometheus(const std::string& folder, const std::string& binary);

// Writes the configuration and the rules to DIR/prometheus.
Status WritePrometheusFiles(const std::string& folder);

// The command line of the Prometheus of the cluster in `folder`, which listens on the loopback.
std::vector<std::string> PrometheusCommand(const std::string& folder, const std::string& binary,
                                           int port);

std::string PrometheusUrl(int port);

// Returns whether a Prometheus on `port` of the loopback answers that it is ready. Takes at most
// about a second.
bool IsPrometheusReady(int port);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_PROMETHEUS_H_
