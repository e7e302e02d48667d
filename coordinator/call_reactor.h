// One unary call, answered later by the engine or ended by its caller, whichever comes first.
#ifndef TROUPE_COORDINATOR_CALL_REACTOR_H_
#define TROUPE_COORDINATOR_CALL_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "coordinator/engine.h"
#include "coordinator/grpc_status.h"

namespace troupe {

// Deletes itself when gRPC is done with it.
class CallReactor final : public grpc::ServerUnaryReactor {
 public:
  // Fills the response, on the engine's thread; what it returns ends the call.
  using Fill = std::function<Status(const CoordinatorState&)>;
  using FillFromReply = std::function<Status(Reply&)>;

  explicit CallReactor(Engine& engine) : engine_(engine), shared_(std::make_shared<Shared>()) {
    shared_->reactor = this;
  }

  // Ends the call with what `fill` says of the engine's state.
  void Query(Fill fill) {
    engine_.Query([shared = shared_, fill = std::move(fill)](const CoordinatorState& state) {
      shared->FinishOnce([&] { return fill(state); });
    });
  }

  // Ends the call with the reply to the event that `make` makes.
  void Call(const Engine::MakeCall& make, FillFromReply fill) {
    Call(shared_, engine_, make, std::move(fill));
  }

  // Looks at the state, on the engine's thread, and calls `end_with` once, on any thread, with what
  // fills the response and ends the call; `ended` says whether the call has ended by then.
  using EndWith = std::function<void(std::function<Status()> fill)>;
  using Ended = std::function<bool()>;
  void QueryThen(std::function<void(const CoordinatorState&, Ended, EndWith)> look) {
    engine_.Query([shared = shared_, look = std::move(look)](const CoordinatorState& state) {
      look(
          state, [shared] { return shared->HasEnded(); },
          [shared](const std::function<Status()>& fill) { shared->FinishOnce(fill); });
    });
  }

  // Looks at the state, on the engine's thread, and calls `done` once, on any thread.
  using Check = std::function<void(const CoordinatorState&, std::function<void(Status)> done)>;

  // As Call, once `check` is done with OK; else ends the call with what it says. `make` must own
  // what it makes the event of: the call may have ended by then.
  void CallAfter(Check check, Engine::MakeCall make, FillFromReply fill) {
    engine_.Query([shared = shared_, &engine = engine_, check = std::move(check),
                   make = std::move(make), fill = std::move(fill)](const CoordinatorState& state) {
      check(state, [shared, &engine, make, fill](const Status& status) {
        if (status.ok()) {
          Call(shared, engine, make, fill);
        } else {
          shared->FinishOnce([&] { return status; });
        }
      });
    });
  }

  void FinishWith(const Status& status) {
    shared_->FinishOnce([&] { return status; });
  }

  void OnCancel() override {
    CallId call = 0;
    {
      const std::lock_guard lock(shared_->mutex);
      call = shared_->call;
    }
    Engine& engine = engine_;
    shared_->FinishOnce([] { return Cancelled("the caller is gone"); });
    if (call != 0) engine.Abandon(call);
  }

  void OnDone() override { delete this; }

 private:
  struct Shared;

  static void Call(const std::shared_ptr<Shared>& shared, Engine& engine,
                   const Engine::MakeCall& make, FillFromReply fill) {
    const CallId call = engine.Call(make, [shared, fill = std::move(fill)](Reply reply) {
      shared->FinishOnce([&] { return reply.status.ok() ? fill(reply) : reply.status; });
    });
    bool ended = false;
    {
      const std::lock_guard lock(shared->mutex);
      shared->call = call;
      ended = shared->finished;
    }
    if (ended) engine.Abandon(call);  // no effect if it was answered
  }

  // Outlives the reactor for callbacks that come too late; `reactor` is used only until `finished`.
  struct Shared {
    std::mutex mutex;
    bool finished = false;
    CallId call = 0;
    CallReactor* reactor = nullptr;

    bool HasEnded() {
      const std::lock_guard lock(mutex);
      return finished;
    }

    template <typename MakeStatus>
    void FinishOnce(MakeStatus make_status) {
      const std::lock_guard lock(mutex);
      if (finished) return;
      finished = true;
      reactor->Finish(ToGrpcStatus(make_status()));
    }
  };

  Engine& engine_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_CALL_REACTOR_H_
