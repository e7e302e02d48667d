// The pages /healthz and /readyz, for those who only ask whether a process lives and works: a
// kubelet, or a load balancer. Their answers contain nothing of jobs.
#ifndef TROUPE_BASE_HTTP_HEALTH_PAGES_H_
#define TROUPE_BASE_HTTP_HEALTH_PAGES_H_

#include <functional>

#include "base/http/http_page.h"

namespace troupe {

// Returns the pages: 200 if `lives` (/healthz) or `is_ready` (/readyz) holds, else 503.
// Both functions must be thread-safe.
HttpPages HealthPages(std::function<bool()> lives, std::function<bool()> is_ready);

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_HEALTH_PAGES_H_
