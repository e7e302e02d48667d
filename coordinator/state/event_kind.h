// The list of kinds of a job's events: what `troupe describe`, `troupe watch` and the history count
// by. Causes of failures (base/failure_cause.h) and names of states are kinds of events too.
#ifndef TROUPE_COORDINATOR_STATE_EVENT_KIND_H_
#define TROUPE_COORDINATOR_STATE_EVENT_KIND_H_

#include <string_view>

namespace troupe::event {

inline constexpr std::string_view kCancelCalledOff = "CANCEL_CALLED_OFF";
inline constexpr std::string_view kCheckpointAborted = "CHECKPOINT_ABORTED";
inline constexpr std::string_view kCheckpointCommitted = "CHECKPOINT_COMMITTED";
inline constexpr std::string_view kCheckpointDoubted = "CHECKPOINT_DOUBTED";
inline constexpr std::string_view kCheckpointDoubtOpen = "CHECKPOINT_DOUBT_OPEN";
inline constexpr std::string_view kCheckpointDoubtRefuted = "CHECKPOINT_DOUBT_REFUTED";
inline constexpr std::string_view kCheckpointLifted = "CHECKPOINT_LIFTED";
inline constexpr std::string_view kCheckpointPinned = "CHECKPOINT_PINNED";
inline constexpr std::string_view kCheckpointQuarantined = "CHECKPOINT_QUARANTINED";
inline constexpr std::string_view kCheckpointSkipped = "CHECKPOINT_SKIPPED";
inline constexpr std::string_view kCheckpointUnpinned = "CHECKPOINT_UNPINNED";
inline constexpr std::string_view kCheckpointUnreadable = "CHECKPOINT_UNREADABLE";
inline constexpr std::string_view kGrew = "GREW";
inline constexpr std::string_view kGrowing = "GROWING";
inline constexpr std::string_view kGrowthCalledOff = "GROWTH_CALLED_OFF";
inline constexpr std::string_view kImagesFailed = "IMAGES_FAILED";
inline constexpr std::string_view kMoved = "MOVED";
inline constexpr std::string_view kMoveCalledOff = "MOVE_CALLED_OFF";
inline constexpr std::string_view kMoving = "MOVING";
inline constexpr std::string_view kNotMoving = "NOT_MOVING";
inline constexpr std::string_view kQueued = "QUEUED";
inline constexpr std::string_view kRebuilt = "REBUILT";
inline constexpr std::string_view kRecovered = "RECOVERED";
inline constexpr std::string_view kRecovering = "RECOVERING";
inline constexpr std::string_view kSavingImages = "SAVING_IMAGES";
inline constexpr std::string_view kStarted = "STARTED";
inline constexpr std::string_view kStepSkipped = "STEP_SKIPPED";
inline constexpr std::string_view kWaitingForCapacity = "WAITING_FOR_CAPACITY";

}  // namespace troupe::event

#endif  // TROUPE_COORDINATOR_STATE_EVENT_KIND_H_
