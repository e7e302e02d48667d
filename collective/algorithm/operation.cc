#include "collective/algorithm/operation.h"

#include "base/check.h"

namespace troupe {

std::string_view Name(CollectiveOperation operation) {
  switch (operation) {
    case CollectiveOperation::kAllReduce:
      return "all_reduce";
    case CollectiveOperation::kReduceScatter:
      return "reduce_scatter";
    case CollectiveOperation::kAllGather:
      return "all_gather";
    case CollectiveOperation::kAllToAll:
      return "all_to_all";
    case CollectiveOperation::kBroadcast:
      return "broadcast";
    case CollectiveOperation::kSend:
      return "send";
    case CollectiveOperation::kReceive:
      return "receive";
    case CollectiveOperation::kBarrier:
      return "barrier";
  }
  TROUPE_CHECK(false, "collective operation {} has no name", static_cast<int>(operation));
}

}  // namespace troupe
