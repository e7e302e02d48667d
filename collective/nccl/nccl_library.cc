#include "collective/nccl/nccl_library.h"

#include <utility>

#include "base/log.h"

namespace troupe {
namespace {

std::string VersionText(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

StatusOr<std::unique_ptr<NcclLibrary>> NcclLibrary::Load(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(auto opened, SharedLibrary::Open("NCCL", path));
  std::unique_ptr<NcclLibrary> library(new NcclLibrary);
  TROUPE_RETURN_IF_ERROR(Annotate(library->LookUp(*opened), path));
  SharedLibrary::Keep(std::move(opened));
  return library;
}

Status NcclLibrary::LookUp(const SharedLibrary& library) {
  TROUPE_RETURN_IF_ERROR(library.Find("ncclGetVersion", &get_version_));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclGetErrorString", &get_error_string_));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclGetLastError", &get_last_error_));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclGetUniqueId", &get_unique_id));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclCommInitRankConfig", &comm_init_rank_config));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclCommFinalize", &comm_finalize));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclCommDestroy", &comm_destroy));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclCommAbort", &comm_abort));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclCommGetAsyncError", &comm_get_async_error));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclAllReduce", &all_reduce));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclReduce", &reduce));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclReduceScatter", &reduce_scatter));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclAllGather", &all_gather));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclBroadcast", &broadcast));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclSend", &send));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclRecv", &receive));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclGroupStart", &group_start));
  TROUPE_RETURN_IF_ERROR(library.Find("ncclGroupEnd", &group_end));
  TROUPE_RETURN_IF_ERROR(ToStatus(get_version_(&version_), nullptr));
  if (version_ < kNcclVersionMin) {
    return FailedPrecondition("its version is NCCL {}, but at least {} is required", version_text(),
                              VersionText(kNcclVersionMin));
  }
  return OkStatus();
}

std::string NcclLibrary::version_text() const { return VersionText(version_); }

std::string NcclInUse(const std::string& path) {
  const auto library = NcclLibrary::Load(path);
  if (library.ok()) return (*library)->version_text();
  LogWarning("nccl", "the GPUs of this host cannot take part in jobs on several GPUs: {}",
             Message(library.status()));
  return "";
}

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
