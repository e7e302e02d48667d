// Stands in for the session actor in tests: owns actors and keeps the events that they report.
#ifndef TROUPE_WORKER_DAEMON_TESTING_SESSION_PROBE_H_
#define TROUPE_WORKER_DAEMON_TESTING_SESSION_PROBE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "actor/system.h"
#include "base/check.h"
#include "worker/daemon/actor_gate.h"
#include "worker/daemon/event_sender.h"

namespace troupe {

// Keeps events and ends of actors until the test asks for them. Thread-safe.
class EventLog {
 public:
  static constexpr auto kLimit = std::chrono::seconds(60);

  // Returns OK for SessionEvents, as a mailbox that is never full.
  Status Accept(AnyMessage message) {
    auto* const events = message.As<SessionEvents>();
    if (events == nullptr) return Internal("received {}", message.name());
    const std::lock_guard lock(mutex_);
    for (SessionEvent& event : *events->events) events_.push_back(std::move(event));
    changed_.notify_all();
    return OkStatus();
  }
  void AcceptEnd(const Status& cause) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(cause);
    changed_.notify_all();
  }

  // Returns the oldest event; fails the test if there is none in time.
  SessionEvent Next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kLimit, [this] { return !events_.empty(); })) {
      ADD_FAILURE() << "no event";
      return {};
    }
    SessionEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  // The same for an event of type `What`.
  template <typename What>
  What NextOf() {
    SessionEvent event = Next();
    if (auto* const what = std::get_if<What>(&event.what)) return std::move(*what);
    ADD_FAILURE() << "another event: " << event.what.index();
    return {};
  }
  // Returns the cause of the oldest end of an actor.
  Status NextEnd() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kLimit, [this] { return !ends_.empty(); })) {
      ADD_FAILURE() << "no actor ended";
      return OkStatus();
    }
    Status cause = ends_.front();
    ends_.pop_front();
    return cause;
  }
  size_t size() {
    const std::lock_guard lock(mutex_);
    return events_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SessionEvent> events_;
  std::deque<Status> ends_;
};

class SessionProbe {
 public:
  // With `threads` 1 no other actor runs while the probe is held.
  explicit SessionProbe(size_t capacity = 1024, int threads = 2)
      : system_(std::make_unique<ActorSystem>(clock_, ActorSystemOptions{.threads = threads})),
        gate_(std::make_shared<ActorGate>(system_.get())) {
    const StatusOr<Address> address =
        system_->Spawn("probe", std::make_unique<Probe>(*this), {.mailbox_capacity = capacity});
    TROUPE_CHECK_OK(address.status());
    address_ = *address;
  }
  ~SessionProbe() { End(); }

  const std::shared_ptr<ActorGate>& gate() const { return gate_; }
  Address address() const { return address_; }
  EventLog& log() { return log_; }

  // Spawns a child of the probe.
  Address Own(std::unique_ptr<Actor> actor, size_t capacity = 16) {
    const auto address = std::make_shared<std::promise<Address>>();
    TROUPE_CHECK_OK(Send(address_, OwnActor{std::move(actor), capacity, address}));
    return address->get_future().get();
  }
  template <typename Body>
  Status Send(Address to, Body body) {
    return gate_->Send(to, AnyMessage(std::move(body)));
  }

  // Keeps the probe in a handler until Release, so that its mailbox fills. Returns once it is
  // there.
  void Hold() {
    const auto entered = std::make_shared<std::promise<void>>();
    TROUPE_CHECK_OK(Send(address_, HoldProbe{entered, release_.emplace().get_future().share()}));
    entered->get_future().wait();
  }
  void Release() { release_->set_value(), release_.reset(); }

  void End() {
    if (release_) Release();
    gate_->Close();
    system_.reset();
  }

 private:
  struct OwnActor {
    static constexpr std::string_view kMessageName = "probe.own";
    std::unique_ptr<Actor> actor;
    size_t capacity = 0;
    std::shared_ptr<std::promise<Address>> address;
  };
  struct HoldProbe {
    static constexpr std::string_view kMessageName = "probe.hold";
    std::shared_ptr<std::promise<void>> entered;
    std::shared_future<void> release;
  };

  class Probe final : public Actor {
   public:
    explicit Probe(SessionProbe& probe) : probe_(probe) {}
    Status Handle(AnyMessage message, Context& context) override {
      if (auto* own = message.As<OwnActor>()) {
        const StatusOr<Address> child =
            context.Spawn("child", std::move(own->actor), {.mailbox_capacity = own->capacity});
        TROUPE_CHECK_OK(child.status());
        own->address->set_value(*child);
        return OkStatus();
      }
      if (auto* hold = message.As<HoldProbe>()) {
        hold->entered->set_value();
        hold->release.wait();
        return OkStatus();
      }
      return probe_.log_.Accept(std::move(message));
    }
    Status HandleEnd(Address, const Status& cause, Context&) override {
      probe_.log_.AcceptEnd(cause);
      return OkStatus();
    }

   private:
    SessionProbe& probe_;
  };

  SystemClock clock_;
  EventLog log_;
  std::optional<std::promise<void>> release_;
  std::unique_ptr<ActorSystem> system_;
  std::shared_ptr<ActorGate> gate_;
  Address address_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_TESTING_SESSION_PROBE_H_
