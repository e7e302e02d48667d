// Streams between simulated nodes, with the behaviour of a gRPC stream over TCP: bytes arrive whole
// and in order, or not at all. Each end detects a break independently: possibly late, or only when
// that end gives up.
//
// The seed decides the faults: the delay of each message, a break at any message (all later ones
// are lost), a duplicated message (as from a sender that retries without an answer), and link
// directions that carry nothing for a while and then deliver the held messages late.
//
// The actors at the ends receive StreamOpened, StreamData and StreamClosed. StreamClosed is the
// last message of a stream.
#ifndef TROUPE_ACTOR_SIM_NETWORK_H_
#define TROUPE_ACTOR_SIM_NETWORK_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "actor/actor.h"
#include "actor/sim/node.h"
#include "actor/sim/random.h"
#include "actor/sim/trace.h"
#include "base/clock.h"
#include "base/status.h"

namespace troupe {

struct StreamId {
  uint64_t value = 0;
  friend auto operator<=>(StreamId, StreamId) = default;
};

struct StreamOpened {
  static constexpr std::string_view kMessageName = "stream.opened";
  StreamId stream;
  NodeId peer;
};
struct StreamData {
  static constexpr std::string_view kMessageName = "stream.data";
  StreamId stream;
  std::string bytes;
};
struct StreamClosed {
  static constexpr std::string_view kMessageName = "stream.closed";
  StreamId stream;
  Status cause;
};

struct NetworkOptions {
  Duration min_delay = std::chrono::microseconds(50);
  Duration max_delay = std::chrono::milliseconds(2);
  // The time after which a dial into a silent link fails.
  Duration dial_limit = std::chrono::seconds(1);
  // The longest time after which a peer notices a lost host.
  Duration silent_break_limit = std::chrono::seconds(20);
};

// The simulation that a network is part of, which implements this (actor/sim/system.h).
class NetworkHost {
 public:
  virtual ~NetworkHost() = default;

  virtual MonotonicTime Now() const = 0;
  virtual SeededRandom& random() = 0;
  virtual Trace& trace() = 0;
  // Calls `what` after `delay`.
  virtual void Schedule(Duration delay, std::function<void()> what) = 0;
  virtual bool IsUp(NodeId node) const = 0;
  // See Context::Send.
  virtual Status Send(Address to, AnyMessage message) = 0;
  // Like Send, but the actor handles the message now if nothing else waits for it: the network has
  // already decided the order by its delays.
  virtual Status Deliver(Address to, AnyMessage message) = 0;
};

class SimulatedNetwork {
 public:
  // `host` outlives the network.
  SimulatedNetwork(NetworkHost& host, NetworkOptions options);

  // Offers streams dialled to `node` to `acceptor` until the node crashes.
  void Listen(NodeId node, Address acceptor);
  // Opens a stream from `dialer` on `from` to the listener on `to`. The dialer receives
  // StreamOpened, or StreamClosed with UNAVAILABLE.
  StreamId Dial(NodeId from, Address dialer, NodeId to);
  // Sends `bytes` from the end that `from` holds. UNAVAILABLE once that end is closed.
  Status Write(StreamId stream, Address from, std::string bytes);
  // Closes the end that `from` holds: it receives nothing more. The other end receives the bytes
  // sent before, then StreamClosed.
  void Close(StreamId stream, Address from, Status cause);

  // The probabilities per message that its stream breaks there (loss), or that it is duplicated.
  void SetLoss(double probability) { loss_ = probability; }
  void SetDuplication(double probability) { duplication_ = probability; }
  // Adds a delay to each message from or to `node`, uniform in [0, `limit`]; zero removes it.
  void SetSlowness(NodeId node, Duration limit);
  // Stops delivery from `from` to `to`. Calls nest: each Unblock undoes one Block.
  void Block(NodeId from, NodeId to);
  void Unblock(NodeId from, NodeId to);
  // Breaks an open stream between the nodes, if there is one; both ends are notified.
  void BreakBetween(NodeId a, NodeId b);

  // Called by the host when the node has died.
  void NodeCrashed(NodeId node, CrashKind kind);

 private:
  struct Packet {
    MonotonicTime due;
    bool last = false;  // closes the reader's end with `cause`
    std::string bytes;
    Status cause;
  };
  // End 0 is the dialer, end 1 the acceptor. Direction d carries bytes from end d to end 1-d.
  struct Stream {
    NodeId node[2];
    Address end[2];
    bool open[2] = {true, false};
    bool established = false;
    std::deque<Packet> flying[2];
  };

  void Establish(StreamId id);
  void Push(StreamId id, Stream& stream, int direction, Packet packet, Duration delay);
  // Delivers the packets that are due in that direction, unless the link is blocked.
  void Pump(StreamId id, int direction);
  void Break(StreamId id, Stream& stream, const Status& cause);
  void ForgetIfOver(StreamId id);
  Duration Delay(const Stream& stream);
  bool Blocked(NodeId from, NodeId to) const;

  NetworkHost& host_;
  const NetworkOptions options_;
  std::map<StreamId, Stream> streams_;
  uint64_t next_stream_ = 1;
  std::map<NodeId, Address> listeners_;
  std::map<NodeId, Duration> slowness_;
  std::map<std::pair<NodeId, NodeId>, int> blocked_;
  double loss_ = 0;
  double duplication_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_ACTOR_SIM_NETWORK_H_
