// Tagged messages between the ranks of one group epoch: the seam between algorithms and what
// carries their bytes.
//
// Messages from one rank to another with equal tags are received in the order they were sent. Not
// thread-safe: the engine calls everything but Close's own thread under its mutex.
#ifndef TROUPE_COLLECTIVE_TRANSPORT_H_
#define TROUPE_COLLECTIVE_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "collective/link.h"

namespace troupe {

// One message under way. Owned by the caller, who keeps it and its buffer in place until done, or,
// if it was cancelled, until the transport is closed.
struct Transfer {
  bool done = true;
  Status status;     // meaningful once done
  size_t bytes = 0;  // the transport's, as is:
  void* private_data = nullptr;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Where other ranks reach this one: opaque bytes, carried to them by the caller.
  virtual const std::string& address() const = 0;

  // Readies the way to rank `peer`. REQUIRES: once per peer, before messages to it.
  virtual Status Connect(int peer, const std::string& address) = 0;

  // By what messages to `peer` travel. REQUIRES: Connect(peer, …) succeeded.
  virtual Link LinkTo(int peer) const = 0;

  // Begins a message; `transfer->done` may be true on return. A received message of another length
  // than `bytes` fails the transfer.
  virtual void Send(int peer, uint64_t tag, const void* data, size_t bytes, Transfer* transfer) = 0;
  virtual void Receive(int peer, uint64_t tag, void* data, size_t bytes, Transfer* transfer) = 0;

  // Ends a transfer that is not done as well as the transport can; its buffer may be touched until
  // Close.
  virtual void Cancel(Transfer* transfer) = 0;

  // Moves messages on. True if anything happened.
  virtual bool Progress() = 0;

  // Readable when an armed transport has something for Progress.
  virtual int event_descriptor() const = 0;

  // Asks for the next event on event_descriptor(). False if there may be something for Progress
  // already.
  virtual bool Arm() = 0;

  // Gives everything back: no buffer is touched afterwards. With `flush` first waits until what was
  // sent has left. DEADLINE_EXCEEDED if `limit` passes first; the process is then fit only to be
  // ended.
  virtual Status Close(bool flush, Duration limit) = 0;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_TRANSPORT_H_
