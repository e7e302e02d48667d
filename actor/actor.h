// An actor owns its state and handles one message at a time. It never touches wall clock, threads,
// randomness, sockets or files itself: it gets them from its Context, or through seams (Store, a
// stream) that whoever builds it passes in. So the same actor runs on the thread pool
// (actor/system.h) and, bit for bit repeatable, on virtual time (actor/sim/system.h).
//
// The habit of this codebase: decisions are a pure `Step(State&, Event) → Effects` beside the
// actor; the actor is the shell that turns messages into events and performs the effects in their
// stated order, durable before sent.
//
// Supervision: who spawns an actor owns it and learns of its end with a cause. When an actor ends,
// its children are stopped first, and its end is reported after theirs. A failed child that its
// owner does not handle ends the owner with the same cause, and so on up to a root, whose end is
// reported to the system's options.
#ifndef TROUPE_ACTOR_ACTOR_H_
#define TROUPE_ACTOR_ACTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "actor/message.h"
#include "base/clock.h"
#include "base/status.h"

namespace troupe {

class Actor;

// Names one life of one actor; never reused within a process. Zero names none.
struct Address {
  uint64_t value = 0;

  explicit operator bool() const { return value != 0; }
  friend bool operator==(Address, Address) = default;
  friend auto operator<=>(Address, Address) = default;
};

// Names one setting of a timer, unique within its actor's life. Zero names none.
struct TimerId {
  uint64_t value = 0;

  explicit operator bool() const { return value != 0; }
  friend bool operator==(TimerId, TimerId) = default;
  friend auto operator<=>(TimerId, TimerId) = default;
};

struct SpawnOptions {
  // Messages that may wait. Timers, ends of children and stop requests are not counted: each is
  // bounded by what the actor itself has set or spawned.
  size_t mailbox_capacity = 1024;
};

// What an actor may ask of the world while it handles a message. Valid only during the call it is
// passed to.
class Context {
 public:
  virtual ~Context() = default;

  virtual Address self() const = 0;
  // Who spawned this actor; zero for a root.
  virtual Address owner() const = 0;
  virtual std::string_view name() const = 0;

  virtual MonotonicTime Now() const = 0;
  // For records only, never for decisions.
  virtual int64_t WallNanoseconds() const = 0;
  // 64 uniform bits of this actor's own stream.
  virtual uint64_t RandomBits() = 0;

  // Puts `message` into the mailbox of `to`. Messages of one sender to one receiver arrive in the
  // order sent. Never blocks: RESOURCE_EXHAUSTED when that mailbox is full, NOT_FOUND when that
  // actor has ended; the message is then gone and the sender decides what it means.
  virtual Status Send(Address to, AnyMessage message) = 0;

  // Hands `message` to this actor's Handle once `delay` has passed (at once where it is not
  // positive).
  virtual TimerId SetTimer(Duration delay, AnyMessage message) = 0;
  // After this call the timer's message will not be handled. Unknown, spent and zero ids are
  // ignored.
  virtual void CancelTimer(TimerId timer) = 0;

  // Makes a child of this actor; its Start runs later. RESOURCE_EXHAUSTED when the system has no
  // room.
  virtual StatusOr<Address> Spawn(std::string name, std::unique_ptr<Actor> actor,
                                  SpawnOptions options = {}) = 0;
  // Asks `child` to end with `cause` after what it handles now; its end is reported as any other.
  // NOT_FOUND when it is not a living child of this actor.
  virtual Status StopChild(Address child, Status cause) = 0;
  // Ends this actor with `cause` (OK: it is done) after the present call; what still waits in its
  // mailbox is dropped.
  virtual void Stop(Status cause = OkStatus()) = 0;
};

// Calls never overlap; they may come from different threads one after the other. Each returns OK,
// or the cause that ends the actor.
class Actor {
 public:
  virtual ~Actor() = default;

  // The first call.
  virtual Status Start(Context& context) { return OkStatus(); }

  virtual Status Handle(AnyMessage message, Context& context) = 0;

  // `child` ended with `cause`. By default a failure is passed on, so that nothing fails unseen.
  virtual Status HandleEnd(Address child, const Status& cause, Context& context) { return cause; }
};

// Called when a root actor ended, with its name and cause.
using RootEnded = std::function<void(std::string_view name, const Status& cause)>;

}  // namespace troupe

template <>
struct std::hash<troupe::Address> {
  size_t operator()(troupe::Address address) const { return std::hash<uint64_t>()(address.value); }
};

#endif  // TROUPE_ACTOR_ACTOR_H_
