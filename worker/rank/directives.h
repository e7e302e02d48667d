// What a rank has been told by the coordinator: how far it may run, which checkpoints are asked
// for, whether to stop. Filled by the control thread, read by the step thread.
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

// What a rank that runs no more steps is asked for.
struct LastOrder {
  std::optional<v1::CheckpointIntent> save;  // absent: an image on its worker
};

class Directives {
 public:
  // --- The control thread.
  void TakeAddresses(const v1::AddressBook& book);
  // `now`: when it was received; its lifetime counts from there. An end never moves back.
  void TakeTicket(const v1::Ticket& ticket, MonotonicTime now);
  void TakeRequest(const v1::CheckpointIntent& intent);
  // An image of the state after `step` is asked for.
  void TakeImageOrder(int64_t step);
  // After this every wait but WaitForRelease returns: the rank is to end. `cause` OK: it has done
  // its work.
  void Stop(const Status& cause);
  // The coordinator wants the rank gone: whoever waits for that returns.
  void Release();
  // When the last ticket's lifetime ends; absent before the first, and once the rank runs no more
  // steps (WaitForLastOrder): its state may be all there is.
  std::optional<MonotonicTime> expires_at() const;

  // --- The step thread.
  // What every rank said of itself, by rank. CANCELLED once stopped.
  StatusOr<std::vector<v1::RankAddress>> WaitForAddresses();
  // Waits for the duration; false, at once, if stopped.
  bool Pause(Duration duration) const;
  // Waits until the ticket covers `step` and returns its end. CANCELLED once stopped.
  StatusOr<int64_t> WaitForTicket(int64_t step);
  void WaitForRelease();
  // After the last step, `step`: waits for an intent of it with a number above `last_attempt`, or
  // for the order to save an image of it. Nothing once stopped or released.
  std::optional<LastOrder> WaitForLastOrder(int64_t step, int64_t last_attempt);
  // The cause, once stopped.
  std::optional<Status> stopped() const;

  // What this rank knows, of checkpoints of the one due after `step`. `saving`: a save is in flight, and this
  // rank would have to stand still for another: a due one is then not known, so that all skip it; the
  // last one is.
  ControlInputs InputsFor(int64_t step, bool saving) const;

  // The checkpoints that all ranks take because of a step with this result, in the order in which all
  // take them: that due `lag_steps` after it, which says after which step; then the asked-for one, which
  // says none, after the last step on its way. An asked-for one of which this rank does not know the
  // intent, though others do, has an empty path.
  std::vector<v1::CheckpointIntent> CheckpointsAfter(const StepResult& result,
                                                     int64_t lag_steps = 0);
  // The checkpoint due after `step`. REQUIRES: every rank knows its intent.
  v1::CheckpointIntent TakeDue(int64_t step);

 private:
  // REQUIRES: mutex_ is held.
  v1::CheckpointIntent TakeDueLocked(int64_t step);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<std::vector<v1::RankAddress>> addresses_;
  int64_t end_step_ = 0;
  std::optional<MonotonicTime> expires_at_;
  std::map<int64_t, v1::CheckpointIntent> due_;        // by step
  std::map<int64_t, v1::CheckpointIntent> requested_;  // by attempt
  int64_t last_request_ = 0;                           // highest attempt ever asked for
  int64_t last_request_done_ = 0;
  std::optional<int64_t> image_step_;
  std::optional<Status> stopped_;
  bool released_ = false;
  bool runs_no_more_ = false;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_DIRECTIVES_H_
