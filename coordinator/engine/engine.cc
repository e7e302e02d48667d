#include "coordinator/engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/security/secret.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

using What = decltype(Event::what);

}  // namespace

StatusOr<std::unique_ptr<Engine>> Engine::Start(EngineOptions options) {
  TROUPE_ASSIGN_OR_RETURN(const uint64_t leader_epoch, AdvanceLeaderEpoch(options.store));
  TROUPE_ASSIGN_OR_RETURN(const CatalogImage image, ReadCatalog(*options.store));
  CoordinatorState state = Recover(options.machine, image, leader_epoch, options.clock->Now());
  LogInfo("coordinator", "leader epoch {}: {} jobs, {} of them waiting or running", leader_epoch,
          state.jobs.size(),
          std::count_if(state.jobs.begin(), state.jobs.end(),
                        [](const auto& job) { return !HasEnded(job.second); }));
  const auto watcher_count = std::make_shared<std::atomic<int64_t>>(0);
  TROUPE_ASSIGN_OR_RETURN(
      const Address watchers,
      options.system->Spawn("watchers", std::make_unique<WatchFanout>(watcher_count),
                            {.mailbox_capacity = options.most_waiting_updates}));
  EngineActor::Options actor{.store = options.store,
                             .watchers = watchers,
                             .metrics = options.metrics,
                             .watcher_count = watcher_count,
                             .make_group_key = RandomSecret,
                             .record_path = std::move(options.record_path)};
  TROUPE_ASSIGN_OR_RETURN(
      const Address address,
      options.system->Spawn("engine",
                            std::make_unique<EngineActor>(std::move(actor), std::move(state)),
                            {.mailbox_capacity = options.most_waiting_events}));
  return std::unique_ptr<Engine>(new Engine(*options.system, address, options.most_waiting_events));
}

Status Engine::Send(AnyMessage message) {
  const Status sent = system_.Send(actor_, std::move(message));
  if (sent.code() == StatusCode::kResourceExhausted) {
    return ResourceExhausted("{} events wait for the coordinator: try again", most_waiting_events_);
  }
  return sent.ok() ? sent : Unavailable("the coordinator ends");
}

StatusOr<SessionId> Engine::OpenSession(std::shared_ptr<SessionSink> sink) {
  const SessionId session = ++last_session_;
  TROUPE_RETURN_IF_ERROR(Send(AnyMessage(SessionOpened{session, std::move(sink)})));
  return session;
}

Status Engine::Receive(SessionId session, v1::WorkerMessage message) {
  return Send(AnyMessage(EngineEvent{WorkerReported{session, std::move(message)}}));
}

void Engine::CloseSession(SessionId session) {
  // NOT_FOUND: the engine has ended, and its sessions with it.
  system_.SendAdmitted(actor_, AnyMessage(EngineEvent{SessionClosed{session}})).IgnoreError();
}

CallId Engine::Call(const MakeCall& make, const std::function<void(Reply)>& done) {
  const CallId call = ++last_call_;
  const Status sent = Send(AnyMessage(EngineCall{call, make(call), done, nullptr}));
  if (sent.ok()) return call;
  done(Reply{call, sent, {}});
  return 0;
}

CallId Engine::ReadLogs(const v1::ReadJobLogsRequest& request,
                        const std::function<void(LogChunk)>& chunk) {
  const CallId call = ++last_call_;
  const Status sent =
      Send(AnyMessage(EngineCall{call, ReadLogsCall{call, request}, nullptr, chunk}));
  if (sent.ok()) return call;
  chunk(LogChunk{call, sent, {}, true});
  return 0;
}

void Engine::Abandon(CallId call) {
  if (call == 0) return;
  system_.SendAdmitted(actor_, AnyMessage(EngineEvent{CallAbandoned{call}})).IgnoreError();
}

Status Engine::Query(std::function<void(const CoordinatorState&)> read) {
  return Send(AnyMessage(EngineQuery{std::move(read)}));
}

void Engine::SetNamespaces(std::shared_ptr<const Namespaces> namespaces) {
  // NOT_FOUND: the engine has ended.
  system_.SendAdmitted(actor_, AnyMessage(EngineEvent{NamespacesChanged{std::move(namespaces)}}))
      .IgnoreError();
}

void Engine::Watch(const std::string& job, const std::shared_ptr<WatchSink>& sink) {
  const Status sent = Send(AnyMessage(EngineWatch{job, sink}));
  if (!sent.ok()) sink->End(sent);
}

}  // namespace troupe
