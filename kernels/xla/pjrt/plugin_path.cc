#include "kernels/xla/pjrt/plugin_path.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "base/flag_parser.h"

namespace troupe::kernels::xla {
namespace {

StatusOr<std::string> ThisProgram() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "/proc/self/exe");
  return program.string();
}

// `file` of the folder build/, if `program` is in build/PRESET/bin.
std::filesystem::path InBuild(const std::string& program, const char* file) {
  return (std::filesystem::path(program).parent_path() / "../.." / file).lexically_normal();
}

}  // namespace

StatusOr<std::string> FindPlugin(const std::string& stated, const std::string& program) {
  if (!stated.empty()) return stated;
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> set,
                          TextFromEnvironment("TROUPE_XLA_PLUGIN"));
  if (set) return *set;
  std::error_code error;
  const std::filesystem::path installed = InBuild(program, "xla-plugin/xla_cpu_pjrt.so");
  if (std::filesystem::exists(installed, error)) return installed.string();
  return NotFound(
      "there is no plugin of XLA: no path is stated, TROUPE_XLA_PLUGIN is not set in the "
      "environment, and {}, where ./run build puts the plugin for processors, does not exist",
      installed.string());
}

StatusOr<std::string> FindPlugin(const std::string& stated) {
  TROUPE_ASSIGN_OR_RETURN(const std::string program, ThisProgram());
  return FindPlugin(stated, program);
}

StatusOr<std::string> FindLibtpu(const std::string& program) {
  constexpr const char* kHowToGetIt =
      "pip download --no-deps libtpu gets it, under Google's terms, and unzip unpacks it";
  std::error_code error;
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> set,
                          TextFromEnvironment("TROUPE_LIBTPU"));
  if (set) {
    if (std::filesystem::is_regular_file(*set, error)) return *set;
    return NotFound("TROUPE_LIBTPU is {}, which is no file; {}", *set, kHowToGetIt);
  }
  const std::filesystem::path installed = InBuild(program, "libtpu/libtpu.so");
  if (std::filesystem::is_regular_file(installed, error)) return installed.string();
  return NotFound(
      "there is no libtpu: TROUPE_LIBTPU is not set in the environment, and {} does "
      "not exist; {}",
      installed.string(), kHowToGetIt);
}

StatusOr<std::string> FindLibtpu() {
  TROUPE_ASSIGN_OR_RETURN(const std::string program, ThisProgram());
  return FindLibtpu(program);
}

}  // namespace troupe::kernels::xla
