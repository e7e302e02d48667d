// The order in which a rank submits the steps of a group epoch to its device, waits for their
// results, and acts on them.
//
// A step is submitted while up to `lag_steps` earlier steps are not completed: the device queues
// it, and the rank waits only for the steps before those. So the control word of step s, which all
// ranks share, is read when step s + lag_steps is in flight, and takes effect at a boundary: after
// the last step then in flight, or after a step that was known beforehand. A rank acts on a
// boundary once it has completed every step up to it, before it submits another.
//
// Invariants:
// - completed() <= submitted() <= completed() + lag_steps + 1, which Submitted and Completed check.
// - Work is due only after submitted() or a later step, which ActAfter checks.
// - No step is submitted beyond a ticket's end that all ranks know, and no control word moves that
//   end back (step_order_test.cc: NoStepIsSubmittedBeyondTheTicketThatAllRanksKnow).
//
// Pure: all ranks get the same results of their steps, so they take the same actions after the same
// step.
#ifndef TROUPE_WORKER_EXECUTOR_STEP_ORDER_H_
#define TROUPE_WORKER_EXECUTOR_STEP_ORDER_H_

#include <cstdint>
#include <set>

namespace troupe {

class StepOrder {
 public:
  enum class Move {
    kAgree,     // agree on a ticket's end: every step is completed and none may follow
    kSubmit,    // submit step submitted() + 1
    kComplete,  // wait for the results of step completed() + 1
    kAct,       // do what is due after step submitted(); every step up to it is completed
    kEnd,
  };

  // Starts from the state after `applied_step`; the last step is `last_step`.
  StepOrder(int64_t lag_steps, int64_t applied_step, int64_t last_step)
      : lag_steps_(lag_steps),
        last_step_(last_step),
        submitted_(applied_step),
        completed_(applied_step) {}

  Move Next() const;
  int64_t submitted() const { return submitted_; }
  int64_t completed() const { return completed_; }

  // Each of these REQUIRES that Next() is the corresponding move.
  void Agreed(int64_t ticket_end) { ticket_end_ = ticket_end; }
  // `drains`: every step up to it must be completed before another is submitted.
  void Submitted(bool drains);
  // `ticket_end` comes from the step's control word.
  void Completed(int64_t ticket_end);
  // The work due after submitted() is done; `stops`: no step follows.
  void Acted(bool stops);

  // Schedules work due after `step`. REQUIRES: submitted() <= step.
  void ActAfter(int64_t step);

 private:
  const int64_t lag_steps_;
  const int64_t last_step_;
  int64_t submitted_;
  int64_t completed_;
  int64_t ticket_end_ = 0;  // known to all ranks
  bool drains_ = false;
  bool stops_ = false;
  std::set<int64_t> act_after_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_STEP_ORDER_H_
