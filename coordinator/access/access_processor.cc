#include "coordinator/access/access_processor.h"

#include <grpc/grpc_security_constants.h>

#include <vector>

#include "coordinator/access/access.h"

namespace troupe {
namespace {

std::string Text(const grpc::string_ref& text) { return {text.data(), text.size()}; }

std::string Property(const grpc::AuthContext& peer, const char* name) {
  const std::vector<grpc::string_ref> values = peer.FindPropertyValues(name);
  return values.empty() ? std::string() : Text(values.front());
}

// Bytes of the name of an RPC that a refusal is recorded with: no RPC has a longer one.
constexpr size_t kMostRecordedBytesOfRpc = 100;

}  // namespace

bool HasTls(const grpc::AuthContext& peer) {
  return Property(peer, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME) ==
         GRPC_TLS_TRANSPORT_SECURITY_TYPE;
}

std::string CertificateOf(const grpc::AuthContext& peer) {
  return Property(peer, GRPC_X509_PEM_CERT_PROPERTY_NAME);
}

std::vector<std::string> AuthorizationsOf(const CallMetadata& metadata) {
  std::vector<std::string> authorizations;
  const auto [begin, end] = metadata.equal_range("authorization");
  for (auto value = begin; value != end; ++value) authorizations.push_back(Text(value->second));
  return authorizations;
}

std::string ClaimedName(const grpc::AuthContext& peer, const CallMetadata& metadata) {
  std::string uri = Property(peer, GRPC_PEER_URI_PROPERTY_NAME);
  return uri.empty() ? ClaimedToken(AuthorizationsOf(metadata)) : uri;
}

StatusOr<Caller> AuthenticateCall(const AccessControl& access, const grpc::AuthContext& peer,
                                  const CallMetadata& metadata) {
  return access.Authenticate(CertificateOf(peer), AuthorizationsOf(metadata));
}

Status AccessProcessor::CheckCall(std::string_view rpc, const Caller& caller) const {
  TROUPE_RETURN_IF_ERROR(caller.identity ? CheckAccess(rpc, *caller.identity)
                                         : CheckAnonymousAccess(rpc));
  if (reflects_ || !rpc.starts_with("/grpc.reflection.")) return OkStatus();
  return PermissionDenied("{} is served on the loopback only, or with --insecure", rpc);
}

grpc::Status AccessProcessor::Process(const InputMetadata& auth_metadata,
                                      grpc::AuthContext* context, OutputMetadata*,
                                      OutputMetadata*) {
  const auto path = auth_metadata.find(":path");
  // A refusal is recorded with the name, which a stranger may make as long as a message.
  const std::string rpc = path == auth_metadata.end()
                              ? std::string()
                              : Text(path->second.substr(0, kMostRecordedBytesOfRpc));
  const auto caller = AuthenticateCall(access_, *context, auth_metadata);
  const Status access = caller.ok() ? CheckCall(rpc, *caller) : caller.status();
  if (access.ok()) return grpc::Status::OK;
  const std::string name =
      caller.ok() ? AuditNameOf(*caller) : ClaimedName(*context, auth_metadata);
  audit_.AppendRefusal(name, rpc, std::string(Message(access)));
  return {static_cast<grpc::StatusCode>(access.code()), std::string(Message(access))};
}

}  // namespace troupe
