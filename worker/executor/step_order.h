// In which order a rank hands the steps of a group epoch to its device, collects what they told, and acts on it.
//
// A step is handed over while up to `lag_steps` before it are not collected yet: the device has it to run when it is done
// with them, and the rank waits for what was before it alone. What all ranks know together after step s, its control word,
// is so read when step s + lag_steps is on its way, and takes effect at a boundary: after the last step that is on its way
// by then, or after one that was known beforehand. A boundary is acted on once every step up to it is collected, and before
// another is handed over.
//
// Pure: all ranks are told the same of their steps, and so do the same after the same step.
#ifndef TROUPE_WORKER_EXECUTOR_STEP_ORDER_H_
#define TROUPE_WORKER_EXECUTOR_STEP_ORDER_H_

#include <cstdint>
#include <set>

namespace troupe {

class StepOrder {
 public:
  enum class Move {
    kAgree,    // on a ticket's end: every step is collected, and none may follow
    kSubmit,   // hand over step submitted() + 1
    kCollect,  // collect step collected() + 1
    kAct,      // do what is due after step submitted(), up to which every step is collected
    kEnd,
  };

  // From the state after `applied_step` on, to `last_step`.
  StepOrder(int64_t lag_steps, int64_t applied_step, int64_t last_step)
      : lag_steps_(lag_steps),
        last_step_(last_step),
        submitted_(applied_step),
        collected_(applied_step) {}

  Move Next() const;
  int64_t submitted() const { return submitted_; }
  int64_t collected() const { return collected_; }

  // Each REQUIRES that Next() is the move in question.
  void Agreed(int64_t ticket_end) { ticket_end_ = ticket_end; }
  // `settles`: it is to be collected before another is handed over.
  void Submitted(bool settles);
  // `ticket_end`: of its control word.
  void Collected(int64_t ticket_end);
  // What was due after submitted() is done; `stops`: no step is to follow.
  void Acted(bool stops);

  // Something is due after `step`. REQUIRES: submitted() <= step.
  void ActAfter(int64_t step);

 private:
  const int64_t lag_steps_;
  const int64_t last_step_;
  int64_t submitted_;
  int64_t collected_;
  int64_t ticket_end_ = 0;  // that all ranks know
  bool settles_ = false;
  bool stops_ = false;
  std::set<int64_t> act_after_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_STEP_ORDER_H_
