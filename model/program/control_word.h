// The control word: the only reduction over all ranks in each step (purpose control). It carries
// the step's metrics and each rank's knowledge of stops, tickets and checkpoints, so that all ranks
// decide identically after the same step.
#ifndef TROUPE_MODEL_PROGRAM_CONTROL_WORD_H_
#define TROUPE_MODEL_PROGRAM_CONTROL_WORD_H_

namespace troupe::model {

// Lanes of the float64 vector. Lanes up to kLastSum are reduced by sum, up to kLastMax by maximum,
// the others by minimum.
enum ControlLane : int {
  kLaneSumOfSquares = 0,  // over gradient elements; exactly one rank counts each global element
  kLaneLoss,              // Σ weight·nll
  kLaneWeight,            // Σ weight
  kLaneTokens,
  kLaneRouted,   // choices of experts in all blocks E
  kLaneDropped,  // routed choices dropped because of a capacity
  kLanePairs,    // query-key pairs visible to attention in all samples
  kLastSum = kLanePairs,
  kLaneStop,  // 1: some rank requests a stop
  // 1 + rank of a non-finite loss or gradient (the highest such rank); 0: none.
  kLaneNonfinite,
  // 1: this or an earlier step was not finite, which ends the job; set by control_halt.
  kLaneHalted,
  kLastMax = kLaneHalted,
  kLaneTicketEnd,       // smallest known ticket end
  kLaneRequestAttempt,  // smallest "highest requested checkpoint attempt known"
  kLaneIntentKnown,     // 1 if every rank knows the intent of the checkpoint due after this step
  kControlLanes,
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_CONTROL_WORD_H_
