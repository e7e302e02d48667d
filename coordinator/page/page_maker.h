// Makes the answers to requests for the coordinator's page: who asks is authenticated, then the
// data are fetched for that viewer (page_calls.h) and drawn (report/live/).
#ifndef TROUPE_COORDINATOR_PAGE_PAGE_MAKER_H_
#define TROUPE_COORDINATOR_PAGE_PAGE_MAKER_H_

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/http/http_page.h"
#include "base/status.h"
#include "coordinator/access/access_control.h"
#include "coordinator/access/audit_log.h"
#include "coordinator/page/page_calls.h"
#include "coordinator/page/page_request.h"
#include "coordinator/page/shared_logs.h"
#include "coordinator/page/watched_jobs.h"
#include "report/live/job_html.h"

namespace troupe {

// Thread-safe; an answer takes at most about ten seconds.
class PageMaker {
 public:
  struct Options {
    bool has_tls = false;                    // viewers are authenticated
    std::shared_ptr<grpc::Channel> channel;  // in-process, with PageChannelArguments
    std::string secret;                      // that of the internal caller
    // These outlive the object.
    const AccessControl* access = nullptr;
    AuditLog* audit = nullptr;
    const Clock* clock = nullptr;
  };

  explicit PageMaker(const Options& options);

  HttpPage Answer(const HttpRequest& request);

  // Ends the calls of pages that are being made, and lets no other begin: these pages, and later
  // ones, have errors in place of data. REQUIRES: the services still run.
  void EndCalls() { contexts_.EndAll(); }

 private:
  // Returns the page without the headers of every answer.
  HttpPage PageOf(const HttpRequest& request, const PageRoute& route);
  // UNAUTHENTICATED if the viewer is not known; recorded if the request has a certificate or a
  // header Authorization.
  StatusOr<Viewer> Authenticate(const HttpRequest& request) const;

  StatusOr<std::string> Cluster(const Viewer& viewer, const PageRoute& route) const;
  StatusOr<std::string> OneJob(const Viewer& viewer, const PageRoute& route);
  StatusOr<std::string> Logs(const Viewer& viewer, const PageRoute& route);
  // These fill in a part of a job's page, or why it is not there.
  void AddSteps(PageCalls& calls, WatchedJob& watched, JobView* view) const;
  void AddTrace(PageCalls& calls, WatchedJob& watched, JobView* view);

  const Options options_;
  PageContexts contexts_;
  const PageChannel channel_;
  WatchedJobs watched_;
  SharedLogs logs_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_PAGE_MAKER_H_
