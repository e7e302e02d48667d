#include "coordinator/page/page_calls.h"

#include <algorithm>
#include <utility>

#include "base/text/scaled.h"
#include "coordinator/access/access.h"
#include "coordinator/access/internal_caller.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCallLimit{3000};
constexpr milliseconds kLogsLimit{5000};
constexpr milliseconds kPageLimit{10'000};
constexpr int kLargestAnswer = 64 << 20;  // bytes
constexpr int kWorkersAtOnce = 1000;

constexpr char kListJobs[] = "/troupe.v1.JobService/ListJobs";
constexpr char kGetJob[] = "/troupe.v1.JobService/GetJob";
constexpr char kGetJobReceipt[] = "/troupe.v1.JobService/GetJobReceipt";
constexpr char kWatchJob[] = "/troupe.v1.JobService/WatchJob";
constexpr char kReadJobLogs[] = "/troupe.v1.JobService/ReadJobLogs";
constexpr char kTraceJob[] = "/troupe.v1.JobService/TraceJob";
constexpr char kListWorkers[] = "/troupe.v1.ClusterService/ListWorkers";

Status StatusOf(const grpc::Status& status) {
  return MakeStatus(static_cast<StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

PageChannel::PageChannel(const std::shared_ptr<grpc::Channel>& channel, std::string internal_secret,
                         AuditLog& audit_log, PageContexts& page_contexts)
    : jobs(v1::JobService::NewStub(channel)),
      cluster(v1::ClusterService::NewStub(channel)),
      secret(std::move(internal_secret)),
      audit(audit_log),
      contexts(page_contexts) {}

grpc::ChannelArguments PageChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestAnswer);
  return arguments;
}

std::string Viewer::Name() const {
  if (!caller) return "";
  return fmt::format("{}/{}", RoleName(caller->identity->role), caller->identity->name);
}

PageCalls::PageCalls(const PageChannel& channel, const Viewer& viewer)
    : channel_(channel), viewer_(viewer), end_(std::chrono::system_clock::now() + kPageLimit) {}

Status PageCalls::Begin(milliseconds limit, PageContext* opened) const {
  grpc::ClientContext* const context = opened->get();
  context->set_deadline(std::min(std::chrono::system_clock::now() + limit, end_));
  context->AddMetadata(kInternalCallerKey, channel_.secret);
  context->AddMetadata(kViewerKey, "1");
  const auto& [certificate, token] = viewer_.credentials;
  if (!certificate.empty()) context->AddMetadata(kViewerCertificateKey, certificate);
  if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
  return opened->Open();
}

Status PageCalls::CheckRole(std::string_view rpc) const {
  return viewer_.caller ? CheckAccess(rpc, *viewer_.caller->identity) : OkStatus();
}

Status PageCalls::CheckAndRecordRole(std::string_view rpc) const {
  Status allowed = CheckRole(rpc);
  if (!allowed.ok()) {
    channel_.audit.AppendRefusal(AuditNameOf(*viewer_.caller), std::string(rpc),
                                 std::string(Message(allowed)));
  }
  return allowed;
}

StatusOr<v1::ListJobsResponse> PageCalls::ListJobs(const std::string& state,
                                                   const std::string& in_namespace) {
  TROUPE_RETURN_IF_ERROR(CheckAndRecordRole(kListJobs));
  v1::ListJobsRequest request;
  request.set_page_size(kMostJobs);
  request.set_state(state);
  request.set_in_namespace(in_namespace);
  request.set_active_first(true);
  v1::ListJobsResponse response;
  PageContext context(channel_.contexts);
  TROUPE_RETURN_IF_ERROR(Begin(kCallLimit, &context));
  TROUPE_RETURN_IF_ERROR(StatusOf(channel_.jobs->ListJobs(context.get(), request, &response)));
  return response;
}

StatusOr<WorkersPart> PageCalls::ListWorkers() {
  TROUPE_RETURN_IF_ERROR(CheckAndRecordRole(kListWorkers));
  WorkersPart part;
  v1::ListWorkersRequest request;
  request.set_page_size(kWorkersAtOnce);
  do {
    v1::ListWorkersResponse response;
    PageContext context(channel_.contexts);
    TROUPE_RETURN_IF_ERROR(Begin(kCallLimit, &context));
    TROUPE_RETURN_IF_ERROR(
        StatusOf(channel_.cluster->ListWorkers(context.get(), request, &response)));
    for (v1::WorkerStatus& worker : *response.mutable_workers()) {
      if (part.workers.size() < kMostWorkers) {
        part.workers.push_back(std::move(worker));
      } else {
        ++part.more;
      }
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return part;
}

StatusOr<v1::Job> PageCalls::GetJob(const std::string& name) {
  TROUPE_RETURN_IF_ERROR(CheckAndRecordRole(kGetJob));
  v1::GetJobRequest request;
  request.set_name(name);
  v1::GetJobResponse response;
  PageContext context(channel_.contexts);
  TROUPE_RETURN_IF_ERROR(Begin(kCallLimit, &context));
  TROUPE_RETURN_IF_ERROR(StatusOf(channel_.jobs->GetJob(context.get(), request, &response)));
  return std::move(*response.mutable_job());
}

StatusOr<v1::Receipt> PageCalls::GetReceipt(const std::string& name) {
  TROUPE_RETURN_IF_ERROR(CheckAndRecordRole(kGetJobReceipt));
  v1::GetJobReceiptRequest request;
  request.set_name(name);
  v1::GetJobReceiptResponse response;
  PageContext context(channel_.contexts);
  TROUPE_RETURN_IF_ERROR(Begin(kCallLimit, &context));
  TROUPE_RETURN_IF_ERROR(StatusOf(channel_.jobs->GetJobReceipt(context.get(), request, &response)));
  return std::move(*response.mutable_receipt());
}

Status PageCalls::CheckMayTrace() const { return CheckRole(kTraceJob); }

StatusOr<v1::TraceJobResponse> PageCalls::TraceStep(const std::string& name, int64_t step) {
  TROUPE_RETURN_IF_ERROR(CheckAndRecordRole(kTraceJob));
  v1::TraceJobRequest request;
  request.set_name(name);
  request.set_first_step(step);
  request.set_last_step(step);
  v1::TraceJobResponse response;
  PageContext context(channel_.contexts);
  TROUPE_RETURN_IF_ERROR(Begin(kCallLimit, &context));
  TROUPE_RETURN_IF_ERROR(StatusOf(channel_.jobs->TraceJob(context.get(), request, &response)));
  return response;
}

Status PageCalls::CheckMayReadLogs() const { return CheckAndRecordRole(kReadJobLogs); }

Status PageCalls::ReadHistory(const v1::WatchJobRequest& request, milliseconds limit,
                              const std::function<bool(v1::WatchJobResponse)>& take) {
  TROUPE_RETURN_IF_ERROR(CheckAndRecordRole(kWatchJob));
  PageContext context(channel_.contexts);
  TROUPE_RETURN_IF_ERROR(Begin(limit, &context));
  const auto reader = channel_.jobs->WatchJob(context.get(), request);
  bool goes_on = true;
  v1::WatchJobResponse response;
  while (goes_on && reader->Read(&response)) goes_on = take(std::move(response));
  if (!goes_on) context.get()->TryCancel();  // the stream of a job that runs does not end by itself
  const Status status = StatusOf(reader->Finish());
  return goes_on ? status : OkStatus();
}

Status PageCalls::ReadLogs(const v1::ReadJobLogsRequest& request,
                           const std::function<void(const std::string&)>& take) {
  TROUPE_RETURN_IF_ERROR(CheckAndRecordRole(kReadJobLogs));
  PageContext context(channel_.contexts);
  TROUPE_RETURN_IF_ERROR(Begin(kLogsLimit, &context));
  const auto reader = channel_.jobs->ReadJobLogs(context.get(), request);
  size_t bytes = 0;
  v1::ReadJobLogsResponse response;
  while (bytes <= kMostLogBytes && reader->Read(&response)) {
    bytes += response.ByteSizeLong();
    for (const std::string& line : response.lines()) take(line);
  }
  if (bytes > kMostLogBytes) context.get()->TryCancel();
  const Status status = StatusOf(reader->Finish());
  if (bytes <= kMostLogBytes) return status;
  return ResourceExhausted("the logs have more than {}, of which later lines are missing here",
                           Scaled(kMostLogBytes, "B"));
}

}  // namespace troupe
