// The metrics of this process that Prometheus's client libraries have under the same names.
#ifndef TROUPE_BASE_METRICS_PROCESS_METRICS_H_
#define TROUPE_BASE_METRICS_PROCESS_METRICS_H_

#include <string>

namespace troupe {

// Returns the present values in Prometheus's text format; without those that the kernel does not
// show.
std::string ProcessMetricsText();

}  // namespace troupe

#endif  // TROUPE_BASE_METRICS_PROCESS_METRICS_H_
