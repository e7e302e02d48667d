// The calls of the coordinator's own services that make one page, on the in-process channel, for
// the viewer who asked for it: the access table, namespaces and limits of users hold as for a call
// of the viewer's own. Each call has a time limit, and all of them together have one.
#ifndef TROUPE_COORDINATOR_PAGE_PAGE_CALLS_H_
#define TROUPE_COORDINATOR_PAGE_PAGE_CALLS_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "coordinator/access/audit_log.h"
#include "coordinator/access/caller.h"
#include "coordinator/page/page_contexts.h"
#include "coordinator/page/page_request.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// The services as the page calls them. Thread-safe.
struct PageChannel {
  // `channel` is in-process, `secret` that of the internal caller; the others outlive the object.
  PageChannel(const std::shared_ptr<grpc::Channel>& channel, std::string secret, AuditLog& audit,
              PageContexts& contexts);

  const std::unique_ptr<v1::JobService::Stub> jobs;
  const std::unique_ptr<v1::ClusterService::Stub> cluster;
  const std::string secret;
  AuditLog& audit;
  PageContexts& contexts;
};

// The options of an in-process channel for the page: its answers may be large.
grpc::ChannelArguments PageChannelArguments();

// Who looks at the page.
struct Viewer {
  std::optional<Caller> caller;  // with an identity; absent without TLS
  ViewerCredentials credentials;

  // Returns "viewer/ann"; empty without TLS.
  std::string Name() const;
};

struct WorkersPart {
  std::vector<v1::WorkerStatus> workers;
  size_t more = 0;  // further workers
};

// Used by one thread. Its functions return the errors of the services, PERMISSION_DENIED of the
// access table, which is recorded in the audit log, DEADLINE_EXCEEDED, and CANCELLED once the
// contexts are ended.
class PageCalls {
 public:
  static constexpr int kMostJobs = 500;
  static constexpr size_t kMostWorkers = 1000;
  static constexpr size_t kMostLogBytes = size_t{80} << 20;  // size of the messages

  // The arguments outlive the object.
  PageCalls(const PageChannel& channel, const Viewer& viewer);

  // Returns those of the jobs in this state and namespace (each empty: any) that have not ended and
  // then the newest others, at most kMostJobs.
  StatusOr<v1::ListJobsResponse> ListJobs(const std::string& state,
                                          const std::string& in_namespace);
  StatusOr<WorkersPart> ListWorkers();
  StatusOr<v1::Job> GetJob(const std::string& name);
  StatusOr<v1::Receipt> GetReceipt(const std::string& name);

  // Whether the viewer's role may trace jobs. Not recorded: the page only asks whether to offer it.
  Status CheckMayTrace() const;
  StatusOr<v1::TraceJobResponse> TraceStep(const std::string& name, int64_t step);

  // Streams the history of a job to `take` until it returns false, which ends the stream with OK,
  // or for `limit`.
  Status ReadHistory(const v1::WatchJobRequest& request, std::chrono::milliseconds limit,
                     const std::function<bool(v1::WatchJobResponse)>& take);

  // PERMISSION_DENIED, which is recorded, if the viewer's role may not read logs.
  Status CheckMayReadLogs() const;
  // Streams the lines of the logs to `take`. RESOURCE_EXHAUSTED after kMostLogBytes.
  Status ReadLogs(const v1::ReadJobLogsRequest& request,
                  const std::function<void(const std::string&)>& take);

 private:
  using Time = std::chrono::system_clock::time_point;

  // Opens a call: with the viewer's credentials, and a deadline after `limit` at most.
  Status Begin(std::chrono::milliseconds limit, PageContext* opened) const;
  // PERMISSION_DENIED if the viewer's role may not call `rpc`.
  Status CheckRole(std::string_view rpc) const;
  Status CheckAndRecordRole(std::string_view rpc) const;

  const PageChannel& channel_;
  const Viewer& viewer_;
  const Time end_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_PAGE_CALLS_H_
