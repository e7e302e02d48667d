// The callers of the handlers, the records of what they change, and the end of their streams when
// their access ends.
#ifndef TROUPE_COORDINATOR_SERVICE_CALL_AUDIT_H_
#define TROUPE_COORDINATOR_SERVICE_CALL_AUDIT_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "coordinator/access/access_control.h"
#include "coordinator/access/audit_log.h"
#include "coordinator/access/caller.h"
#include "coordinator/access/internal_caller.h"
#include "coordinator/state/event.h"

namespace troupe {

inline constexpr char kSessionRpc[] = "/troupe.v1.WorkerService/Session";

// The log and the access of one server.
struct CallAudit {
  AuditLog& log;
  AccessControl& access;
  const InternalCaller* internal = nullptr;  // null: this process calls itself for no user
};

// Returns the caller; absent on a connection without TLS. In a server with TLS, a call without a
// connection is that of the internal caller or of a viewer of the page (internal_caller.h).
// UNAUTHENTICATED if the caller's access has ended since the call began.
StatusOr<std::optional<Caller>> CallerOf(const CallAudit& audit,
                                         const grpc::CallbackServerContext& context);

// Returns the caller without an identity as audit records name it: its address, submitters/NAME for
// the internal caller, or "page" for a viewer of the page.
std::string PeerName(const CallAudit& audit, const grpc::CallbackServerContext& context);

// Returns the caller as audit records name it; that of PeerName for one without an identity.
std::string CallerName(const CallAudit& audit, const grpc::CallbackServerContext& context);

// Records a call of `rpc` before it is executed. A call that cannot be recorded must not be
// executed.
Status RecordChange(const CallAudit& audit, const grpc::CallbackServerContext& context,
                    std::string_view rpc, const std::string& target);

// Records that a worker's rank refused a path of its job, as a refusal of the worker's session:
// under the URI of the worker's certificate, without TLS under workers/NAME.
void RecordRefusedPath(const CallAudit& audit, const RefusedPath& path);

// Has `end` called once, on any thread, when the caller's access ends (AccessControl::Guard). Null
// without TLS.
StatusOr<std::unique_ptr<StreamGuard>> GuardStream(const CallAudit& audit,
                                                   const grpc::CallbackServerContext& context,
                                                   std::string_view rpc,
                                                   std::function<void(const Status&)> end);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_CALL_AUDIT_H_
