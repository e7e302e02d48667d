// The kinds and purposes of collective operations, and their names in metrics, watchdog and flight
// recorder.
#ifndef TROUPE_COLLECTIVE_OPERATION_H_
#define TROUPE_COLLECTIVE_OPERATION_H_

#include <cstdint>
#include <string_view>

namespace troupe {

enum class CollectiveOperation : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kSend,
  kReceive,
  kBarrier,
};
inline constexpr int kCollectiveOperations = 8;

// The purpose of a collective. Every operation carries one.
enum class Purpose : uint8_t {
  kTensor,    // partial sums of tensor-parallel matmuls
  kSequence,  // activations sharded along the sequence between tensor-parallel regions
  kContext,   // a sequence split over ranks
  kDispatch,  // tokens to experts and back
  kUnshard,   // parameters gathered before use
  kGradient,  // gradient reduction
  kPipe,      // activations and their gradients between stages
  kControl,   // the step's global reduction: norm, loss, control word
  kStart,     // checks before the first step
};
inline constexpr int kPurposes = 9;

// "all_reduce", "reduce_scatter", …
std::string_view Name(CollectiveOperation operation);

// "tensor", "sequence", …
std::string_view Name(Purpose purpose);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_OPERATION_H_
