// The names of workers.
#ifndef TROUPE_PLAN_LAYOUT_WORKER_NAME_H_
#define TROUPE_PLAN_LAYOUT_WORKER_NAME_H_

#include <string_view>

#include "base/status.h"

namespace troupe {

// OK, or INVALID_ARGUMENT with what a name must be.
Status CheckWorkerName(std::string_view name);

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_WORKER_NAME_H_
