#include "collective/loopback/loopback_transport.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <span>
#include <utility>

#include "base/check.h"
#include "collective/event_descriptor.h"

namespace troupe {
namespace collective_internal {

// Longer messages stay in the sender's buffer until they are received.
constexpr size_t kEagerBytes = size_t{8} * 1024;

struct Message {
  int from = 0;
  uint64_t tag = 0;
  const void* data = nullptr;
  size_t bytes = 0;
  std::vector<std::byte> copy;   // an eager message's own bytes; `data` points here
  Transfer* transfer = nullptr;  // the sender's transfer; null for an eager message
  int to = 0;
  std::atomic<bool> delivered = false;
  MonotonicTime due;  // delivery time in a fabric with delay
};

struct PostedReceive {
  int from = 0;
  uint64_t tag = 0;
  void* data = nullptr;
  size_t bytes = 0;
  Transfer* transfer = nullptr;
  Status status;
};

// Messages sent to one rank and the receives that it has posted.
struct Mailbox {
  std::mutex mutex;
  std::list<std::shared_ptr<Message>> in_flight;  // in a fabric with delay, by due time
  std::list<std::shared_ptr<Message>> unexpected;
  std::list<PostedReceive> posted;
  std::vector<PostedReceive> completed;  // filled by senders; the owner's Progress completes them
  bool armed = false;
  bool closed = false;
  EventDescriptor event;

  // Signals the event if armed. REQUIRES: `mutex` is held.
  void Notify() {
    if (armed) event.Signal();
    armed = false;
  }
};

namespace {

Status Deliver(const void* data, size_t bytes, const PostedReceive& receive) {
  if (bytes != receive.bytes) {
    return Internal("rank {} sent {} bytes where {} were expected", receive.from, bytes,
                    receive.bytes);
  }
  if (bytes > 0) std::memcpy(receive.data, data, bytes);
  return OkStatus();
}

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(int rank, Duration delay, std::vector<std::shared_ptr<Mailbox>> mailboxes)
      : rank_(rank),
        delay_(delay),
        address_(fmt::format("loopback:{}", rank)),
        mailboxes_(std::move(mailboxes)),
        own_(*mailboxes_[static_cast<size_t>(rank)]) {}

  ~LoopbackTransport() override { Shut(); }

  const std::string& address() const override { return address_; }

  Status Connect(int peer, const std::string& address) override {
    if (address != fmt::format("loopback:{}", peer)) {
      return InvalidArgument("address '{}' of rank {} is not 'loopback:{}'", address, peer, peer);
    }
    return OkStatus();
  }

  Link LinkTo(int) const override { return {LinkKind::kProcessMemory, ""}; }

  void Send(int peer, uint64_t tag, const void* data, size_t bytes, Transfer* transfer) override {
    Mailbox& box = *mailboxes_[static_cast<size_t>(peer)];
    *transfer = Transfer{};
    if (delay_ > Duration::zero())
      return SendDelayed(box, peer, tag, {static_cast<const std::byte*>(data), bytes});
    std::lock_guard lock(box.mutex);
    const auto match = std::find_if(
        box.posted.begin(), box.posted.end(),
        [&](const PostedReceive& posted) { return posted.from == rank_ && posted.tag == tag; });
    if (match != box.posted.end()) {
      match->status = Deliver(data, bytes, *match);
      box.completed.push_back(std::move(*match));
      box.posted.erase(match);
      box.Notify();
      return;
    }
    auto message = std::make_shared<Message>();
    message->from = rank_;
    message->to = peer;
    message->tag = tag;
    message->bytes = bytes;
    if (bytes <= kEagerBytes) {
      const auto* begin = static_cast<const std::byte*>(data);
      message->copy.assign(begin, begin + bytes);
      message->data = message->copy.data();
    } else {
      message->data = data;
      message->transfer = transfer;
      transfer->done = false;
      sending_.push_back(message);
    }
    // A closed peer behaves like a dead one: the sender is not notified, as over shared memory.
    if (!box.closed) box.unexpected.push_back(std::move(message));
  }

  void Receive(int peer, uint64_t tag, void* data, size_t bytes, Transfer* transfer) override {
    *transfer = Transfer{};
    std::shared_ptr<Message> message;
    {
      PostedReceive receive{
          .from = peer, .tag = tag, .data = data, .bytes = bytes, .transfer = transfer};
      std::lock_guard lock(own_.mutex);
      const auto match = std::find_if(
          own_.unexpected.begin(), own_.unexpected.end(),
          [&](const auto& candidate) { return candidate->from == peer && candidate->tag == tag; });
      if (match == own_.unexpected.end()) {
        transfer->done = false;
        own_.posted.push_back(std::move(receive));
        return;
      }
      message = std::move(*match);
      own_.unexpected.erase(match);
      transfer->status = Deliver(message->data, message->bytes, receive);
      message->delivered.store(true, std::memory_order_release);
    }
    if (message->transfer != nullptr) {
      Mailbox& sender = *mailboxes_[static_cast<size_t>(peer)];
      std::lock_guard lock(sender.mutex);
      sender.Notify();
    }
  }

  void Cancel(Transfer* transfer) override {
    if (transfer->done) return;
    {
      std::lock_guard lock(own_.mutex);
      own_.posted.remove_if(
          [&](const PostedReceive& posted) { return posted.transfer == transfer; });
      std::erase_if(own_.completed,
                    [&](const PostedReceive& posted) { return posted.transfer == transfer; });
    }
    std::erase_if(sending_, [&](const std::shared_ptr<Message>& message) {
      if (message->transfer != transfer) return false;
      Withdraw(message);
      return true;
    });
    transfer->done = true;
    transfer->status = Cancelled("transfer cancelled");
  }

  bool Progress() override {
    std::vector<PostedReceive> completed;
    {
      std::lock_guard lock(own_.mutex);
      if (!own_.in_flight.empty()) DeliverDue();
      completed.swap(own_.completed);
    }
    for (PostedReceive& receive : completed) {
      receive.transfer->status = std::move(receive.status);
      receive.transfer->done = true;
    }
    const size_t sent = std::erase_if(sending_, [](const std::shared_ptr<Message>& message) {
      if (!message->delivered.load(std::memory_order_acquire)) return false;
      message->transfer->done = true;
      return true;
    });
    return !completed.empty() || sent > 0;
  }

  int event_descriptor() const override { return own_.event.get(); }

  bool Arm() override {
    std::lock_guard lock(own_.mutex);
    // No event is signalled when a delayed message becomes due, so the owner must poll.
    if (!own_.completed.empty() || !own_.in_flight.empty()) return false;
    for (const auto& message : sending_) {
      if (message->delivered.load(std::memory_order_acquire)) return false;
    }
    own_.event.Drain();
    own_.armed = true;
    return true;
  }

  Status Close(bool, Duration) override {
    Shut();
    return OkStatus();
  }

 private:
  // The sender's buffer is free at once, as if a link had taken the message.
  void SendDelayed(Mailbox& box, int peer, uint64_t tag, std::span<const std::byte> bytes) {
    auto message = std::make_shared<Message>();
    message->from = rank_;
    message->to = peer;
    message->tag = tag;
    message->bytes = bytes.size();
    message->copy.assign(bytes.begin(), bytes.end());
    message->data = message->copy.data();
    message->due = std::chrono::steady_clock::now() + delay_;
    std::lock_guard lock(box.mutex);
    if (box.closed) return;
    box.in_flight.push_back(std::move(message));
    box.Notify();
  }

  // Delivers the messages to this rank that are due. REQUIRES: own_.mutex is held.
  void DeliverDue() {
    const MonotonicTime now = std::chrono::steady_clock::now();
    while (!own_.in_flight.empty() && own_.in_flight.front()->due <= now) {
      const std::shared_ptr<Message> message = std::move(own_.in_flight.front());
      own_.in_flight.pop_front();
      const auto match =
          std::find_if(own_.posted.begin(), own_.posted.end(), [&](const PostedReceive& posted) {
            return posted.from == message->from && posted.tag == message->tag;
          });
      if (match == own_.posted.end()) {
        own_.unexpected.push_back(message);
        continue;
      }
      match->status = Deliver(message->data, message->bytes, *match);
      own_.completed.push_back(std::move(*match));
      own_.posted.erase(match);
    }
  }

  // Afterwards nobody reads the message's data: a delivery holds the same mutex while it copies.
  void Withdraw(const std::shared_ptr<Message>& message) {
    Mailbox& box = *mailboxes_[static_cast<size_t>(message->to)];
    std::lock_guard lock(box.mutex);
    box.unexpected.remove(message);
  }

  void Shut() {
    for (const auto& message : sending_) Withdraw(message);
    sending_.clear();
    std::lock_guard lock(own_.mutex);
    own_.closed = true;
    own_.posted.clear();
    own_.completed.clear();
    own_.unexpected.clear();
    own_.in_flight.clear();
  }

  const int rank_;
  const Duration delay_;
  const std::string address_;
  const std::vector<std::shared_ptr<Mailbox>> mailboxes_;
  Mailbox& own_;
  std::vector<std::shared_ptr<Message>> sending_;  // not delivered yet
};

}  // namespace
}  // namespace collective_internal

LoopbackFabric::LoopbackFabric(int ranks, Duration delay) : delay_(delay) {
  for (int i = 0; i < ranks; ++i)
    mailboxes_.push_back(std::make_shared<collective_internal::Mailbox>());
}

LoopbackFabric::~LoopbackFabric() = default;

std::unique_ptr<Transport> LoopbackFabric::MakeTransport(int rank) {
  TROUPE_CHECK(rank >= 0 && static_cast<size_t>(rank) < mailboxes_.size(), "rank {}", rank);
  return std::make_unique<collective_internal::LoopbackTransport>(rank, delay_, mailboxes_);
}

}  // namespace troupe
