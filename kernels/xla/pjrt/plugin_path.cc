#include "kernels/xla/pjrt/plugin_path.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace troupe::kernels::xla {

StatusOr<std::string> FindPlugin(const std::string& stated, const std::string& program) {
  if (!stated.empty()) return stated;
  const char* const variable = std::getenv("TROUPE_XLA_PLUGIN");
  if (variable != nullptr && *variable != '\0') return std::string(variable);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(program).parent_path();
  const std::filesystem::path installed =
      (folder / "../../xla-plugin/xla_cpu_pjrt.so").lexically_normal();
  if (std::filesystem::exists(installed, error)) return installed.string();
  return NotFound(
      "there is no plugin of XLA: no path is stated, TROUPE_XLA_PLUGIN is not set in the "
      "environment, and {}, where ./run build puts the plugin for processors, does not exist",
      installed.string());
}

StatusOr<std::string> FindPlugin(const std::string& stated) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "/proc/self/exe");
  return FindPlugin(stated, program.string());
}

}  // namespace troupe::kernels::xla
