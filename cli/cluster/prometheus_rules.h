// The content of dashboards/prometheus/rules.yaml, which the build puts into the command.
#ifndef TROUPE_CLI_CLUSTER_PROMETHEUS_RULES_H_
#define TROUPE_CLI_CLUSTER_PROMETHEUS_RULES_H_

#include <string_view>

namespace troupe {

extern const std::string_view kPrometheusRules;

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_PROMETHEUS_RULES_H_
