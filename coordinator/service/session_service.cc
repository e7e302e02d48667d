#include "coordinator/service/session_service.h"

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "coordinator/access/access.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/grpc_status.h"
#include "coordinator/service/request_bytes.h"

namespace troupe {
namespace {

class SessionReactor;

// The engine's end of the stream; outlives the reactor.
class StreamSink final : public SessionSink {
 public:
  StreamSink(SessionReactor* reactor, size_t most_waiting)
      : reactor_(reactor), most_waiting_(most_waiting) {}

  void Send(v1::CoordinatorMessage message, bool then_close) override;
  void OnWritten(bool ok);
  // Returns false if it had already ended.
  bool FinishOnce(const Status& status);
  // Ends the stream and its session, of which the peer may hear later or never.
  void Cut(const Status& status);
  bool HasFinished() {
    const std::lock_guard lock(mutex_);
    return finished_;
  }
  // Called when the reactor is about to be destroyed.
  void Detach() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }

 private:
  bool FinishLocked(const Status& status);
  void CutLocked(const Status& status);

  std::mutex mutex_;
  SessionReactor* const reactor_;  // used only until finished_
  const size_t most_waiting_;
  std::deque<v1::CoordinatorMessage> queue_;  // its front is being written
  bool close_after_ = false;
  bool finished_ = false;
};

class SessionReactor final
    : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  SessionReactor(Engine& engine, size_t most_waiting, const CallAudit& audit,
                 const UserCounts& sessions, grpc::CallbackServerContext* context)
      : engine_(engine),
        audit_(audit),
        caller_(CallerOf(audit, *context)),
        peer_(context->peer()),
        sink_(std::make_shared<StreamSink>(this, most_waiting)) {
    const StatusOr<SessionId> session = engine.OpenSession(sink_);
    if (session.ok()) session_ = *session;
    Status opened = session.status();
    if (opened.ok()) opened = Count(sessions);
    if (opened.ok()) opened = Guard(*context);
    if (opened.ok()) {
      StartRead(&incoming_);
    } else {
      LogWarning("coordinator", "a session of {} is refused: {}", peer_, ToString(opened));
      sink_->FinishOnce(opened);
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(OkStatus());
      return;
    }
    // Later messages of the peer have no effect, and gRPC holds them back if they are not read.
    if (sink_->HasFinished()) return;
    const bool too_large = first_ && incoming_.ByteSizeLong() > kMaxRequestBytes;
    first_ = false;
    Status received = too_large
                          ? InvalidArgument("the first message has {} bytes, above the limit of {}",
                                            incoming_.ByteSizeLong(), kMaxRequestBytes)
                          : CheckSender();
    if (received.ok()) received = engine_.Receive(session_, std::move(incoming_));
    if (!received.ok()) {
      LogWarning("coordinator", "session {} of {} is refused: {}", session_, peer_,
                 ToString(received));
      sink_->FinishOnce(received);
      return;
    }
    incoming_ = {};
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override { sink_->OnWritten(ok); }
  void OnCancel() override { End(Cancelled("the stream broke")); }

  void OnDone() override {
    sink_->Detach();
    CloseSession();
    delete this;
  }

  // Idempotent.
  void CloseSession() {
    if (session_ != 0) engine_.CloseSession(session_);
  }

 private:
  // Counts the session for its worker until the reactor is destroyed.
  Status Count(const UserCounts& sessions) {
    TROUPE_RETURN_IF_ERROR(caller_.status());
    if (!caller_->has_value() || !(*caller_)->identity) return OkStatus();
    StatusOr<UserTicket> ticket = sessions.Add(ToUri(*(*caller_)->identity));
    if (ticket.ok()) {
      ticket_ = *std::move(ticket);
      return OkStatus();
    }
    audit_.log.AppendRefusal(AuditNameOf(**caller_), kSessionRpc,
                             std::string(Message(ticket.status())));
    return ticket.status();
  }

  // Ends the session when the caller's access ends.
  Status Guard(const grpc::CallbackServerContext& context) {
    TROUPE_RETURN_IF_ERROR(caller_.status());
    TROUPE_ASSIGN_OR_RETURN(guard_, GuardStream(audit_, context, kSessionRpc,
                                                [sink = sink_, peer = peer_](const Status& reason) {
                                                  LogWarning("coordinator",
                                                             "the session of {} ends: {}", peer,
                                                             ToString(reason));
                                                  sink->Cut(reason);
                                                }));
    return OkStatus();
  }

  // Checks the sender of the incoming message against the certificate of the connection, if any.
  Status CheckSender() {
    if (!caller_->has_value() || !incoming_.has_hello()) return OkStatus();
    const Caller& caller = **caller_;  // not anonymous, which Guard refuses
    const Status sender = CheckWorkerNamed(*caller.identity, incoming_.hello().name());
    if (!sender.ok()) {
      audit_.log.AppendRefusal(AuditNameOf(caller), kSessionRpc, std::string(Message(sender)));
    }
    return sender;
  }

  // Ends the stream after its peer closed it, was lost or sent too large a message; gRPC does not
  // report which.
  void End(const Status& status) {
    if (!sink_->FinishOnce(status)) return;
    LogWarning("coordinator",
               "session {} of {} ended: the peer closed it, disconnected, or sent a message above "
               "the limit of {} bytes",
               session_, peer_, kMaxReceiveBytes);
  }

  Engine& engine_;
  const CallAudit& audit_;
  const StatusOr<std::optional<Caller>> caller_;  // absent without TLS
  const std::string peer_;                        // unknown once the peer is gone
  const std::shared_ptr<StreamSink> sink_;
  std::unique_ptr<StreamGuard> guard_;
  UserTicket ticket_;
  SessionId session_ = 0;  // 0: the engine had no room for it
  v1::WorkerMessage incoming_;
  bool first_ = true;  // no message has been accepted yet
};

void StreamSink::Send(v1::CoordinatorMessage message, bool then_close) {
  const std::lock_guard lock(mutex_);
  if (finished_ || close_after_) return;
  if (queue_.size() >= most_waiting_) {
    LogWarning("coordinator", "the stream to a worker is closed, because {} messages wait for it",
               most_waiting_);
    CutLocked(ResourceExhausted("{} messages wait for this worker", most_waiting_));
    return;
  }
  close_after_ = then_close;
  queue_.push_back(std::move(message));
  if (queue_.size() == 1) reactor_->StartWrite(&queue_.front());
}

void StreamSink::OnWritten(bool ok) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  if (!ok) {
    FinishLocked(Unavailable("the stream broke"));
    return;
  }
  queue_.pop_front();
  if (!queue_.empty()) {
    reactor_->StartWrite(&queue_.front());
  } else if (close_after_) {
    FinishLocked(OkStatus());
  }
}

bool StreamSink::FinishOnce(const Status& status) {
  const std::lock_guard lock(mutex_);
  return FinishLocked(status);
}

void StreamSink::Cut(const Status& status) {
  const std::lock_guard lock(mutex_);
  CutLocked(status);
}

// gRPC ends the stream only once the peer has read the message that is being written. Until then,
// the worker must not count as connected, and the other messages must not stay.
void StreamSink::CutLocked(const Status& status) {
  if (finished_) return;
  reactor_->CloseSession();
  if (!queue_.empty()) queue_.erase(queue_.begin() + 1, queue_.end());
  FinishLocked(status);
}

bool StreamSink::FinishLocked(const Status& status) {
  if (finished_) return false;
  finished_ = true;
  reactor_->Finish(ToGrpcStatus(status));
  return true;
}

}  // namespace

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* SessionService::Session(
    grpc::CallbackServerContext* context) {
  return new SessionReactor(engine_, most_waiting_, audit_, sessions_, context);
}

}  // namespace troupe
