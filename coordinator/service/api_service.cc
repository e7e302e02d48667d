#include "coordinator/service/api_service.h"

#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>

#include "coordinator/job/resume.h"
#include "coordinator/machine/views.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/call_reactor.h"
#include "coordinator/service/data_check.h"
#include "coordinator/service/grpc_status.h"
#include "coordinator/service/session_service.h"
#include "coordinator/service/watch_reactor.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

using What = decltype(Event::what);

// Moves the job of a reply into a response with a `job` field.
template <typename Response>
CallReactor::FillFromReply FillJob(Response* response) {
  return [response](Reply& reply) {
    *response->mutable_job() = std::move(std::get<v1::Job>(reply.value));
    return OkStatus();
  };
}

template <typename Event, typename Request>
Engine::MakeCall MakeEvent(const Request& request) {
  return [&request](CallId call) { return What(Event{call, request}); };
}

// Answers with a view of the state. Requests and responses outlive their call's reactor.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* Read(Engine& engine,
                               Status (*view)(const CoordinatorState&, const Request&, Response*),
                               const Request* request, Response* response) {
  auto* const reactor = new CallReactor(engine);
  reactor->Query([=](const CoordinatorState& state) { return view(state, *request, response); });
  return reactor;
}

// Bounds the request, because the server accepts larger messages than any of these calls needs.
template <typename Request>
Status CheckSize(const Request& request) {
  const size_t bytes = request.ByteSizeLong();
  if (bytes <= kMaxRequestBytes) return OkStatus();
  return ResourceExhausted("the request has {} bytes, above the limit of {}", bytes,
                           kMaxRequestBytes);
}

// Checks the size of a call that changes something, and records it. Returns false if it has ended
// the call with an error instead.
template <typename Request>
bool AdmitChange(const CallAudit* audit, const grpc::CallbackServerContext& context,
                 std::string_view rpc, const Request& request, const std::string& target,
                 CallReactor* reactor) {
  Status admitted = CheckSize(request);
  if (admitted.ok()) admitted = RecordChange(audit, context, rpc, target);
  if (!admitted.ok()) reactor->FinishWith(admitted);
  return admitted.ok();
}

// Calls to be sent to the machine, with the plans prepared for them.
struct Creation {
  v1::CreateJobRequest request;
  std::shared_ptr<const PreparedJob> prepared;
};
struct Resumption {
  v1::ResumeJobRequest request;
  std::shared_ptr<const PreparedResume> prepared;
};
struct Rebuilding {
  v1::RebuildJobRequest request;
  std::shared_ptr<const PreparedJob> prepared;
};

// Time limit of a job's data check; ample for a file system that answers.
constexpr Duration kLookLimit = std::chrono::seconds(20);

// Checks the data of a job that has a valid plan. The machine reports all other errors.
void CheckData(const Creation& call, const CheckFiles& check_files, bool must_be_here,
               const WorkPool& data_checks, LimitedCalls& looks,
               const std::function<void(Status)>& done) {
  if (!call.prepared->plan.ok()) return done(OkStatus());
  const auto look = [prepared = call.prepared, check_files, must_be_here] {
    return check_files(*prepared->spec, must_be_here);
  };
  data_checks.Run([name = call.request.job().name(), look, &looks, done](const Status& turn) {
    if (!turn.ok()) return done(turn);
    done(looks.Run(
        look, kLookLimit,
        fmt::format("the check of data, checkpoint.initial_load and checkpoint.folder of job {}",
                    name)));
  });
}

// Streams log lines as they arrive from the workers.
class LogReactor final : public grpc::ServerWriteReactor<v1::ReadJobLogsResponse> {
 public:
  LogReactor(Engine& engine, const CallAudit* audit, const grpc::CallbackServerContext& context,
             const v1::ReadJobLogsRequest& request)
      : engine_(engine), stream_(std::make_shared<Stream>()) {
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
      reactor->Finish(ToGrpcStatus(status));
    }
  };

  Engine& engine_;
  const std::shared_ptr<Stream> stream_;
  std::unique_ptr<StreamGuard> guard_;
};

}  // namespace

grpc::ServerUnaryReactor* JobServiceShell::CreateJob(grpc::CallbackServerContext* context,
                                                     const v1::CreateJobRequest* request,
                                                     v1::CreateJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  if (!AdmitChange(audit_, *context, "/troupe.v1.JobService/CreateJob", *request,
                   JobName(request->job().name()), reactor))
    return reactor;
  const auto call = std::make_shared<Creation>();
  call->request = *request;
  reactor->CallAfter(
      [call, pools = pools_, check_files = check_files_, &looks = limited_looks_](
          const CoordinatorState& state, std::function<void(Status)> done) {
        // The machine answers repeated requests and taken names itself, so nothing is planned for
        // them.
        const std::string& id = call->request.request_id();
        if ((!id.empty() && state.requests.contains(id)) ||
            state.jobs.contains(call->request.job().name())) {
          return done(OkStatus());
        }
        v1::JobSpec stated = call->request.job();
        FillCheckpointFolder(state.options, &stated);
        pools.plans.Run([call, check_files, data_checks = pools.data_checks, &looks, stated,
                         planner = state.options.planner,
                         must_be_here = AllWorkersAreHere(state.fleet), done](const Status& turn) {
          if (!turn.ok()) return done(turn);
          call->prepared = std::make_shared<const PreparedJob>(Prepare(planner, stated));
          CheckData(*call, check_files, must_be_here, data_checks, looks, done);
        });
      },
      [call](CallId id) {
        return What(CreateJobCall{id, call->request, call->prepared});
      },
      FillJob(response));
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceShell::GetJob(grpc::CallbackServerContext* context,
                                                  const v1::GetJobRequest* request,
                                                  v1::GetJobResponse* response) {
  return Read(engine_, ViewJob, request, response);
}

grpc::ServerUnaryReactor* JobServiceShell::ListJobs(grpc::CallbackServerContext* context,
                                                    const v1::ListJobsRequest* request,
                                                    v1::ListJobsResponse* response) {
  return Read(engine_, ViewJobs, request, response);
}

grpc::ServerWriteReactor<v1::WatchJobResponse>* JobServiceShell::WatchJob(
    grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) {
  return NewWatchReactor(engine_, store_, pools_.history, audit_, *context, *request);
}

grpc::ServerUnaryReactor* JobServiceShell::CancelJob(grpc::CallbackServerContext* context,
                                                     const v1::CancelJobRequest* request,
                                                     v1::CancelJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  if (!AdmitChange(audit_, *context, "/troupe.v1.JobService/CancelJob", *request,
                   JobName(request->name()), reactor))
    return reactor;
  reactor->Call(MakeEvent<CancelJobCall>(*request), FillJob(response));
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceShell::DeleteJob(grpc::CallbackServerContext* context,
                                                     const v1::DeleteJobRequest* request,
                                                     v1::DeleteJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  if (!AdmitChange(audit_, *context, "/troupe.v1.JobService/DeleteJob", *request,
                   JobName(request->name()), reactor))
    return reactor;
  reactor->Call(MakeEvent<DeleteJobCall>(*request), FillJob(response));
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceShell::ResumeJob(grpc::CallbackServerContext* context,
                                                     const v1::ResumeJobRequest* request,
                                                     v1::ResumeJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  if (!AdmitChange(audit_, *context, "/troupe.v1.JobService/ResumeJob", *request,
                   JobName(request->name()), reactor))
    return reactor;
  const auto call = std::make_shared<Resumption>();
  call->request = *request;
  reactor->CallAfter(
      [call, plans = pools_.plans](const CoordinatorState& state,
                                   std::function<void(Status)> done) {
        const auto job = state.jobs.find(JobId(call->request.name()));
        // The machine reports the error, so nothing is planned.
        if (job == state.jobs.end() ||
            !CheckResumable(job->second, call->request.overrides()).ok()) {
          return done(OkStatus());
        }
        const auto inputs =
            std::make_shared<const ResumeInputs>(InputsOfResume(job->second, call->request));
        plans.Run([call, inputs, planner = state.options.planner, done](const Status& turn) {
          if (!turn.ok()) return done(turn);
          call->prepared = std::make_shared<const PreparedResume>(PrepareResume(planner, *inputs));
          done(OkStatus());
        });
      },
      [call](CallId id) {
        return What(ResumeJobCall{id, call->request, call->prepared});
      },
      FillJob(response));
  return reactor;
}

grpc::ServerWriteReactor<v1::ReadJobLogsResponse>* JobServiceShell::ReadJobLogs(
    grpc::CallbackServerContext* context, const v1::ReadJobLogsRequest* request) {
  return new LogReactor(engine_, audit_, *context, *request);
}

grpc::ServerUnaryReactor* JobServiceShell::GetJobReceipt(grpc::CallbackServerContext* context,
                                                         const v1::GetJobReceiptRequest* request,
                                                         v1::GetJobReceiptResponse* response) {
  return Read(engine_, ViewReceipt, request, response);
}

grpc::ServerUnaryReactor* JobServiceShell::TraceJob(grpc::CallbackServerContext* context,
                                                    const v1::TraceJobRequest* request,
                                                    v1::TraceJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  reactor->Call(MakeEvent<TraceJobCall>(*request), [response](Reply& reply) {
    *response = std::move(std::get<v1::TraceJobResponse>(reply.value));
    return OkStatus();
  });
  return reactor;
}

grpc::ServerUnaryReactor* PlanServiceShell::PlanJob(grpc::CallbackServerContext* context,
                                                    const v1::PlanJobRequest* request,
                                                    v1::PlanJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  // Copies the request, which is destroyed once the call has ended.
  reactor->QueryThen([plans = plans_, owned = *request, response](
                         const CoordinatorState& state, const CallReactor::Ended& ended,
                         const CallReactor::EndWith& finish) {
    auto inputs = std::make_shared<const PlanInputs>(ViewPlanInputs(state, owned));
    plans.Run([inputs, ended, finish, response](const Status& turn) {
      if (ended()) return;
      StatusOr<v1::Plan> plan = turn.ok() ? PlanOn(*inputs) : StatusOr<v1::Plan>(turn);
      finish([&plan, response] {
        if (plan.ok()) *response->mutable_plan() = *std::move(plan);
        return plan.status();
      });
    });
  });
  return reactor;
}

grpc::ServerUnaryReactor* CheckpointServiceShell::ListCheckpoints(
    grpc::CallbackServerContext* context, const v1::ListCheckpointsRequest* request,
    v1::ListCheckpointsResponse* response) {
  return Read(engine_, ViewCheckpoints, request, response);
}

grpc::ServerUnaryReactor* CheckpointServiceShell::GetCheckpoint(
    grpc::CallbackServerContext* context, const v1::GetCheckpointRequest* request,
    v1::GetCheckpointResponse* response) {
  return Read(engine_, ViewCheckpoint, request, response);
}

grpc::ServerUnaryReactor* CheckpointServiceShell::CreateCheckpoint(
    grpc::CallbackServerContext* context, const v1::CreateCheckpointRequest* request,
    v1::CreateCheckpointResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  if (!AdmitChange(audit_, *context, "/troupe.v1.CheckpointService/CreateCheckpoint", *request,
                   JobName(request->job()), reactor))
    return reactor;
  reactor->Call(MakeEvent<CreateCheckpointCall>(*request), [response](Reply& reply) {
    *response->mutable_checkpoint() = std::move(std::get<v1::CheckpointRecord>(reply.value));
    return OkStatus();
  });
  return reactor;
}

grpc::ServerUnaryReactor* CheckpointServiceShell::PinCheckpoint(
    grpc::CallbackServerContext* context, const v1::PinCheckpointRequest* request,
    v1::PinCheckpointResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  if (!AdmitChange(audit_, *context, "/troupe.v1.CheckpointService/PinCheckpoint", *request,
                   JobName(request->job()), reactor))
    return reactor;
  reactor->Call(MakeEvent<PinCheckpointCall>(*request), [response](Reply& reply) {
    *response->mutable_checkpoint() = std::move(std::get<v1::CheckpointRecord>(reply.value));
    return OkStatus();
  });
  return reactor;
}

grpc::ServerUnaryReactor* CheckpointServiceShell::LiftQuarantine(
    grpc::CallbackServerContext* context, const v1::LiftQuarantineRequest* request,
    v1::LiftQuarantineResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  if (!AdmitChange(audit_, *context, "/troupe.v1.CheckpointService/LiftQuarantine", *request,
                   request->path(), reactor))
    return reactor;
  reactor->Call(MakeEvent<LiftQuarantineCall>(*request), [response](Reply& reply) {
    *response->mutable_checkpoint() = std::move(std::get<v1::CheckpointRecord>(reply.value));
    return OkStatus();
  });
  return reactor;
}

grpc::ServerUnaryReactor* CheckpointServiceShell::RebuildJob(grpc::CallbackServerContext* context,
                                                             const v1::RebuildJobRequest* request,
                                                             v1::RebuildJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  if (!AdmitChange(audit_, *context, "/troupe.v1.CheckpointService/RebuildJob", *request,
                   JobName(request->job().name()), reactor))
    return reactor;
  const auto call = std::make_shared<Rebuilding>();
  call->request = *request;
  reactor->CallAfter(
      [call, plans = plans_](const CoordinatorState& state, std::function<void(Status)> done) {
        // The machine refuses a name that is taken.
        if (state.jobs.contains(call->request.job().name())) return done(OkStatus());
        plans.Run([call, planner = state.options.planner, done](const Status& turn) {
          if (!turn.ok()) return done(turn);
          call->prepared =
              std::make_shared<const PreparedJob>(Prepare(planner, call->request.job()));
          done(OkStatus());
        });
      },
      [call](CallId id) {
        return What(RebuildJobCall{id, call->request, call->prepared});
      },
      FillJob(response));
  return reactor;
}

grpc::ServerUnaryReactor* ClusterServiceShell::ListWorkers(grpc::CallbackServerContext* context,
                                                           const v1::ListWorkersRequest* request,
                                                           v1::ListWorkersResponse* response) {
  return Read(engine_, ViewWorkers, request, response);
}

}  // namespace troupe
