// Compares our declarations of NCCL with its header, if it is installed.
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "collective/nccl/nccl_api.h"

namespace troupe::nccl {
namespace {

#ifdef NCCL_VERSION_CODE

static_assert(kSuccess == ncclSuccess && kUnhandledCudaError == ncclUnhandledCudaError &&
              kSystemError == ncclSystemError && kInternalError == ncclInternalError &&
              kInvalidArgument == ncclInvalidArgument && kInvalidUsage == ncclInvalidUsage &&
              kRemoteError == ncclRemoteError && kInProgress == ncclInProgress);
static_assert(kUint8 == ncclUint8 && kFloat32 == ncclFloat32 && kFloat64 == ncclFloat64 &&
              kBfloat16 == ncclBfloat16);
static_assert(kSum == ncclSum && kMax == ncclMax);
static_assert(sizeof(Result) == sizeof(ncclResult_t) &&
              sizeof(DataType) == sizeof(ncclDataType_t) && sizeof(RedOp) == sizeof(ncclRedOp_t));
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && std::is_trivially_copyable_v<UniqueId>);

static_assert(offsetof(Config, size) == offsetof(ncclConfig_t, size) &&
              offsetof(Config, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(Config, version) == offsetof(ncclConfig_t, version) &&
              offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking) &&
              offsetof(Config, net_name) == offsetof(ncclConfig_t, netName) &&
              offsetof(Config, split_share) == offsetof(ncclConfig_t, splitShare) &&
              offsetof(Config, traffic_class) == offsetof(ncclConfig_t, trafficClass) &&
              offsetof(Config, comm_name) == offsetof(ncclConfig_t, commName) &&
              sizeof(Config) <= sizeof(ncclConfig_t));

TEST(NcclHeader, AnUnsetConfigIsTheHeadersOwn) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_LE(ours.version, theirs.version);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.net_name, theirs.netName);
  EXPECT_EQ(ours.comm_name, theirs.commName);
}

// Compares parameters one by one: the header's enums are ints here, its pointers void*.
template <typename Ours, typename Theirs>
constexpr bool kIdentical = false;
template <typename... Ours, typename... Theirs>
constexpr bool kIdentical<Result(Ours...), ncclResult_t(Theirs...)> =
    sizeof...(Ours) == sizeof...(Theirs) && ((sizeof(Ours) == sizeof(Theirs)) && ...);

static_assert(kIdentical<GetVersion, decltype(ncclGetVersion)> &&
              kIdentical<GetUniqueId, decltype(ncclGetUniqueId)> &&
              kIdentical<CommInitRankConfig, decltype(ncclCommInitRankConfig)> &&
              kIdentical<CommFinalize, decltype(ncclCommFinalize)> &&
              kIdentical<CommDestroy, decltype(ncclCommDestroy)> &&
              kIdentical<CommAbort, decltype(ncclCommAbort)> &&
              kIdentical<CommGetAsyncError, decltype(ncclCommGetAsyncError)> &&
              kIdentical<AllReduce, decltype(ncclAllReduce)> &&
              kIdentical<Reduce, decltype(ncclReduce)> &&
              kIdentical<ReduceScatter, decltype(ncclReduceScatter)> &&
              kIdentical<AllGather, decltype(ncclAllGather)> &&
              kIdentical<Broadcast, decltype(ncclBroadcast)> &&
              kIdentical<Send, decltype(ncclSend)> && kIdentical<Recv, decltype(ncclRecv)> &&
              kIdentical<GroupStart, decltype(ncclGroupStart)> &&
              kIdentical<GroupEnd, decltype(ncclGroupEnd)>);

#else

TEST(NcclHeader, AnUnsetConfigIsTheHeadersOwn) {
  GTEST_SKIP() << "this machine has no nccl.h to compare with";
}

#endif

}  // namespace
}  // namespace troupe::nccl
