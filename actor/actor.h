// An actor owns its state and handles one message at a time. It never accesses the wall clock,
// threads, randomness, sockets or files directly: it gets them from its Context, or through
// interfaces (Store, a stream) that its creator passes in. The same actor can therefore run on the
// thread pool (actor/system.h) and, bit-for-bit reproducibly, on virtual time (actor/sim/system.h).
//
// Convention of this codebase: decisions are a pure `Step(State&, Event) → Effects` in a separate
// module. The actor is the shell that turns messages into events and performs the effects in their
// stated order; effects become durable before messages about them are sent.
//
// Supervision: an actor that spawns another owns it and is notified of its end with a cause. When
// an actor ends, its children are stopped first, and its end is reported after theirs. A failed
// child that its owner does not handle ends the owner with the same cause, and so on up to a root
// actor, for which ActorSystemOptions::on_root_end is called.
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

// Identifies one life of one actor; never reused within a process. Zero is no address.
struct Address {
  uint64_t value = 0;

  explicit operator bool() const { return value != 0; }
  friend bool operator==(Address, Address) = default;
  friend auto operator<=>(Address, Address) = default;
};

// Identifies one setting of a timer; unique within the life of its actor. Zero is no timer.
struct TimerId {
  uint64_t value = 0;

  explicit operator bool() const { return value != 0; }
  friend bool operator==(TimerId, TimerId) = default;
  friend auto operator<=>(TimerId, TimerId) = default;
};

struct SpawnOptions {
  // The maximum number of waiting messages. Notices of timers, ended children and stop requests do
  // not count: the actor's own timers and children bound them.
  size_t mailbox_capacity = 1024;
};

// Everything an actor may request while it handles a message. Valid only during the call that
// receives it.
class Context {
 public:
  virtual ~Context() = default;

  virtual Address self() const = 0;
  // The actor that spawned this one; zero for a root actor.
  virtual Address owner() const = 0;
  virtual std::string_view name() const = 0;

  virtual MonotonicTime Now() const = 0;
  // For records only, never for decisions.
  virtual int64_t WallNanoseconds() const = 0;
  // 64 uniformly distributed bits from this actor's own random stream.
  virtual uint64_t RandomBits() = 0;

  // Puts `message` into the mailbox of `to`. Messages from one sender to one receiver arrive in the
  // order sent. Never blocks: RESOURCE_EXHAUSTED when the mailbox is full, NOT_FOUND when the actor
  // has ended. On an error the message is lost and the sender decides how to react.
  virtual Status Send(Address to, AnyMessage message) = 0;
  // Like Send, but `message` fits even into a full mailbox. Only for a message that ends something
  // that `to` began or admitted (a request, a session, a call): these bound the number of such
  // messages.
  virtual Status SendAdmitted(Address to, AnyMessage message) = 0;
  // The number of messages in this actor's own mailbox: they came after the batch that it handles.
  virtual size_t waiting() const = 0;

  // Passes `message` to this actor's Handle after `delay`, or as soon as possible if `delay` is not
  // positive.
  virtual TimerId SetTimer(Duration delay, AnyMessage message) = 0;
  // After this call the timer's message will not be handled. Ignores zero ids and ids of unknown or
  // expired timers.
  virtual void CancelTimer(TimerId timer) = 0;

  // Creates a child of this actor; its Start runs later. RESOURCE_EXHAUSTED when the system has
  // reached its limit of actors.
  virtual StatusOr<Address> Spawn(std::string name, std::unique_ptr<Actor> actor,
                                  SpawnOptions options = {}) = 0;
  // Asks `child` to end with `cause` after the message that it is handling now; its end is reported
  // like any other. NOT_FOUND when it is not a living child of this actor.
  virtual Status StopChild(Address child, Status cause) = 0;
  // Ends this actor with `cause` (OK: it is done) after the current call. Messages that still wait
  // in its mailbox are dropped.
  virtual void Stop(Status cause = OkStatus()) = 0;
};

// Calls never overlap, but successive calls may come from different threads. Each call returns OK,
// or the cause that ends the actor.
class Actor {
 public:
  virtual ~Actor() = default;

  // The first call.
  virtual Status Start(Context& context) { return OkStatus(); }

  virtual Status Handle(AnyMessage message, Context& context) = 0;

  // Called after the last message of a batch, that is, of the messages that were waiting together.
  // An actor that shares work among messages, such as one synced write, does it here.
  virtual Status HandleBatchEnd(Context& context) { return OkStatus(); }

  // `child` ended with `cause`. The default returns the cause, so that no failure goes unnoticed.
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
