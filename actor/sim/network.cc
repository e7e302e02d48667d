#include "actor/sim/network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace troupe {
namespace {

constexpr Duration kRetryFullMailbox = std::chrono::milliseconds(1);

}  // namespace

SimulatedNetwork::SimulatedNetwork(NetworkHost& host, NetworkOptions options)
    : host_(host), options_(options) {}

void SimulatedNetwork::Listen(NodeId node, Address acceptor) {
  // A handler that continues after its node crashed must not listen.
  if (host_.IsUp(node)) listeners_[node] = acceptor;
}

bool SimulatedNetwork::Blocked(NodeId from, NodeId to) const {
  return !blocked_.empty() && blocked_.contains({from, to});
}

Duration SimulatedNetwork::Delay(const Stream& stream) {
  Duration delay = host_.random().Between(options_.min_delay, options_.max_delay);
  if (slowness_.empty()) return delay;
  for (const NodeId node : stream.node) {
    const auto slow = slowness_.find(node);
    if (slow != slowness_.end()) delay += host_.random().Between(Duration(0), slow->second);
  }
  return delay;
}

StreamId SimulatedNetwork::Dial(NodeId from, Address dialer, NodeId to) {
  const StreamId id{next_stream_++};
  if (!host_.IsUp(from)) return id;
  Stream& stream = streams_[id];
  stream.node[0] = from;
  stream.node[1] = to;
  stream.end[0] = dialer;
  const bool silent = Blocked(from, to) || Blocked(to, from);
  host_.Schedule(silent ? options_.dial_limit : Delay(stream), [this, id] { Establish(id); });
  return id;
}

void SimulatedNetwork::Establish(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  if (!stream.open[0]) {
    streams_.erase(found);
    return;
  }
  const auto listener = listeners_.find(stream.node[1]);
  if (Blocked(stream.node[0], stream.node[1]) || Blocked(stream.node[1], stream.node[0]) ||
      listener == listeners_.end()) {
    const Address dialer = stream.end[0];
    streams_.erase(found);
    // If the dialer has ended meanwhile, there is nobody to notify.
    host_.Deliver(dialer, AnyMessage(StreamClosed{id, Unavailable("connection refused")}))
        .IgnoreError();
    return;
  }
  stream.end[1] = listener->second;
  stream.open[1] = true;
  stream.established = true;
  const Address dialer = stream.end[0];
  const NodeId nodes[2] = {stream.node[0], stream.node[1]};
  // Use mailboxes, not Deliver: a handler may close or write while this stream is being
  // established.
  if (!host_.Send(stream.end[1], AnyMessage(StreamOpened{id, nodes[0]})).ok()) {
    stream.open[1] = false;
    Break(id, stream, ResourceExhausted("the acceptor's mailbox is full"));
  }
  host_.Send(dialer, AnyMessage(StreamOpened{id, nodes[1]})).IgnoreError();
}

Status SimulatedNetwork::Write(StreamId id, Address from, std::string bytes) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return Unavailable("stream {} is closed", id.value);
  Stream& stream = found->second;
  const int direction = stream.end[0] == from ? 0 : 1;
  TROUPE_CHECK(stream.end[direction] == from, "stream {} has no end at actor {}", id.value,
               from.value);
  if (!stream.established || !stream.open[direction]) {
    return Unavailable("stream {} is closed", id.value);
  }
  if (loss_ > 0 && host_.random().Chance(loss_)) {
    host_.trace().Record(host_.Now(), "loss", id.value, "stream", direction);
    Break(id, stream, Unavailable("connection reset"));
    return OkStatus();
  }
  const bool twice = duplication_ > 0 && host_.random().Chance(duplication_);
  const Duration delay = Delay(stream);
  if (twice) Push(id, stream, direction, {.bytes = bytes}, delay);
  Push(id, stream, direction, {.bytes = std::move(bytes)}, delay);
  return OkStatus();
}

void SimulatedNetwork::Push(StreamId id, Stream& stream, int direction, Packet packet,
                            Duration delay) {
  auto& flying = stream.flying[direction];
  packet.due = host_.Now() + delay;
  if (!flying.empty()) packet.due = std::max(packet.due, flying.back().due);
  const Duration wait = packet.due - host_.Now();
  flying.push_back(std::move(packet));
  host_.Schedule(wait, [this, id, direction] { Pump(id, direction); });
}

void SimulatedNetwork::Pump(StreamId id, int direction) {
  for (;;) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    Stream& stream = found->second;
    auto& flying = stream.flying[direction];
    if (flying.empty()) break;
    if (flying.front().due > host_.Now()) return;
    if (Blocked(stream.node[direction], stream.node[1 - direction])) return;  // Unblock pumps again
    const int reader = 1 - direction;
    const Address to = stream.end[reader];
    if (!stream.open[reader]) {
      flying.clear();
      break;
    }
    if (flying.front().last) {
      // The reader's end closes before it handles the message, so its later writes are discarded.
      stream.open[reader] = false;
      const Status sent = host_.Send(to, AnyMessage(StreamClosed{id, flying.front().cause}));
      if (sent.code() == StatusCode::kResourceExhausted) {
        stream.open[reader] = true;
        host_.Schedule(kRetryFullMailbox, [this, id, direction] { Pump(id, direction); });
        return;
      }
      flying.clear();
      break;
    }
    host_.trace().Fold(HashBytes(flying.front().bytes));
    // If the mailbox is full, the packet stays in the queue and the stream waits (backpressure).
    // Moved out first, since the reader may write, close or crash while it handles the packet.
    Packet packet = std::move(flying.front());
    flying.pop_front();
    Status sent = host_.Deliver(to, AnyMessage(StreamData{id, packet.bytes}));
    if (sent.code() == StatusCode::kResourceExhausted) {
      flying.push_front(std::move(packet));
      host_.Schedule(kRetryFullMailbox, [this, id, direction] { Pump(id, direction); });
      return;
    }
  }
  ForgetIfOver(id);
}

void SimulatedNetwork::Close(StreamId id, Address from, Status cause) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  const int direction = stream.end[0] == from ? 0 : 1;
  if (stream.end[direction] != from || !stream.open[direction]) return;
  stream.open[direction] = false;
  if (stream.established) {
    Push(id, stream, direction, {.last = true, .cause = std::move(cause)}, Delay(stream));
  }
}

void SimulatedNetwork::Break(StreamId id, Stream& stream, const Status& cause) {
  for (int direction = 0; direction < 2; ++direction) {
    if (stream.open[1 - direction]) {
      Push(id, stream, direction, {.last = true, .cause = cause}, Delay(stream));
    }
  }
}

void SimulatedNetwork::ForgetIfOver(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const Stream& stream = found->second;
  if (stream.established && !stream.open[0] && !stream.open[1] && stream.flying[0].empty() &&
      stream.flying[1].empty()) {
    streams_.erase(found);
  }
}

void SimulatedNetwork::BreakBetween(NodeId a, NodeId b) {
  for (auto& [id, stream] : streams_) {
    if (stream.established && (stream.open[0] || stream.open[1]) &&
        ((stream.node[0] == a && stream.node[1] == b) ||
         (stream.node[0] == b && stream.node[1] == a))) {
      Break(id, stream, Unavailable("connection reset"));
    }
  }
}

void SimulatedNetwork::SetSlowness(NodeId node, Duration limit) {
  if (limit > Duration(0)) {
    slowness_[node] = limit;
  } else {
    slowness_.erase(node);
  }
}

void SimulatedNetwork::Block(NodeId from, NodeId to) { ++blocked_[{from, to}]; }

void SimulatedNetwork::Unblock(NodeId from, NodeId to) {
  const auto blocked = blocked_.find({from, to});
  TROUPE_CHECK(blocked != blocked_.end(), "{} → {} is not blocked", from.value, to.value);
  if (--blocked->second > 0) return;
  blocked_.erase(blocked);
  for (const auto& [id, stream] : streams_) {
    for (int direction = 0; direction < 2; ++direction) {
      if (stream.node[direction] == from && stream.node[1 - direction] == to &&
          !stream.flying[direction].empty()) {
        host_.Schedule(Delay(stream), [this, id = id, direction] { Pump(id, direction); });
      }
    }
  }
}

void SimulatedNetwork::NodeCrashed(NodeId node, CrashKind kind) {
  listeners_.erase(node);
  std::vector<StreamId> over;
  for (auto& [id, stream] : streams_) {
    for (int end = 0; end < 2; ++end) {
      if (stream.node[end] != node || !stream.open[end]) continue;
      stream.open[end] = false;
      stream.flying[1 - end].clear();
      if (!stream.established) {
        over.push_back(id);
        continue;
      }
      // Bytes that the dead process had written may still arrive, or a reset overtakes them.
      if (kind == CrashKind::kHost || host_.random().Chance(0.5)) stream.flying[end].clear();
      const Duration delay = kind == CrashKind::kProcess
                                 ? Delay(stream)
                                 : host_.random().Between(Duration(0), options_.silent_break_limit);
      Push(id, stream, end, {.last = true, .cause = Unavailable("connection reset")}, delay);
    }
  }
  for (const StreamId id : over) streams_.erase(id);
}

}  // namespace troupe
