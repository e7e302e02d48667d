// The key of a compiled program in a cache: a digest of everything that decides its code.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_EXECUTABLE_KEY_H_
#define TROUPE_KERNELS_XLA_RUNTIME_EXECUTABLE_KEY_H_

#include <string>
#include <string_view>

#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

struct ExecutableFacts {
  std::string_view module;         // text of the program
  std::string_view option_bytes;   // Client::OptionBytes: also the device that it runs on
  std::string_view plugin_digest;  // SHA-256 of the plugin's file
  std::string_view platform_version;
  std::string_view device_kind;
  std::string_view topology;  // PluginFacts::topology: also the instructions of the host
  // Threads of the plugin for processors, which cuts the work of an operation by them.
  int threads = 0;
  // Settings that the plugin reads from the environment and that no option shows: NAME=VALUE.
  std::string_view environment;
};

// Returns 64 hexadecimal digits. Different facts have different keys: each fact is preceded by its
// length. Pure.
std::string ExecutableKey(const ExecutableFacts& facts);

// Returns XLA_FLAGS and LIBTPU_INIT_ARGS of this process as ExecutableFacts::environment.
std::string CompilerEnvironment();

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_EXECUTABLE_KEY_H_
