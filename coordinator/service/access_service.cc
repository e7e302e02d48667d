#include "coordinator/service/access_service.h"

#include <string>
#include <utility>

#include "base/security/certificate.h"
#include "base/security/user_token.h"
#include "coordinator/access/revocations.h"
#include "coordinator/service/grpc_status.h"
#include "coordinator/service/request_bytes.h"

namespace troupe {
namespace {

constexpr size_t kMostTargetText = 64;  // bytes of a text of a request in the audit log

// Ends the call at once.
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace

// Checks the size of the request, records the call and ends it with the status of `change`, which
// runs on the executor's thread. Request and response of a call live until it has ended.
template <typename Request>
grpc::ServerUnaryReactor* AccessServiceShell::Change(grpc::CallbackServerContext* context,
                                                     const Request& request, std::string_view rpc,
                                                     const std::string& target,
                                                     std::function<Status()> change) {
  Status admitted = CheckRequestBytes(request);
  if (admitted.ok()) admitted = RecordChange(audit_, *context, rpc, target);
  if (!admitted.ok()) return Answer(context, admitted);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const bool runs = changes_.Run(
      [reactor, change = std::move(change)] { reactor->Finish(ToGrpcStatus(change())); });
  if (!runs) {
    reactor->Finish(ToGrpcStatus(ResourceExhausted(
        "{} changes of tokens and revocations wait: try again", kMostWaitingChanges)));
  }
  return reactor;
}

grpc::ServerUnaryReactor* AccessServiceShell::CreateUserToken(
    grpc::CallbackServerContext* context, const v1::CreateUserTokenRequest* request,
    v1::CreateUserTokenResponse* response) {
  const auto parts = MakeUserToken(audit_.access.cluster());
  if (!parts.ok()) return Answer(context, parts.status());
  const std::string target =
      fmt::format("tokens/{} {} {}", parts->id, request->role().substr(0, kMostTargetText),
                  request->name().substr(0, kMostTargetText));
  return Change(context, *request, "/troupe.v1.AccessService/CreateUserToken", target,
                [&access = audit_.access, request, response, parts = *parts,
                 by = CallerName(audit_, *context)]() -> Status {
                  TROUPE_ASSIGN_OR_RETURN(*response->mutable_token(),
                                          access.CreateToken(*request, parts, by));
                  response->set_text(UserTokenText(parts));
                  return OkStatus();
                });
}

grpc::ServerUnaryReactor* AccessServiceShell::ListUserTokens(
    grpc::CallbackServerContext* context, const v1::ListUserTokensRequest* request,
    v1::ListUserTokensResponse* response) {
  if (const Status small = CheckRequestBytes(*request); !small.ok()) return Answer(context, small);
  for (v1::UserToken& token : audit_.access.ListTokens())
    *response->add_tokens() = std::move(token);
  return Answer(context, OkStatus());
}

grpc::ServerUnaryReactor* AccessServiceShell::RevokeUserToken(
    grpc::CallbackServerContext* context, const v1::RevokeUserTokenRequest* request,
    v1::RevokeUserTokenResponse* response) {
  return Change(
      context, *request, "/troupe.v1.AccessService/RevokeUserToken",
      "tokens/" + request->id().substr(0, kMostTargetText),
      [&access = audit_.access, request, response, by = CallerName(audit_, *context)]() -> Status {
        TROUPE_ASSIGN_OR_RETURN(*response->mutable_token(), access.RevokeToken(request->id(), by));
        return OkStatus();
      });
}

grpc::ServerUnaryReactor* AccessServiceShell::RevokeCertificate(
    grpc::CallbackServerContext* context, const v1::RevokeCertificateRequest* request,
    v1::RevokeCertificateResponse* response) {
  const bool has_serial = request->which_case() == v1::RevokeCertificateRequest::kSerial;
  const std::string target = has_serial ? "certificates/" + request->serial() : request->identity();
  return Change(context, *request, "/troupe.v1.AccessService/RevokeCertificate", target,
                [this, request, response, by = CallerName(audit_, *context)]() -> Status {
                  TROUPE_RETURN_IF_ERROR(CheckIsNotOwn(*request));
                  TROUPE_ASSIGN_OR_RETURN(*response->mutable_revocation(),
                                          audit_.access.RevokeCertificate(*request, by));
                  return OkStatus();
                });
}

// Files that cannot be used now hinder no revocation.
Status AccessServiceShell::CheckIsNotOwn(const v1::RevokeCertificateRequest& request) const {
  if (!tls_) return OkStatus();
  const auto contents = ReadTlsContents(*tls_);
  if (!contents.ok()) return OkStatus();
  const auto own = ReadCertificate(contents->certificate);
  return own.ok() ? troupe::CheckIsNotOwn(request, *own) : OkStatus();
}

grpc::ServerUnaryReactor* AccessServiceShell::ListRevocations(
    grpc::CallbackServerContext* context, const v1::ListRevocationsRequest* request,
    v1::ListRevocationsResponse* response) {
  if (const Status small = CheckRequestBytes(*request); !small.ok()) return Answer(context, small);
  for (v1::Revocation& revocation : audit_.access.ListRevocations())
    *response->add_revocations() = std::move(revocation);
  return Answer(context, OkStatus());
}

}  // namespace troupe
