// Streams between simulated nodes, as a gRPC stream over TCP behaves: bytes arrive whole and in
// order or not at all; a break is seen by each end on its own, late, or only when that end gives
// up.
//
// What can go wrong, by the seed: delay of each message, a break at any message (all after it is
// lost), a message doubled (as a sender does that repeats what it has no answer for), directions of
// links that carry nothing for a while and then deliver late what they held.
//
// The actors at the ends get StreamOpened, StreamData and StreamClosed. StreamClosed is the last of
// a stream.
#ifndef TROUPE_ACTOR_SIM_NETWORK_H_
#define TROUPE_ACTOR_SIM_NETWORK_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actor/actor.h"
#include "actor/sim/node.h"
#include "base/clock.h"
#include "base/status.h"

namespace troupe {

class SimulatedSystem;

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
  // How long a dial into a silent link takes to fail.
  Duration dial_limit = std::chrono::seconds(1);
  // The longest time after which a peer learns of a lost host.
  Duration silent_break_limit = std::chrono::seconds(20);
};

class SimulatedNetwork {
 public:
  SimulatedNetwork(SimulatedSystem& system, NetworkOptions options);

  // Streams dialled to `node` are offered to `acceptor` until the node crashes.
  void Listen(NodeId node, Address acceptor);
  // Opens a stream from `dialer` on `from` to whoever listens on `to`. The dialer gets
  // StreamOpened, or StreamClosed with UNAVAILABLE.
  StreamId Dial(NodeId from, Address dialer, NodeId to);
  // Sends `bytes` from the end that `from` holds. UNAVAILABLE once that end is closed.
  Status Write(StreamId stream, Address from, std::string bytes);
  // Closes the end that `from` holds: it gets nothing more; the other end gets what was sent
  // before, then StreamClosed.
  void Close(StreamId stream, Address from, Status cause);

  // Chance for each message that its stream breaks there; that it is doubled.
  void SetLoss(double probability) { loss_ = probability; }
  void SetDuplication(double probability) { duplication_ = probability; }
  // Extra delay of each message from or to `node`, uniform up to `limit`; zero ends it.
  void SetSlowness(NodeId node, Duration limit);
  // From now on `from` → `to` carries nothing; calls nest, each Unblock undoes one.
  void Block(NodeId from, NodeId to);
  void Unblock(NodeId from, NodeId to);
  // Breaks an open stream between the nodes, if there is one; both ends learn of it.
  void BreakBetween(NodeId a, NodeId b);

  // For the system: the node died.
  void NodeCrashed(NodeId node, CrashKind kind);

 private:
  struct Packet {
    MonotonicTime due;
    bool last = false;  // closes the reader's end with `cause`
    std::string bytes;
    Status cause;
  };
  // End 0 dialled, end 1 accepted. Direction d carries from end d to end 1-d.
  struct Stream {
    NodeId node[2];
    Address end[2];
    bool open[2] = {true, false};
    bool established = false;
    std::deque<Packet> flying[2];
  };

  void Establish(StreamId id);
  void Push(StreamId id, Stream& stream, int direction, Packet packet, Duration delay);
  // Delivers what is due in that direction, unless the link is blocked.
  void Pump(StreamId id, int direction);
  void Break(StreamId id, Stream& stream, const Status& cause);
  void ForgetIfOver(StreamId id);
  Duration Delay(const Stream& stream);
  bool Blocked(NodeId from, NodeId to) const;

  SimulatedSystem& system_;
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
