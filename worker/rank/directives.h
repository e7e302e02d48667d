// The orders that a rank has from the coordinator: how far it may run, which checkpoints are
// requested, whether to stop. The control thread writes them, the step thread reads them.
//
// Invariants: the end of the tickets, their lifetime and the highest request never decrease
// (directives_test.cc: ATicketsEndNeverMovesBackAndItsLifetimeIsRenewed). The first stop decides
// the cause; once stopped or released, a rank stays so.
//
// Thread-safe.
#ifndef TROUPE_WORKER_RANK_DIRECTIVES_H_
#define TROUPE_WORKER_RANK_DIRECTIVES_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/executor/executor.h"

namespace troupe {

// An order to a rank that runs no more steps.
struct LastOrder {
  std::optional<v1::CheckpointIntent> save;  // absent: save an image on its worker
};

class Directives {
 public:
  // --- Called by the control thread.
  void SetDevices(const v1::DeviceBook& book);
  void SetAddresses(const v1::AddressBook& book);
  // `now` is when the ticket was received; its lifetime starts then. A ticket's end never moves
  // back.
  void AddTicket(const v1::Ticket& ticket, MonotonicTime now);
  void AddRequest(const v1::CheckpointIntent& intent);
  // Orders an image of the state after `step`.
  void OrderImage(int64_t step);
  // Asks the rank to end: from now on every wait except WaitForRelease returns. `cause` OK: its
  // work is done.
  void Stop(const Status& cause);
  // The coordinator wants the rank to end: WaitForRelease returns.
  void Release();
  // When the last ticket's lifetime ends. Absent before the first ticket, and once the rank runs no
  // more steps (WaitForLastOrder), because it may then hold the only copy of the state.
  std::optional<MonotonicTime> expires_at() const;

  // --- Called by the step thread.
  // Returns the device that each rank reported, by rank; CANCELLED once stopped.
  StatusOr<std::vector<v1::RankDevice>> WaitForDevices();
  // Returns the address that each rank reported, by rank; CANCELLED once stopped.
  StatusOr<std::vector<v1::RankAddress>> WaitForAddresses();
  // Waits for `duration`; returns false at once if stopped.
  bool Pause(Duration duration) const;
  // Waits until the ticket covers `step` and returns its end; CANCELLED once stopped.
  StatusOr<int64_t> WaitForTicket(int64_t step);
  void WaitForRelease();
  // After the last step, `step`: waits for an intent for that step with an attempt above
  // `last_attempt`, or for the order to save an image of it. Absent once stopped or released.
  std::optional<LastOrder> WaitForLastOrder(int64_t step, int64_t last_attempt);
  // The cause of the stop, once stopped.
  std::optional<Status> stopped() const;

  // Returns this rank's control inputs; intent_known is of the checkpoint due after `step`.
  // `saving`: a save is in flight, so another would block this rank; a due checkpoint is then
  // reported as not known, and all ranks skip it, except the last one.
  ControlInputs InputsFor(int64_t step, bool saving) const;

  // Returns the checkpoints that all ranks take because of a step with this result, in the order in
  // which all take them: first the one due `lag_steps` after it, whose intent names its step; then
  // the requested one, which names none and is taken after the last step in flight. A requested
  // checkpoint has an empty path if other ranks know its intent but this one does not.
  std::vector<v1::CheckpointIntent> CheckpointsAfter(const StepResult& result,
                                                     int64_t lag_steps = 0);
  // Returns and removes the intent of the checkpoint due after `step`. REQUIRES: every rank knows
  // it.
  v1::CheckpointIntent PopDue(int64_t step);

 private:
  // Like PopDue. REQUIRES: mutex_ is held.
  v1::CheckpointIntent PopDueLocked(int64_t step);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<std::vector<v1::RankDevice>> devices_;
  std::optional<std::vector<v1::RankAddress>> addresses_;
  int64_t end_step_ = 0;
  std::optional<MonotonicTime> expires_at_;
  std::map<int64_t, v1::CheckpointIntent> due_;        // by step
  std::map<int64_t, v1::CheckpointIntent> requested_;  // by attempt
  int64_t last_request_ = 0;                           // highest attempt ever requested
  int64_t last_request_done_ = 0;
  std::optional<int64_t> image_step_;
  std::optional<Status> stopped_;
  bool released_ = false;
  bool runs_no_more_ = false;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_DIRECTIVES_H_
