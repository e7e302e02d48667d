// Where the plugin is that a process loads.
#ifndef TROUPE_KERNELS_XLA_PJRT_PLUGIN_PATH_H_
#define TROUPE_KERNELS_XLA_PJRT_PLUGIN_PATH_H_

#include <string>

#include "base/status.h"

namespace troupe::kernels::xla {

// Returns `stated` unless it is empty; else the value of TROUPE_XLA_PLUGIN in the environment
// unless that is empty; else the plugin for processors that `./run build` has put into the folder
// build/xla-plugin, if `program` (by default this one) is in a folder build/PRESET/bin. Whether the
// first two exist is not checked. NOT_FOUND, naming the three places, if there is none.
StatusOr<std::string> FindPlugin(const std::string& stated);
StatusOr<std::string> FindPlugin(const std::string& stated, const std::string& program);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_PLUGIN_PATH_H_
