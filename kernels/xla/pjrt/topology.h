// Devices by the name of their topology, for which programs are compiled without any of them.
#ifndef TROUPE_KERNELS_XLA_PJRT_TOPOLOGY_H_
#define TROUPE_KERNELS_XLA_PJRT_TOPOLOGY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

// The memory of one device that a compiled program needs, in bytes, as its compiler states it.
struct CompiledMemory {
  int64_t code = 0;
  int64_t arguments = 0;
  int64_t results = 0;
  int64_t aliased = 0;    // part of `results` that takes over the memory of arguments
  int64_t temporary = 0;  // while the program runs, in addition
};

struct CompiledProgram {
  CompiledMemory memory;
  std::map<std::string, int> collectives;  // instructions by kind (hlo_collectives.h)
};

// Thread-safe. It must not be destroyed while the process's static objects are.
class Topology {
 public:
  // Loads the plugin at `path` and describes the devices that it calls `name` ("v6e:2x4"). The call
  // changes the environment as Client::Make does. Errors: NOT_FOUND if there is no plugin;
  // FAILED_PRECONDITION if it is none, or older than the one this was built with;
  // INVALID_ARGUMENT, with the plugin's message, if it does not know the name.
  static StatusOr<std::unique_ptr<Topology>> Make(const std::string& path, const std::string& name);
  virtual ~Topology() = default;

  virtual const PluginFacts& plugin() const = 0;
  // memory_bytes is that which programs may use.
  virtual const std::vector<DeviceFacts>& devices() const = 0;

  // Compiles StableHLO text for these devices (indices of devices()) as Client::Compile does, with
  // the same errors; also RESOURCE_EXHAUSTED if it needs more memory than such a device has.
  virtual StatusOr<CompiledProgram> Compile(std::string_view text, const Options& options,
                                            std::span<const int> devices) = 0;
  StatusOr<CompiledProgram> Compile(std::string_view text, const Options& options, int device) {
    return Compile(text, options, std::span(&device, 1));
  }
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_TOPOLOGY_H_
