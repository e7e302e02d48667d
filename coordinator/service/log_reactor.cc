#include "coordinator/service/log_reactor.h"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "coordinator/service/grpc_status.h"

namespace troupe {
namespace {

class LogReactor final : public grpc::ServerWriteReactor<v1::ReadJobLogsResponse> {
 public:
  LogReactor(Engine& engine, const CallAudit& audit, const grpc::CallbackServerContext& context,
             const v1::ReadJobLogsRequest& request, UserTicket ticket)
      : engine_(engine), ticket_(std::move(ticket)), stream_(std::make_shared<Stream>()) {
    stream_->reactor = this;
    auto guard = GuardStream(audit, context, "/troupe.v1.JobService/ReadJobLogs",
                             [&engine, stream = stream_](const Status& reason) {
                               stream->Finish(reason);
                               engine.Abandon(stream->Call());
                             });
    if (!guard.ok()) {
      stream_->Finish(guard.status());
      return;
    }
    guard_ = *std::move(guard);
    const CallId call = engine.ReadLogs(
        request, [stream = stream_](LogChunk chunk) { stream->Enqueue(std::move(chunk)); });
    bool ended = false;
    {
      const std::lock_guard lock(stream_->mutex);
      stream_->call = call;
      ended = stream_->finished;
    }
    if (ended) engine.Abandon(call);  // no effect if all lines were read
  }

  void OnWriteDone(bool ok) override { stream_->OnWritten(ok); }

  void OnCancel() override {
    const CallId call = stream_->Call();
    Engine& engine = engine_;
    stream_->Finish(Cancelled("the reader is gone"));
    engine.Abandon(call);
  }

  void OnDone() override { delete this; }

 private:
  // Outlives the reactor, which must not be used once `finished` is set.
  struct Stream {
    std::mutex mutex;
    LogReactor* reactor = nullptr;
    CallId call = 0;
    std::deque<v1::ReadJobLogsResponse> queue;  // the front is being written
    bool ended = false;
    bool finished = false;
    Status end;

    CallId Call() {
      const std::lock_guard lock(mutex);
      return call;
    }

    void Enqueue(LogChunk chunk) {
      const std::lock_guard lock(mutex);
      if (finished) return;
      ended = chunk.last;
      end = chunk.status;
      if (!chunk.lines.empty()) {
        v1::ReadJobLogsResponse response;
        for (std::string& line : chunk.lines) response.add_lines(std::move(line));
        queue.push_back(std::move(response));
        if (queue.size() == 1) reactor->StartWrite(&queue.front());
      }
      if (queue.empty() && ended) FinishLocked(end);
    }

    void OnWritten(bool ok) {
      const std::lock_guard lock(mutex);
      if (finished) return;
      queue.pop_front();
      if (!ok) {
        FinishLocked(Unavailable("the stream broke"));
      } else if (!queue.empty()) {
        reactor->StartWrite(&queue.front());
      } else if (ended) {
        FinishLocked(end);
      }
    }

    void Finish(const Status& status) {
      const std::lock_guard lock(mutex);
      FinishLocked(status);
    }

    void FinishLocked(const Status& status) {
      if (finished) return;
      finished = true;
      while (queue.size() > 1) queue.pop_back();  // a slow reader may keep the stream for long
      reactor->Finish(ToGrpcStatus(status));
    }
  };

  Engine& engine_;
  const UserTicket ticket_;
  const std::shared_ptr<Stream> stream_;
  std::unique_ptr<StreamGuard> guard_;
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadJobLogsResponse>* NewLogReactor(
    Engine& engine, const CallAudit& audit, const grpc::CallbackServerContext& context,
    const v1::ReadJobLogsRequest& request, UserTicket ticket) {
  return new LogReactor(engine, audit, context, request, std::move(ticket));
}

}  // namespace troupe
