#include "collective/nccl/nccl_library.h"

#include <dlfcn.h>

namespace troupe {
namespace {

std::string VersionText(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

template <typename Function>
Status Look(void* handle, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(handle, name));
  if (*function == nullptr) return Unimplemented("it has no function {}", name);
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<NcclLibrary>> NcclLibrary::Load(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return NotFound("NCCL cannot be loaded: {}", dlerror());
  std::unique_ptr<NcclLibrary> library(new NcclLibrary);
  if (Status status = library->LookUp(handle); !status.ok()) return Annotate(status, path);
  return library;
}

Status NcclLibrary::LookUp(void* handle) {
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclGetVersion", &get_version_));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclGetErrorString", &get_error_string_));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclGetLastError", &get_last_error_));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclGetUniqueId", &get_unique_id));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclCommInitRankConfig", &comm_init_rank_config));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclCommFinalize", &comm_finalize));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclCommDestroy", &comm_destroy));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclCommAbort", &comm_abort));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclCommGetAsyncError", &comm_get_async_error));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclAllReduce", &all_reduce));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclReduce", &reduce));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclReduceScatter", &reduce_scatter));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclAllGather", &all_gather));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclBroadcast", &broadcast));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclSend", &send));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclRecv", &receive));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclGroupStart", &group_start));
  TROUPE_RETURN_IF_ERROR(Look(handle, "ncclGroupEnd", &group_end));
  TROUPE_RETURN_IF_ERROR(ToStatus(get_version_(&version_), nullptr));
  if (version_ < kNcclVersionMin) {
    return FailedPrecondition("it is NCCL {}, of which at least {} is needed", version_text(),
                              VersionText(kNcclVersionMin));
  }
  return OkStatus();
}

std::string NcclLibrary::version_text() const { return VersionText(version_); }

Status NcclLibrary::ToStatus(nccl::Result result, nccl::Comm comm) const {
  if (result == nccl::kSuccess) return OkStatus();
  std::string text = fmt::format("NCCL: {}", get_error_string_(result));
  if (const char* const last = get_last_error_(comm); last != nullptr && *last != '\0') {
    text += fmt::format(": {}", last);
  }
  switch (result) {
    case nccl::kUnhandledCudaError:
    case nccl::kSystemError:
    case nccl::kRemoteError:
      return MakeStatus(StatusCode::kUnavailable, text);
    default:
      return MakeStatus(StatusCode::kInternal, text);
  }
}

}  // namespace troupe
