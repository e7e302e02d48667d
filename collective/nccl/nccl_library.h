// NCCL, loaded at run time. Immutable once loaded, thread-safe as far as NCCL is.
#ifndef TROUPE_COLLECTIVE_NCCL_NCCL_LIBRARY_H_
#define TROUPE_COLLECTIVE_NCCL_NCCL_LIBRARY_H_

#include <memory>
#include <string>

#include "base/shared_library.h"
#include "base/status.h"
#include "collective/nccl/nccl_api.h"

namespace troupe {

inline constexpr const char* kNcclLibraryName = "libnccl.so.2";
inline constexpr int kNcclVersionMin = 22700;  // 2.27.0: what Config has

class NcclLibrary {
 public:
  // `path`: a file, or a name that the dynamic linker finds. NOT_FOUND with the linker's reason, UNIMPLEMENTED for a
  // function that is not there, FAILED_PRECONDITION for a version before kNcclVersionMin.
  static StatusOr<std::unique_ptr<NcclLibrary>> Load(const std::string& path = kNcclLibraryName);
  NcclLibrary(const NcclLibrary&) = delete;
  NcclLibrary& operator=(const NcclLibrary&) = delete;
  // Stays loaded: its threads and the device may still use it.
  ~NcclLibrary() = default;

  int version() const { return version_; }  // 22809: 2.28.9
  std::string version_text() const;         // "2.28.9"

  // OK of kSuccess; else UNAVAILABLE of what other ranks, the system or the device have done, INTERNAL of what we have,
  // with the library's words for the result and for its last error. `comm` may be null. No call on it may be under way.
  Status ToStatus(nccl::Result result, nccl::Comm comm) const;

  nccl::GetUniqueId* get_unique_id = nullptr;
  nccl::CommInitRankConfig* comm_init_rank_config = nullptr;
  nccl::CommFinalize* comm_finalize = nullptr;
  nccl::CommDestroy* comm_destroy = nullptr;
  nccl::CommAbort* comm_abort = nullptr;
  nccl::CommGetAsyncError* comm_get_async_error = nullptr;
  nccl::AllReduce* all_reduce = nullptr;
  nccl::Reduce* reduce = nullptr;
  nccl::ReduceScatter* reduce_scatter = nullptr;
  nccl::AllGather* all_gather = nullptr;
  nccl::Broadcast* broadcast = nullptr;
  nccl::Send* send = nullptr;
  nccl::Recv* receive = nullptr;
  nccl::GroupStart* group_start = nullptr;
  nccl::GroupEnd* group_end = nullptr;

 private:
  NcclLibrary() = default;
  Status LookUp(const SharedLibrary& library);

  nccl::GetVersion* get_version_ = nullptr;
  nccl::GetErrorString* get_error_string_ = nullptr;
  nccl::GetLastError* get_last_error_ = nullptr;
  int version_ = 0;
};

// "2.28.9"; empty where Load would fail, for reasons that the log says.
std::string NcclInUse(const std::string& path = kNcclLibraryName);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_LIBRARY_H_
