// What a rank's collective network is made with.
#ifndef TROUPE_WORKER_RANK_NETWORK_OPTIONS_H_
#define TROUPE_WORKER_RANK_NETWORK_OPTIONS_H_

#include "base/status.h"
#include "collective/network.h"
#include "troupe/v1/rank.pb.h"

namespace troupe {

// `cores`: that this rank's process may use. INVALID_ARGUMENT for a key of another length.
StatusOr<NetworkOptions> MakeNetworkOptions(const v1::BeginRank& begin, int cores);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_NETWORK_OPTIONS_H_
