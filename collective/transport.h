// Tagged messages between the ranks of one group epoch: the interface between algorithms and the
// transport of their bytes.
//
// Messages from one rank to another with equal tags are received in the order sent. Not
// thread-safe: the engine makes all calls under its mutex; only Close uses a thread of its own.
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

// One message in flight. The caller owns it and must keep it and its buffer in place until done,
// or, if it was cancelled, until the transport is closed.
struct Transfer {
  bool done = true;
  Status status;     // valid once done
  size_t bytes = 0;  // for the transport's use, like private_data
  void* private_data = nullptr;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // The address at which other ranks reach this one: opaque bytes, delivered to them by the caller.
  virtual const std::string& address() const = 0;

  // Prepares the connection to rank `peer`. REQUIRES: called once per peer, before messages to it.
  virtual Status Connect(int peer, const std::string& address) = 0;

  // The kind of link to `peer`. REQUIRES: Connect(peer, …) succeeded.
  virtual Link LinkTo(int peer) const = 0;

  // Begins a message; `transfer->done` may be true on return. A received message whose length is
  // not `bytes` fails the transfer.
  virtual void Send(int peer, uint64_t tag, const void* data, size_t bytes, Transfer* transfer) = 0;
  virtual void Receive(int peer, uint64_t tag, void* data, size_t bytes, Transfer* transfer) = 0;

  // Cancels an unfinished transfer as far as the transport can; its buffer may be accessed until
  // Close.
  virtual void Cancel(Transfer* transfer) = 0;

  // Advances messages. True if anything happened.
  virtual bool Progress() = 0;

  // Readable when an armed transport has work for Progress.
  virtual int event_descriptor() const = 0;

  // Requests the next event on event_descriptor(). False if there may be work for Progress already.
  virtual bool Arm() = 0;

  // Releases all resources: no buffer is accessed afterwards. With `flush` it first waits until the
  // messages sent have left. DEADLINE_EXCEEDED if `limit` passes first; the process must then be
  // ended.
  virtual Status Close(bool flush, Duration limit) = 0;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_TRANSPORT_H_
