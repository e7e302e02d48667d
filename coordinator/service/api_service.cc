#include "coordinator/service/api_service.h"

#include <memory>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "coordinator/job/resume.h"
#include "coordinator/machine/admission.h"
#include "coordinator/machine/views.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/call_reactor.h"
#include "coordinator/service/data_check.h"
#include "coordinator/service/grpc_status.h"
#include "coordinator/service/log_reactor.h"
#include "coordinator/service/request_bytes.h"
#include "coordinator/service/session_service.h"
#include "coordinator/service/watch_reactor.h"
#include "coordinator/state/catalog.h"
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

// Whether the caller may use the job with this name or id. If not, the refusal is recorded.
Status MayUse(const CallGuard& guard, const grpc::CallbackServerContext& context,
              std::string_view rpc, const std::string& job) {
  return guard.CheckJob(GuardedCall(guard, context, rpc), job);
}

// The jobs that the caller may see.
StatusOr<JobFilter> SeenBy(const CallGuard& guard, const grpc::CallbackServerContext& context,
                           std::string_view rpc) {
  return guard.SeenBy(GuardedCall(guard, context, rpc));
}

// Answers with a view of the state, unless `admitted` is an error. Requests and responses outlive
// their call's reactor.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* Read(Engine& engine, Status admitted,
                               Status (*view)(const CoordinatorState&, const Request&, Response*),
                               const Request* request, Response* response) {
  auto* const reactor = new CallReactor(engine);
  if (admitted.ok()) admitted = CheckRequestBytes(*request);
  if (admitted.ok()) {
    reactor->Query([=](const CoordinatorState& state) { return view(state, *request, response); });
  } else {
    reactor->FinishWith(admitted);
  }
  return reactor;
}

// The same with a view that shows the jobs that the caller may see.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* ReadSeen(Engine& engine, const StatusOr<JobFilter>& sees,
                                   Status (*view)(const CoordinatorState&, const Request&,
                                                  const JobFilter&, Response*),
                                   const Request* request, Response* response) {
  auto* const reactor = new CallReactor(engine);
  Status admitted = sees.status();
  if (admitted.ok()) admitted = CheckRequestBytes(*request);
  if (admitted.ok()) {
    reactor->Query([=, sees = *sees](const CoordinatorState& state) {
      return view(state, *request, sees, response);
    });
  } else {
    reactor->FinishWith(admitted);
  }
  return reactor;
}

// Checks the size of a call that changes something, and records it. Returns false if it has ended
// the call with an error instead, which `admitted` may be.
template <typename Request>
bool AdmitChange(const CallAudit& audit, Status admitted,
                 const grpc::CallbackServerContext& context, std::string_view rpc,
                 const Request& request, const std::string& target, CallReactor* reactor) {
  if (admitted.ok()) admitted = CheckRequestBytes(request);
  if (admitted.ok()) admitted = RecordChange(audit, context, rpc, target);
  if (!admitted.ok()) reactor->FinishWith(admitted);
  return admitted.ok();
}

// Calls to be sent to the machine, with the plans prepared for them.
struct Creation {
  v1::CreateJobRequest request;
  std::shared_ptr<const PreparedJob> prepared;
  std::string creator;
  v1::PathRoots roots;  // those of the job's namespace
};
struct Resumption {
  v1::ResumeJobRequest request;
  std::shared_ptr<const PreparedResume> prepared;
};
struct Rebuilding {
  v1::RebuildJobRequest request;
  std::shared_ptr<const PreparedJob> prepared;
  std::string creator;
};

// Time limit of a job's data check; ample for a file system that answers.
constexpr Duration kLookLimit = std::chrono::seconds(20);

// Checks the data of a job that has a valid plan. The machine reports all other errors. `ticket`
// counts until the look has returned, which is never where a mount hangs.
void CheckData(const Creation& call, const CheckFiles& check_files, bool must_be_here,
               const WorkPool& data_checks, LimitedCalls& looks, const UserTicket& ticket,
               const std::function<void(Status)>& done) {
  if (!call.prepared->plan.ok()) return done(OkStatus());
  const auto look = [prepared = call.prepared, roots = call.roots, check_files, must_be_here,
                     ticket] { return check_files(*prepared->spec, roots, must_be_here); };
  data_checks.Run([name = call.request.job().name(), look, &looks, done](const Status& turn) {
    if (!turn.ok()) return done(turn);
    done(looks.Run(
        look, kLookLimit,
        fmt::format("the check of data, checkpoint.initial_load and checkpoint.folder of job {}",
                    name)));
  });
}

// Does `work` in the pool of plans, unless too many plans of the caller wait there.
void RunPlan(const CallGuard& guard, const GuardedCall& call, const WorkPool& plans,
             WorkPool::Work work) {
  StatusOr<UserTicket> ticket = guard.AwaitPlan(call);
  if (!ticket.ok()) return work(ticket.status());
  plans.Run([ticket = *std::move(ticket), work = std::move(work)](const Status& turn) mutable {
    ticket.reset();  // it waits no longer
    work(turn);
  });
}

// Records the machine's replies that refuse a call: the state may have changed since the call was
// checked.
CallReactor::OnRefusal RecordRefusals(const CallGuard& guard, const GuardedCall& call) {
  return
      [&guard, call](const Status& status) { guard.RecordIfRefused(call, status).IgnoreError(); };
}

// Admits a stream of the caller about the job that the request names.
template <typename Request>
StatusOr<UserTicket> AdmitStream(const CallGuard& guard, const grpc::CallbackServerContext& context,
                                 std::string_view rpc, const Request& request) {
  const GuardedCall call(guard, context, rpc);
  TROUPE_RETURN_IF_ERROR(guard.CheckJob(call, request.name()));
  TROUPE_RETURN_IF_ERROR(CheckRequestBytes(request));
  return guard.OpenStream(call);
}

// A stream that ends with an error at once.
template <typename Response>
class StreamRefusal final : public grpc::ServerWriteReactor<Response> {
 public:
  explicit StreamRefusal(const Status& status) { this->Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerUnaryReactor* JobServiceShell::CreateJob(grpc::CallbackServerContext* context,
                                                     const v1::CreateJobRequest* request,
                                                     v1::CreateJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  constexpr char kRpc[] = "/troupe.v1.JobService/CreateJob";
  const GuardedCall guarded(guard_, *context, kRpc);
  const std::string& name = request->job().name();
  if (!AdmitChange(audit_, guard_.CheckSpec(guarded, name, request->job()), *context, kRpc,
                   *request, JobName(name), reactor))
    return reactor;
  const auto call = std::make_shared<Creation>();
  call->request = *request;
  call->creator = guarded.user();
  reactor->CallAfter(
      [call, &guard = guard_, guarded, pools = pools_, check_files = check_files_,
       &looks = limited_looks_](const CoordinatorState& state,
                                const std::function<void(Status)>& answer) {
        const auto done = [&guard, guarded, answer](Status status) {
          answer(guard.RecordIfRefused(guarded, std::move(status)));
        };
        // The machine answers repeated requests and taken names itself, so nothing is planned for
        // them.
        const std::string key = RequestKey(call->request);
        if ((!call->request.request_id().empty() &&
             (state.requests.contains(key) || state.used_requests.contains(key))) ||
            state.jobs.contains(call->request.job().name())) {
          return done(OkStatus());
        }
        // The machine decides; this spares the plan of a job that it would refuse.
        if (const Status admitted = CheckAdmission(state, call->request.job().name(), call->creator,
                                                   SystemClock().Now());
            !admitted.ok()) {
          return done(admitted);
        }
        if (const v1::Namespace* const space =
                FindNamespaceOf(state.options.namespaces.get(), call->request.job().name())) {
          call->roots = space->roots();
        }
        v1::JobSpec stated = call->request.job();
        FillCheckpointFolder(state.options, &stated);
        RunPlan(guard, guarded, pools.plans,
                [call, &guard, guarded, check_files, data_checks = pools.data_checks, &looks,
                 stated, planner = state.options.planner,
                 must_be_here = AllWorkersAreHere(state.fleet), answer, done](const Status& turn) {
                  if (!turn.ok()) return answer(turn);  // RunPlan has recorded a refusal
                  call->prepared = std::make_shared<const PreparedJob>(Prepare(planner, stated));
                  const StatusOr<UserTicket> ticket = guard.AwaitPlan(guarded);
                  if (!ticket.ok()) return answer(ticket.status());
                  CheckData(*call, check_files, must_be_here, data_checks, looks, *ticket, done);
                });
      },
      [call](CallId id) {
        return What(CreateJobCall{id, call->request, call->prepared, call->creator});
      },
      FillJob(response), RecordRefusals(guard_, guarded));
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceShell::GetJob(grpc::CallbackServerContext* context,
                                                  const v1::GetJobRequest* request,
                                                  v1::GetJobResponse* response) {
  return Read(engine_, MayUse(guard_, *context, "/troupe.v1.JobService/GetJob", request->name()),
              ViewJob, request, response);
}

grpc::ServerUnaryReactor* JobServiceShell::ListJobs(grpc::CallbackServerContext* context,
                                                    const v1::ListJobsRequest* request,
                                                    v1::ListJobsResponse* response) {
  return ReadSeen(engine_, SeenBy(guard_, *context, "/troupe.v1.JobService/ListJobs"), ViewJobs,
                  request, response);
}

grpc::ServerWriteReactor<v1::WatchJobResponse>* JobServiceShell::WatchJob(
    grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) {
  StatusOr<UserTicket> ticket =
      AdmitStream(guard_, *context, "/troupe.v1.JobService/WatchJob", *request);
  if (!ticket.ok()) return new StreamRefusal<v1::WatchJobResponse>(ticket.status());
  return NewWatchReactor(engine_, store_, pools_.history, audit_, *context, *request,
                         *std::move(ticket));
}

grpc::ServerUnaryReactor* JobServiceShell::CancelJob(grpc::CallbackServerContext* context,
                                                     const v1::CancelJobRequest* request,
                                                     v1::CancelJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  constexpr char kRpc[] = "/troupe.v1.JobService/CancelJob";
  if (!AdmitChange(audit_, MayUse(guard_, *context, kRpc, request->name()), *context, kRpc,
                   *request, JobName(request->name()), reactor))
    return reactor;
  reactor->Call(MakeEvent<CancelJobCall>(*request), FillJob(response));
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceShell::DeleteJob(grpc::CallbackServerContext* context,
                                                     const v1::DeleteJobRequest* request,
                                                     v1::DeleteJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  constexpr char kRpc[] = "/troupe.v1.JobService/DeleteJob";
  if (!AdmitChange(audit_, MayUse(guard_, *context, kRpc, request->name()), *context, kRpc,
                   *request, JobName(request->name()), reactor))
    return reactor;
  reactor->Call(MakeEvent<DeleteJobCall>(*request), FillJob(response));
  return reactor;
}

grpc::ServerUnaryReactor* JobServiceShell::ResumeJob(grpc::CallbackServerContext* context,
                                                     const v1::ResumeJobRequest* request,
                                                     v1::ResumeJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  constexpr char kRpc[] = "/troupe.v1.JobService/ResumeJob";
  const GuardedCall guarded(guard_, *context, kRpc);
  if (!AdmitChange(audit_, guard_.CheckSpec(guarded, request->name(), request->overrides()),
                   *context, kRpc, *request, JobName(request->name()), reactor))
    return reactor;
  const auto call = std::make_shared<Resumption>();
  call->request = *request;
  reactor->CallAfter(
      [call, guarded, &guard = guard_, plans = pools_.plans](const CoordinatorState& state,
                                                             std::function<void(Status)> done) {
        const auto job = state.jobs.find(JobId(call->request.name()));
        // The machine reports the error, so nothing is planned.
        if (job == state.jobs.end() ||
            !CheckResumable(job->second, call->request.overrides()).ok()) {
          return done(OkStatus());
        }
        const auto inputs =
            std::make_shared<const ResumeInputs>(InputsOfResume(job->second, call->request));
        RunPlan(
            guard, guarded, plans,
            [call, guarded, &guard, inputs, planner = state.options.planner,
             done](const Status& turn) {
              if (!turn.ok()) return done(turn);
              call->prepared =
                  std::make_shared<const PreparedResume>(PrepareResume(planner, *inputs));
              // The roots may have changed since the job was created.
              const auto& spec = call->prepared->spec;
              done(spec.ok() ? guard.CheckSpec(guarded, call->request.name(), *spec) : OkStatus());
            });
      },
      [call](CallId id) {
        return What(ResumeJobCall{id, call->request, call->prepared});
      },
      FillJob(response), RecordRefusals(guard_, guarded));
  return reactor;
}

grpc::ServerWriteReactor<v1::ReadJobLogsResponse>* JobServiceShell::ReadJobLogs(
    grpc::CallbackServerContext* context, const v1::ReadJobLogsRequest* request) {
  StatusOr<UserTicket> ticket =
      AdmitStream(guard_, *context, "/troupe.v1.JobService/ReadJobLogs", *request);
  if (!ticket.ok()) return new StreamRefusal<v1::ReadJobLogsResponse>(ticket.status());
  return NewLogReactor(engine_, audit_, *context, *request, *std::move(ticket));
}

grpc::ServerUnaryReactor* JobServiceShell::GetJobReceipt(grpc::CallbackServerContext* context,
                                                         const v1::GetJobReceiptRequest* request,
                                                         v1::GetJobReceiptResponse* response) {
  return Read(engine_,
              MayUse(guard_, *context, "/troupe.v1.JobService/GetJobReceipt", request->name()),
              ViewReceipt, request, response);
}

grpc::ServerUnaryReactor* JobServiceShell::TraceJob(grpc::CallbackServerContext* context,
                                                    const v1::TraceJobRequest* request,
                                                    v1::TraceJobResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  constexpr char kRpc[] = "/troupe.v1.JobService/TraceJob";
  if (!AdmitChange(audit_, MayUse(guard_, *context, kRpc, request->name()), *context, kRpc,
                   *request, JobName(request->name()), reactor))
    return reactor;
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
  // A plan needs no name, and opens no file.
  const GuardedCall guarded(guard_, *context, "/troupe.v1.PlanService/PlanJob");
  const std::string& name = request->job().name();
  Status admitted = name.empty() ? OkStatus() : guard_.CheckJob(guarded, name);
  if (admitted.ok()) admitted = CheckRequestBytes(*request);
  if (!admitted.ok()) {
    reactor->FinishWith(admitted);
    return reactor;
  }
  // Copies the request, which is destroyed once the call has ended.
  reactor->QueryThen([plans = plans_, &guard = guard_, guarded, owned = *request, response](
                         const CoordinatorState& state, const CallReactor::Ended& ended,
                         const CallReactor::EndWith& finish) {
    auto inputs = std::make_shared<const PlanInputs>(ViewPlanInputs(state, owned));
    RunPlan(guard, guarded, plans, [inputs, ended, finish, response](const Status& turn) {
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
  return Read(
      engine_,
      MayUse(guard_, *context, "/troupe.v1.CheckpointService/ListCheckpoints", request->job()),
      ViewCheckpoints, request, response);
}

grpc::ServerUnaryReactor* CheckpointServiceShell::GetCheckpoint(
    grpc::CallbackServerContext* context, const v1::GetCheckpointRequest* request,
    v1::GetCheckpointResponse* response) {
  return Read(
      engine_,
      MayUse(guard_, *context, "/troupe.v1.CheckpointService/GetCheckpoint", request->job()),
      ViewCheckpoint, request, response);
}

grpc::ServerUnaryReactor* CheckpointServiceShell::CreateCheckpoint(
    grpc::CallbackServerContext* context, const v1::CreateCheckpointRequest* request,
    v1::CreateCheckpointResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  constexpr char kRpc[] = "/troupe.v1.CheckpointService/CreateCheckpoint";
  if (!AdmitChange(audit_, MayUse(guard_, *context, kRpc, request->job()), *context, kRpc, *request,
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
  constexpr char kRpc[] = "/troupe.v1.CheckpointService/PinCheckpoint";
  if (!AdmitChange(audit_, MayUse(guard_, *context, kRpc, request->job()), *context, kRpc, *request,
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
  // Operators only, who may use every job.
  if (!AdmitChange(audit_, OkStatus(), *context, "/troupe.v1.CheckpointService/LiftQuarantine",
                   *request, request->path(), reactor))
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
  constexpr char kRpc[] = "/troupe.v1.CheckpointService/RebuildJob";
  const GuardedCall guarded(guard_, *context, kRpc);
  if (!AdmitChange(audit_, guard_.CheckRebuild(guarded, *request), *context, kRpc, *request,
                   JobName(request->job().name()), reactor))
    return reactor;
  const auto call = std::make_shared<Rebuilding>();
  call->request = *request;
  call->creator = guarded.user();
  reactor->CallAfter(
      [call, guarded, &guard = guard_, plans = plans_](const CoordinatorState& state,
                                                       std::function<void(Status)> done) {
        // The machine refuses a name that is taken.
        if (state.jobs.contains(call->request.job().name())) return done(OkStatus());
        RunPlan(guard, guarded, plans,
                [call, planner = state.options.planner, done](const Status& turn) {
                  if (!turn.ok()) return done(turn);
                  call->prepared =
                      std::make_shared<const PreparedJob>(Prepare(planner, call->request.job()));
                  done(OkStatus());
                });
      },
      [call](CallId id) {
        return What(RebuildJobCall{id, call->request, call->prepared, call->creator});
      },
      FillJob(response), RecordRefusals(guard_, guarded));
  return reactor;
}

}  // namespace troupe
