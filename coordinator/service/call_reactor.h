// One unary call, which the engine answers later or the caller ends first.
#ifndef TROUPE_COORDINATOR_SERVICE_CALL_REACTOR_H_
#define TROUPE_COORDINATOR_SERVICE_CALL_REACTOR_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "coordinator/engine/engine.h"
#include "coordinator/service/grpc_status.h"

namespace troupe {

// Deletes itself when gRPC is done with it.
class CallReactor final : public grpc::ServerUnaryReactor {
 public:
  // Fills the response on the engine's actor; its status ends the call.
  using Fill = std::function<Status(const CoordinatorState&)>;
  using FillFromReply = std::function<Status(Reply&)>;
  // Called with the error of the reply to an event, which ends the call.
  using OnRefusal = std::function<void(const Status&)>;

  explicit CallReactor(Engine& engine) : engine_(engine), shared_(std::make_shared<Shared>()) {
    shared_->reactor = this;
  }

  // Ends the call with the result of `fill` on the engine's state.
  void Query(Fill fill) {
    Ask([shared = shared_, fill = std::move(fill)](const CoordinatorState& state) {
      shared->FinishOnce([&] { return fill(state); });
    });
  }

  // Ends the call with the reply to the event that `make` creates.
  void Call(const Engine::MakeCall& make, FillFromReply fill) {
    Call(shared_, engine_, make, std::move(fill), nullptr);
  }

  // Calls `look` with the state on the engine's actor. `look` calls `end_with` once, on any
  // thread, with the function that fills the response and ends the call; `ended` returns whether
  // the call has already ended.
  using EndWith = std::function<void(std::function<Status()> fill)>;
  using Ended = std::function<bool()>;
  void QueryThen(std::function<void(const CoordinatorState&, Ended, EndWith)> look) {
    Ask([shared = shared_, look = std::move(look)](const CoordinatorState& state) {
      look(
          state, [shared] { return shared->HasEnded(); },
          [shared](const std::function<Status()>& fill) { shared->FinishOnce(fill); });
    });
  }

  // Inspects the state on the engine's actor and calls `done` once, on any thread.
  using Check = std::function<void(const CoordinatorState&, std::function<void(Status)> done)>;

  // Like Call, after `check` reports OK; any other status of `check` ends the call. `make` must own
  // the data of its event, because the call may have ended by then. `refused` may be null.
  void CallAfter(Check check, Engine::MakeCall make, FillFromReply fill, OnRefusal refused) {
    Ask([shared = shared_, &engine = engine_, check = std::move(check), make = std::move(make),
         fill = std::move(fill), refused = std::move(refused)](const CoordinatorState& state) {
      check(state, [shared, &engine, make, fill, refused](const Status& status) {
        if (status.ok()) {
          Call(shared, engine, make, fill, refused);
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

  // Queries the engine; if it has no room for the query, ends the call.
  void Ask(std::function<void(const CoordinatorState&)> read) {
    const std::shared_ptr<Shared> shared = shared_;  // the reactor may be gone after the query
    const Status asked = engine_.Query(std::move(read));
    if (!asked.ok()) shared->FinishOnce([&] { return asked; });
  }

  static void Call(const std::shared_ptr<Shared>& shared, Engine& engine,
                   const Engine::MakeCall& make, FillFromReply fill, OnRefusal refused) {
    const CallId call = engine.Call(
        make, [shared, fill = std::move(fill), refused = std::move(refused)](Reply reply) {
          if (!reply.status.ok() && refused) refused(reply.status);
          shared->FinishOnce([&] { return reply.status.ok() ? fill(reply) : reply.status; });
        });
    bool ended = false;
    {
      const std::lock_guard lock(shared->mutex);
      shared->call = call;
      ended = shared->finished;
    }
    if (ended) engine.Abandon(call);  // no effect if the call was answered
  }

  // Outlives the reactor for late callbacks. `reactor` must not be used once `finished` is set.
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

#endif  // TROUPE_COORDINATOR_SERVICE_CALL_REACTOR_H_
