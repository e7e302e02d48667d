#include "coordinator/service/watch_reactor.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/service/grpc_status.h"
#include "coordinator/state/job_state.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

// Maximum number of live updates queued for a watcher.
constexpr size_t kMaxQueuedEvents = 16384;
constexpr size_t kRowsAtOnce = 256;

v1::WatchJobResponse ResponseOf(v1::StepEvent step) {
  v1::WatchJobResponse response;
  *response.mutable_step() = std::move(step);
  return response;
}

v1::WatchJobResponse ResponseOf(v1::JobEvent event) {
  v1::WatchJobResponse response;
  *response.mutable_event() = std::move(event);
  return response;
}

class WatchReactor final : public grpc::ServerWriteReactor<v1::WatchJobResponse> {
 public:
  WatchReactor(Engine& engine, const Store& store, const WorkPool& history, const CallAudit& audit,
               const grpc::CallbackServerContext& context, const v1::WatchJobRequest& request,
               UserTicket ticket)
      : ticket_(std::move(ticket)),
        stream_(std::make_shared<Stream>(*this, store, history, request)) {
    auto guard = GuardStream(audit, context, "/troupe.v1.JobService/WatchJob",
                             [stream = stream_](const Status& reason) { stream->End(reason); });
    if (!guard.ok()) {
      stream_->End(guard.status());
      return;
    }
    guard_ = *std::move(guard);
    engine.Watch(stream_->job(), stream_);
  }

  void OnWriteDone(bool ok) override { stream_->OnWritten(ok); }
  void OnCancel() override { stream_->End(Cancelled("the watcher is gone")); }
  void OnDone() override { delete this; }

 private:
  // Outlives the reactor for the sake of those who push; uses the reactor only until finished_.
  class Stream final : public WatchSink, public std::enable_shared_from_this<Stream> {
   public:
    Stream(WatchReactor& reactor, const Store& store, const WorkPool& history,
           const v1::WatchJobRequest& request)
        : reactor_(reactor),
          store_(store),
          history_(history),
          job_(JobId(request.name())),
          from_step_(request.from_step()),
          next_step_(request.from_step()) {}

    const std::string& job() const { return job_; }

    void Begin(WatchStart start) override {
      {
        const std::lock_guard lock(mutex_);
        if (finished_) return;
        if (!start.status.ok()) {
          FinishLocked(start.status);
          return;
        }
        for (v1::StepEvent& step : start.unflushed) {
          if (step.step() >= from_step_) live_.push_back(ResponseOf(std::move(step)));
        }
        if (start.end != v1::JOB_STATE_UNSPECIFIED) {
          v1::WatchJobResponse end;
          end.set_end(start.end);
          live_.push_back(std::move(end));
        }
        writing_ = true;
      }
      history_.Run([stream = shared_from_this()](const Status& turn) {
        if (const Status read = turn.ok() ? stream->ReadStoredEvents() : turn; !read.ok()) {
          stream->End(read);
        } else {
          stream->WriteNext();
        }
      });
    }

    bool Push(const v1::WatchJobResponse& update) override {
      {
        const std::lock_guard lock(mutex_);
        if (finished_) return false;
        if (live_.size() >= kMaxQueuedEvents) {
          FinishLocked(ResourceExhausted("this watcher is too slow: resume with from_step = {}",
                                         last_step_ + 1));
          return false;
        }
        live_.push_back(update);
        if (writing_) return true;
        writing_ = true;
      }
      WriteNext();
      return true;
    }

    void OnWritten(bool ok) {
      {
        const std::lock_guard lock(mutex_);
        if (finished_) return;
        if (!ok) {
          FinishLocked(Unavailable("the stream broke"));
          return;
        }
        if (current_.update_case() == v1::WatchJobResponse::kEnd) {
          FinishLocked(OkStatus());
          return;
        }
      }
      WriteNext();
    }

    void End(const Status& reason) override {
      const std::lock_guard lock(mutex_);
      FinishLocked(reason);
    }

   private:
    Status ReadStoredEvents() {
      TROUPE_ASSIGN_OR_RETURN(std::vector<v1::JobEvent> events, ReadEvents(store_, job_));
      for (v1::JobEvent& event : events) {
        // Includes the events of the step before: a watcher that resumes may have missed those that
        // came after that step.
        if (event.step() >= from_step_ - 1) events_.push_back(std::move(event));
      }
      return OkStatus();
    }

    // REQUIRES: writing_ is set and no write is in flight, so that only one thread is here.
    void WriteNext() {
      while (true) {
        if (stored_.empty() && !history_done_) {
          if (const Status read = ReadStored(); !read.ok()) {
            End(read);
            return;
          }
        }
        const std::lock_guard lock(mutex_);
        if (finished_) return;
        std::deque<v1::WatchJobResponse>& source = stored_.empty() ? live_ : stored_;
        if (source.empty()) {
          if (!history_done_) continue;
          writing_ = false;
          return;
        }
        current_ = std::move(source.front());
        source.pop_front();
        if (current_.has_step() && IsRepeated(current_.step())) continue;
        if (current_.has_event() && IsRepeated(current_.event())) continue;
        reactor_.StartWrite(&current_);
        return;
      }
    }

    // Reads the next rows of the history, with the events that came before each.
    Status ReadStored() {
      TROUPE_ASSIGN_OR_RETURN(std::vector<v1::StepEvent> rows,
                              ReadHistory(store_, job_, next_step_, kRowsAtOnce));
      for (v1::StepEvent& row : rows) {
        while (!events_.empty() && events_.front().step() < row.step()) TakeEvent();
        next_step_ = row.step() + 1;
        stored_.push_back(ResponseOf(std::move(row)));
      }
      if (rows.size() < kRowsAtOnce) {
        while (!events_.empty()) TakeEvent();
        history_done_ = true;
      }
      return OkStatus();
    }

    void TakeEvent() {
      stored_.push_back(ResponseOf(std::move(events_.front())));
      events_.pop_front();
    }

    // Steps and events may become durable between the subscription and the read, and then arrive
    // from both sources.
    bool IsRepeated(const v1::StepEvent& step) {
      int64_t& highest = highest_step_[step.group_epoch()];
      if (step.step() <= highest) return true;
      highest = step.step();
      last_step_ = step.step();
      return false;
    }

    bool IsRepeated(const v1::JobEvent& event) {
      if (event.count() == 0) return false;  // stored by an old coordinator
      int64_t& highest = highest_event_[event.event()];
      if (event.count() <= highest) return true;
      highest = event.count();
      return false;
    }

    void FinishLocked(const Status& status) {
      if (finished_) return;
      finished_ = true;
      live_.clear();  // a slow reader may keep the stream for long
      reactor_.Finish(ToGrpcStatus(status));
    }

    WatchReactor& reactor_;
    const Store& store_;
    const WorkPool history_;
    const std::string job_;
    const int64_t from_step_;

    // Used only by the writing thread.
    int64_t next_step_;
    bool history_done_ = false;
    std::deque<v1::JobEvent> events_;
    std::deque<v1::WatchJobResponse> stored_;
    v1::WatchJobResponse current_;
    std::map<uint64_t, int64_t> highest_step_;      // by group epoch
    std::map<std::string, int64_t> highest_event_;  // counts by kind of event

    std::mutex mutex_;  // guards the members below
    bool writing_ = false;
    bool finished_ = false;
    int64_t last_step_ = 0;
    std::deque<v1::WatchJobResponse> live_;
  };

  const UserTicket ticket_;
  const std::shared_ptr<Stream> stream_;
  std::unique_ptr<StreamGuard> guard_;
};

}  // namespace

grpc::ServerWriteReactor<v1::WatchJobResponse>* NewWatchReactor(
    Engine& engine, const Store& store, const WorkPool& history, const CallAudit& audit,
    const grpc::CallbackServerContext& context, const v1::WatchJobRequest& request,
    UserTicket ticket) {
  return new WatchReactor(engine, store, history, audit, context, request, std::move(ticket));
}

}  // namespace troupe
