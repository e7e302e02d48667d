// The states of a worker, as the coordinator reports them (v1.WorkerStatus.state) and users see
// them in `troupe workers`.
#ifndef TROUPE_BASE_WORKER_STATE_H_
#define TROUPE_BASE_WORKER_STATE_H_

#include <string_view>

namespace troupe {

// The one list of states; no other product code writes these words.
namespace worker_state {

// The worker is connected.
inline constexpr std::string_view kReady = "READY";
// The worker is connected, but nothing more is placed on it.
inline constexpr std::string_view kDraining = "DRAINING";
// The worker is known, but its connection is lost.
inline constexpr std::string_view kLost = "LOST";

constexpr bool IsConnected(std::string_view state) { return state == kReady || state == kDraining; }

}  // namespace worker_state
}  // namespace troupe

#endif  // TROUPE_BASE_WORKER_STATE_H_
