// The addresses of the live pages, as paths of their own host. Pure.
#ifndef TROUPE_REPORT_LIVE_LINKS_H_
#define TROUPE_REPORT_LIVE_LINKS_H_

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// Returns `text` with every byte as %XX but letters, digits and "-._~" (RFC 3986, "unreserved"), so
// that it is one part of a path or one value of a query.
std::string PercentEncoded(std::string_view text);

// Returns the address of the cluster's page; an empty `state` or `name_space` filters nothing.
std::string ClusterLink(std::string_view state, std::string_view name_space);

// Returns "/jobs/x" for the job "jobs/x".
std::string JobLink(const std::string& job);
// Returns "/jobs/x/logs?rank=3", or "/jobs/x/logs" for the logs of all ranks.
std::string LogsLink(const std::string& job, std::optional<int> rank);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_LINKS_H_
