#include "kernels/xla/runtime/executable_key.h"

#include <cstdlib>

#include "kernels/xla/runtime/sha256.h"

namespace troupe::kernels::xla {

std::string ExecutableKey(const ExecutableFacts& facts) {
  Sha256 digest;
  const std::string threads = std::to_string(facts.threads);
  for (const std::string_view fact :
       {facts.module, facts.option_bytes, facts.plugin_digest, facts.platform_version,
        facts.device_kind, facts.topology, std::string_view(threads), facts.environment}) {
    digest.Add(fmt::format("{}:", fact.size()));
    digest.Add(fact);
  }
  return digest.FinishAsText();
}

std::string CompilerEnvironment() {
  std::string text;
  for (const char* const name : {"XLA_FLAGS", "LIBTPU_INIT_ARGS"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr) text += fmt::format("{}={}\n", name, value);
  }
  return text;
}

}  // namespace troupe::kernels::xla
