// A stage program prepared for a device: every op is resolved to a kernel and every value to an
// address, so that a run does no allocation, no map lookup and no string operation.
//
// Protocol:
//   1. Backend::Prepare makes it. It allocates all memory and communicates with no other rank.
//   2. AddLink once per pipeline link, then Connect once, after the host network is connected.
//      Connect is collective.
//   3. Write fills parameters and optimizer states, then RunInitialize makes the values that are
//      derived from them.
//   4. A step has two parts, in this order:
//        BeginPart(kGradients), Write of inputs, Run of pieces, transfers, EndPart
//        BeginPart(kUpdate), Write of the control word, RunUpdate, EndPart
//      Between BeginPart and EndPart only Run, RunUpdate, Write, Copy, Send, WaitSend, PostReceive
//      and Receive are allowed. A part makes the same calls in every step, with other bytes to
//      write, and waits for each transfer that it starts. A backend may record the calls from the
//      first step on and submit them to its device as one graph in EndPart, or let pieces wait
//      until the update has been called.
//   5. On an asynchronous device EndPart returns before the part completes. A step's results are
//      read without blocking by DelayedRead: Start after EndPart of the update, Finish when the
//      host needs them. Further steps may be submitted in between.
//   6. Outside of parts every call is allowed. Run, RunUpdate, Write, Copy and transfers then take
//      effect one by one, in the order of the calls. Finish blocks until all of them are done; call
//      it before the host waits for other ranks, which may need data that this rank's device has
//      not sent yet.
//   7. After an error it can only be destroyed. Delayed reads and pinned memory are destroyed
//      before it.
// One thread at a time may use it; ReadPart and CurrentOperation may be called from any thread.
#ifndef TROUPE_KERNELS_BACKEND_EXECUTABLE_H_
#define TROUPE_KERNELS_BACKEND_EXECUTABLE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "kernels/backend/delayed_read.h"
#include "kernels/backend/stage_transfers.h"
#include "kernels/backend/value_memory.h"
#include "model/program/program.h"

namespace troupe::kernels {

struct RunOptions {
  bool first_microbatch = false;  // accumulators are overwritten by their first writer
  // True for the last microbatch of a step; collectives that run once per step start in it.
  bool last_microbatch = false;
  bool evaluate = false;  // skips operations that only the derivative needs
  // Restricts the run to operations [first_op, end_op) of the piece. Successive runs of a piece on
  // a buffer must be in order and without gaps; runs of pieces of other chunks may come in between.
  int first_op = 0;
  int end_op = std::numeric_limits<int>::max();
};

// Is notified of each operation that has run.
class OperationObserver {
 public:
  virtual ~OperationObserver() = default;
  // Called after `op` of the program ran on `buffer`, in the thread that runs it. `name` is the
  // kind and value as in reports; it lives as long as the executable.
  virtual void Ran(const model::Op& op, const char* name, int buffer) = 0;
};

// The two parts of a rank's work in a step: the summed gradients of all microbatches, then the
// update.
enum class StepPart : uint8_t { kGradients, kUpdate };
inline constexpr int kStepParts = 2;

// Counts of an executable's work on its device; absent on a host backend.
struct DeviceCalls {
  // Number of times that a call has blocked on the device, delayed reads excluded.
  std::optional<int64_t> host_waits;
  // Number of graph launches; a graph holds a whole part of a step.
  std::optional<int64_t> graph_launches;
};

class Executable : public ValueMemory, public StageTransfers {
 public:
  // Connects the device communicators, if any. Collective; call after the host network is
  // connected.
  virtual Status Connect() = 0;

  // Begin and end a part of a step (4 above).
  virtual Status BeginPart(StepPart part) = 0;
  virtual Status EndPart() = 0;

  // Runs the ops of one piece on one buffer (0 <= buffer < memory_plan.buffers[chunk_index]).
  // Update and initialize have their own functions. If a collective fails, the returned Status
  // names the op.
  virtual Status Run(int chunk_index, model::Piece piece, int buffer,
                     const RunOptions& options) = 0;
  // Does what Prepare has left to do for a run with these arguments, on a device with a compiler. A
  // rank calls it before its first step for the runs of parts of a piece; those of whole pieces,
  // evaluations included, are prepared.
  virtual Status PrepareRun(int chunk_index, model::Piece piece, const RunOptions& options) {
    (void)chunk_index, (void)piece, (void)options;
    return OkStatus();
  }
  virtual Status RunUpdate() = 0;
  virtual Status RunInitialize() = 0;

  // Blocks until all earlier calls are done, including the transfers that were waited for.
  // REQUIRES: not within a part.
  virtual Status Finish() = 0;

  // Makes a delayed read of these persistent values. Each of several delayed reads keeps the
  // results of its own Start.
  virtual StatusOr<std::unique_ptr<DelayedRead>> MakeDelayedRead(
      std::vector<ValueBytes> values) = 0;

  // Notifies `observer` of every operation from now on; null stops the notifications.
  virtual void Observe(OperationObserver* observer) = 0;
  // Whether sums of gradients can be read after a step.
  virtual bool keeps_gradients() const { return true; }
  // Whether a step can be run again with an observer that reads the outputs of each operation. On a
  // device with a compiler they are inside of a program, and other programs would take long to
  // make.
  virtual bool can_inspect_operations() const { return true; }
  virtual DeviceCalls device_calls() const = 0;
  // Name of the op that runs now or ran last, for crash reports.
  virtual const char* CurrentOperation() const = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_EXECUTABLE_H_
