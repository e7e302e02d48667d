#include "kernels/xla/pjrt/plugin.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "base/shared_library.h"
#include "kernels/xla/pjrt/call.h"
#include "kernels/xla/pjrt/kept_signals.h"
#include "kernels/xla/pjrt/plugin_file.h"
#include "kernels/xla/pjrt/tpu_environment.h"

namespace troupe::kernels::xla {
namespace {

Status Initialize(const PJRT_Api& api) {
  static auto& initialized = *new std::set<const PJRT_Api*>();
  if (initialized.contains(&api)) return OkStatus();
  TROUPE_PJRT_ARGUMENTS(PJRT_Plugin_Initialize_Args, initialize);
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_Plugin_Initialize(&initialize)));
  initialized.insert(&api);
  return OkStatus();
}

// Returns the interface of the library at `path`, which is not checked.
StatusOr<const PJRT_Api*> OpenPlugin(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<SharedLibrary> library,
                          SharedLibrary::Open("the library", path));
  const PJRT_Api* (*get_api)() = nullptr;
  TROUPE_RETURN_IF_ERROR(library->Find("GetPjrtApi", &get_api));
  // From here on its code has run, and may have started threads.
  SharedLibrary::Keep(std::move(library));
  const PJRT_Api* const api = get_api();
  if (api == nullptr) return Internal("GetPjrtApi returns no interface");
  return api;
}

}  // namespace

Status CheckApi(const PJRT_Api& api) {
  const PJRT_Api_Version& version = api.pjrt_api_version;
  if (version.major_version != PJRT_API_MAJOR || version.minor_version < PJRT_API_MINOR) {
    return FailedPrecondition(
        "its PJRT API is {}.{}; {}.{} or a later version with the same major number is required",
        version.major_version, version.minor_version, PJRT_API_MAJOR, PJRT_API_MINOR);
  }
  if (api.struct_size < size_t{PJRT_Api_STRUCT_SIZE}) {
    return FailedPrecondition(
        "its table of functions has {} bytes; that of PJRT API {}.{} has {}, and no later one has "
        "fewer",
        api.struct_size, PJRT_API_MAJOR, PJRT_API_MINOR, size_t{PJRT_Api_STRUCT_SIZE});
  }
  return OkStatus();
}

StatusOr<LoadedPlugin> LoadPlugin(const std::string& path, int threads) {
  static auto& mutex = *new std::mutex();
  const std::lock_guard lock(mutex);
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error || !std::filesystem::exists(absolute, error)) {
    return NotFound("the plugin of XLA {} does not exist", path);
  }
  const std::string count = std::to_string(threads);
  const char* const set = std::getenv("NPROC");
  // Later clients of a process find it set, when the plugin has threads that read the environment.
  if (threads > 0 && (set == nullptr || set != count))
    setenv("NPROC", count.c_str(), /*overwrite=*/1);
  // Plugins log a line for each program of several devices.
  setenv("TF_CPP_MIN_LOG_LEVEL", "1", /*overwrite=*/0);
  SetTpuEnvironment();
  const auto refuse = [&path](const Status& status) {
    return FailedPrecondition("{} is no plugin of XLA that can be used: {}", path, Message(status));
  };
  static auto& files = *new std::map<std::string, std::string>();  // by path
  const std::string file = FileIdentity(absolute);
  if (const Status status = CheckFileIsWhole(absolute); !status.ok()) return refuse(status);
  const KeptSignals signals;
  const StatusOr<const PJRT_Api*> api = OpenPlugin(absolute);
  if (!api.ok()) return refuse(api.status());
  const std::string& loaded = files.emplace(absolute, file).first->second;
  if (const Status status = CheckApi(**api); !status.ok()) return refuse(status);
  if (const Status status = Initialize(**api); !status.ok()) return refuse(status);
  return LoadedPlugin{*api, loaded};
}

}  // namespace troupe::kernels::xla
