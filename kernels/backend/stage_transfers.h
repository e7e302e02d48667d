// Transfers of values between neighbouring pipeline stages, over directed pipeline links.
//
// A link is a group of two ranks: rank 0 sends and rank 1 receives, and the n-th Send of a link
// matches its n-th receive. Calls take effect in the order in which they are made, at once or
// later; only a backend that computes in host memory blocks within these calls. One thread at a
// time may use it.
#ifndef TROUPE_KERNELS_BACKEND_STAGE_TRANSFERS_H_
#define TROUPE_KERNELS_BACKEND_STAGE_TRANSFERS_H_

#include "base/status.h"
#include "collective/communicator.h"
#include "model/program/program.h"

namespace troupe::kernels {

class StageTransfers {
 public:
  virtual ~StageTransfers() = default;

  // Registers `link` for the functions below. REQUIRES: before Executable::Connect, which connects
  // to the other rank's device.
  virtual Status AddLink(Communicator& link) = 0;

  // Enqueues a send of the value, as it is after all earlier calls. Later calls may overlap with
  // the send; they must not write the value before WaitSend.
  virtual Status Send(model::ValueId value, int buffer, Communicator& link) = 0;

  // Orders all later calls after the last Send of the value.
  virtual Status WaitSend(model::ValueId value, int buffer) = 0;

  // Allows the value to be received from now on; nothing may access it until Receive.
  virtual Status PostReceive(model::ValueId value, int buffer, Communicator& link) = 0;

  // Makes the received value available to all later calls. Completes the posted receive, or starts
  // a receive if none was posted.
  virtual Status Receive(model::ValueId value, int buffer, Communicator& link) = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_STAGE_TRANSFERS_H_
