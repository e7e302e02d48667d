// The control word: the one reduction over all ranks in each step (purpose control). It carries the numbers of the
// step and what every rank knows of stops, tickets and checkpoints, so that all act alike after the same step.
#ifndef TROUPE_MODEL_PROGRAM_CONTROL_WORD_H_
#define TROUPE_MODEL_PROGRAM_CONTROL_WORD_H_

namespace troupe::model {

// Lanes of the float64 vector. Reduced by sum up to kLastSum, by maximum up to kLastMax, by minimum after it.
enum ControlLane : int {
  kLaneSumOfSquares = 0,   // of gradient elements; every global element counted by exactly one rank
  kLaneLoss,               // Σ weight·nll
  kLaneWeight,             // Σ weight
  kLaneTokens,
  kLaneRouted,             // choices of experts, of all blocks E
  kLaneDropped,            // those of them that were beyond a capacity
  kLanePairs,              // query-key pairs that attention sees in all samples
  kLastSum = kLanePairs,
  kLaneStop,               // 1: some rank asks to stop
  kLaneNonfinite,          // 1 + rank of a non-finite loss or gradient (the highest such rank), 0: none
  kLaneHalted,             // 1: this or an earlier step was not finite, which ends the job; set by control_halt
  kLastMax = kLaneHalted,
  kLaneTicketEnd,          // smallest known ticket end
  kLaneRequestAttempt,     // smallest "highest asked-for checkpoint attempt known"
  kLaneIntentKnown,        // 1 where every rank knows the intent of the checkpoint due after this step
  kControlLanes,
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_CONTROL_WORD_H_
