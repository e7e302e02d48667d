// The kinds of collective operation and what each is for: the words that metrics, watchdog and
// recorder print.
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

// Why a collective exists. Every operation carries one.
enum class Purpose : uint8_t {
  kTensor,    // partial sums of tensor-parallel products
  kSequence,  // activations sharded along the sequence between tensor-parallel regions
  kContext,   // a sequence spread over ranks
  kDispatch,  // tokens to experts and back
  kUnshard,   // parameters gathered before use
  kGradient,  // gradients reduced
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
