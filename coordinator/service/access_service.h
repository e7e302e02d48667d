// AccessService: tokens of users, and revocations of certificates.
//
// Overload: at most kMostWaitingChanges changes wait for the disk; further ones are refused with
// RESOURCE_EXHAUSTED.
#ifndef TROUPE_COORDINATOR_SERVICE_ACCESS_SERVICE_H_
#define TROUPE_COORDINATOR_SERVICE_ACCESS_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "base/security/tls_files.h"
#include "base/serial_executor.h"
#include "base/status.h"
#include "coordinator/service/call_audit.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

inline constexpr size_t kMostWaitingChanges = 64;

// Thread-safe. What `audit` refers to outlives the service and its calls. `tls` has the
// coordinator's own certificate, which is read again for each revocation of a serial number.
class AccessServiceShell final : public v1::AccessService::CallbackService {
 public:
  AccessServiceShell(const CallAudit& audit, std::optional<TlsFiles> tls)
      : audit_(audit), tls_(std::move(tls)) {}

  grpc::ServerUnaryReactor* CreateUserToken(grpc::CallbackServerContext* context,
                                            const v1::CreateUserTokenRequest* request,
                                            v1::CreateUserTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListUserTokens(grpc::CallbackServerContext* context,
                                           const v1::ListUserTokensRequest* request,
                                           v1::ListUserTokensResponse* response) override;
  grpc::ServerUnaryReactor* RevokeUserToken(grpc::CallbackServerContext* context,
                                            const v1::RevokeUserTokenRequest* request,
                                            v1::RevokeUserTokenResponse* response) override;
  grpc::ServerUnaryReactor* RevokeCertificate(grpc::CallbackServerContext* context,
                                              const v1::RevokeCertificateRequest* request,
                                              v1::RevokeCertificateResponse* response) override;
  grpc::ServerUnaryReactor* ListRevocations(grpc::CallbackServerContext* context,
                                            const v1::ListRevocationsRequest* request,
                                            v1::ListRevocationsResponse* response) override;

 private:
  template <typename Request>
  grpc::ServerUnaryReactor* Change(grpc::CallbackServerContext* context, const Request& request,
                                   std::string_view rpc, const std::string& target,
                                   std::function<Status()> change);

  Status CheckIsNotOwn(const v1::RevokeCertificateRequest& request) const;

  const CallAudit audit_;
  const std::optional<TlsFiles> tls_;
  SerialExecutor changes_{kMostWaitingChanges};  // they wait for the disk
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_ACCESS_SERVICE_H_
