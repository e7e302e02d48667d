// Where the plugin is that a process loads. The functions read the environment and the file system,
// and change neither. Thread-safe while no thread changes the environment.
#ifndef TROUPE_KERNELS_XLA_PJRT_PLUGIN_PATH_H_
#define TROUPE_KERNELS_XLA_PJRT_PLUGIN_PATH_H_

#include <string>

#include "base/status.h"

namespace troupe::kernels::xla {

// Returns `stated` unless it is empty; else the value of TROUPE_XLA_PLUGIN in the environment
// unless that is empty; else the plugin for processors that `./run build` has put into the folder
// build/xla-plugin, if `program` (by default this one) is in a folder build/PRESET/bin. Whether the
// first two exist is not checked. NOT_FOUND, naming the three places, if there is none;
// INVALID_ARGUMENT of TextFromEnvironment.
StatusOr<std::string> FindPlugin(const std::string& stated);
StatusOr<std::string> FindPlugin(const std::string& stated, const std::string& program);

// Returns the path of libtpu, which compiles for TPUs on any machine: the value of TROUPE_LIBTPU in
// the environment unless that is empty; else libtpu.so in the folder build/libtpu, if `program` (by
// default this one) is in a folder build/PRESET/bin. NOT_FOUND, with the way to get it, if there is
// no such file; INVALID_ARGUMENT of TextFromEnvironment.
StatusOr<std::string> FindLibtpu();
StatusOr<std::string> FindLibtpu(const std::string& program);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_PLUGIN_PATH_H_
