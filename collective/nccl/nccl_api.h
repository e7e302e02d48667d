// The functions and values of NVIDIA's NCCL that this folder uses, declared here because a machine
// that builds Troupe need not have nccl.h. Names, values and layouts are those of the NCCL API
// reference (docs.nvidia.com/deeplearning/nccl); nccl_header_test.cc compares them with the header
// if it is installed.
#ifndef TROUPE_COLLECTIVE_NCCL_NCCL_API_H_
#define TROUPE_COLLECTIVE_NCCL_NCCL_API_H_

#include <climits>
#include <cstddef>

namespace troupe::nccl {

// ncclResult_t
using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kUnhandledCudaError = 1;
inline constexpr Result kSystemError = 2;
inline constexpr Result kInternalError = 3;
inline constexpr Result kInvalidArgument = 4;
inline constexpr Result kInvalidUsage = 5;
inline constexpr Result kRemoteError = 6;
inline constexpr Result kInProgress = 7;

// ncclComm_t and cudaStream_t: opaque pointers.
using Comm = void*;
using CudaStream = void*;

// ncclDataType_t
using DataType = int;
inline constexpr DataType kUint8 = 1;
inline constexpr DataType kFloat32 = 7;
inline constexpr DataType kFloat64 = 8;
inline constexpr DataType kBfloat16 = 9;

// ncclRedOp_t
using RedOp = int;
inline constexpr RedOp kSum = 0;
inline constexpr RedOp kMax = 2;

struct UniqueId {
  char internal[128];
};

// The first fields of ncclConfig_t, as of 2.27. NCCL treats fields beyond `size` as unset.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22700;
  int blocking = INT_MIN;  // INT_MIN and null mean unset
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
  int traffic_class = INT_MIN;
  const char* comm_name = nullptr;
};

using GetVersion = Result(int* version);
using GetUniqueId = Result(UniqueId* id);
using CommInitRankConfig = Result(Comm* comm, int ranks, UniqueId id, int rank, Config* config);
using CommFinalize = Result(Comm comm);
using CommDestroy = Result(Comm comm);
using CommAbort = Result(Comm comm);
using CommGetAsyncError = Result(Comm comm, Result* error);
using GetErrorString = const char*(Result result);
using GetLastError = const char*(Comm comm);
using AllReduce = Result(const void* send, void* receive, size_t count, DataType type, RedOp op,
                         Comm comm, CudaStream stream);
using Reduce = Result(const void* send, void* receive, size_t count, DataType type, RedOp op,
                      int root, Comm comm, CudaStream stream);
using ReduceScatter = Result(const void* send, void* receive, size_t receive_count, DataType type,
                             RedOp op, Comm comm, CudaStream stream);
using AllGather = Result(const void* send, void* receive, size_t send_count, DataType type,
                         Comm comm, CudaStream stream);
using Broadcast = Result(const void* send, void* receive, size_t count, DataType type, int root,
                         Comm comm, CudaStream stream);
using Send = Result(const void* data, size_t count, DataType type, int peer, Comm comm,
                    CudaStream stream);
using Recv = Result(void* data, size_t count, DataType type, int peer, Comm comm,
                    CudaStream stream);
using GroupStart = Result();
using GroupEnd = Result();

}  // namespace troupe::nccl

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_API_H_
