#include "collective/operation.h"

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

std::string_view Name(Purpose purpose) {
  switch (purpose) {
    case Purpose::kTensor:
      return "tensor";
    case Purpose::kSequence:
      return "sequence";
    case Purpose::kContext:
      return "context";
    case Purpose::kDispatch:
      return "dispatch";
    case Purpose::kUnshard:
      return "unshard";
    case Purpose::kGradient:
      return "gradient";
    case Purpose::kPipe:
      return "pipe";
    case Purpose::kControl:
      return "control";
    case Purpose::kStart:
      return "start";
  }
  TROUPE_CHECK(false, "purpose {} has no name", static_cast<int>(purpose));
}

}  // namespace troupe
