// NCCL, loaded at run time. Immutable once loaded; as thread-safe as NCCL.
#ifndef TROUPE_COLLECTIVE_NCCL_NCCL_LIBRARY_H_
#define TROUPE_COLLECTIVE_NCCL_NCCL_LIBRARY_H_

#include <memory>
#include <string>

#include "base/shared_library.h"
#include "base/status.h"
#include "collective/nccl/nccl_api.h"

namespace troupe {

inline constexpr const char* kNcclLibraryName = "libnccl.so.2";
inline constexpr int kNcclVersionMin = 22700;  // 2.27.0: has all fields of Config

class NcclLibrary {
 public:
  // `path`: a file, or a name that the dynamic linker finds. NOT_FOUND with the linker's reason,
  // UNIMPLEMENTED for a missing function, FAILED_PRECONDITION for a version older than
  // kNcclVersionMin.
  static StatusOr<std::unique_ptr<NcclLibrary>> Load(const std::string& path = kNcclLibraryName);
  NcclLibrary(const NcclLibrary&) = delete;
  NcclLibrary& operator=(const NcclLibrary&) = delete;
  // The library stays loaded: its threads and the device may still use it.
  ~NcclLibrary() = default;

  int version() const { return version_; }  // 22809: 2.28.9
  std::string version_text() const;         // "2.28.9"

  // OK for kSuccess; UNAVAILABLE for errors caused by other ranks, the system or the device;
  // INTERNAL for errors of our calls. The text holds NCCL's description of the result and its last
  // error. `comm` may be null. REQUIRES: no call on `comm` is in flight.
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

// "2.28.9"; empty if Load fails; the log states the reason.
std::string NcclInUse(const std::string& path = kNcclLibraryName);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_LIBRARY_H_
