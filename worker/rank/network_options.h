// The options of a rank's collective network.
#ifndef TROUPE_WORKER_RANK_NETWORK_OPTIONS_H_
#define TROUPE_WORKER_RANK_NETWORK_OPTIONS_H_

#include "base/status.h"
#include "collective/network.h"
#include "troupe/v1/rank.pb.h"

namespace troupe {

// `cores`: hardware threads that this rank's process may use. Returns INVALID_ARGUMENT for a key of
// the wrong length.
StatusOr<NetworkOptions> MakeNetworkOptions(const v1::BeginRank& begin, int cores);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_NETWORK_OPTIONS_H_
