// A plugin of XLA: a shared library with the function GetPjrtApi.
#ifndef TROUPE_KERNELS_XLA_PJRT_PLUGIN_H_
#define TROUPE_KERNELS_XLA_PJRT_PLUGIN_H_

#include <pjrt_c_api.h>

#include <string>

#include "base/status.h"

namespace troupe::kernels::xla {

// Returns OK if the functions that we call can be called through `api`. FAILED_PRECONDITION if it
// has another major version, a lower minor version or fewer functions than our header.
Status CheckApi(const PJRT_Api& api);

struct LoadedPlugin {
  const PJRT_Api* api = nullptr;
  std::string file;  // FileIdentity of its path, before it was loaded
};

// Loads the plugin at `path` and initializes it, if that has not been done yet. It stays loaded
// until the process ends. `threads` is written to the environment first, unless it is 0, because
// the plugin for processors reads it there. The process's own handlers of signals stay, and so do
// the signals that it ignores. Thread-safe, if no other thread sets handlers or changes the
// environment meanwhile. Errors as those of Client::Make.
StatusOr<LoadedPlugin> LoadPlugin(const std::string& path, int threads);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_PLUGIN_H_
