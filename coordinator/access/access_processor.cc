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

}  // namespace

std::string CertificateOf(const grpc::AuthContext& peer) {
  return Property(peer, GRPC_X509_PEM_CERT_PROPERTY_NAME);
}

Status AccessProcessor::CheckPeer(std::string_view rpc, const grpc::AuthContext& peer,
                                  std::string* name) const {
  const std::string certificate = CertificateOf(peer);
  if (certificate.empty()) {
    *name = "anonymous";
    return CheckAnonymousAccess(rpc);
  }
  const auto caller = Authenticate(certificate, cluster_, WallSeconds(clock_));
  *name = caller.ok() ? ToUri(*caller) : Property(peer, GRPC_PEER_URI_PROPERTY_NAME);
  return caller.ok() ? CheckCall(rpc, *caller) : caller.status();
}

Status AccessProcessor::CheckCall(std::string_view rpc, const Identity& caller) const {
  TROUPE_RETURN_IF_ERROR(CheckAccess(rpc, caller));
  if (reflects_ || !rpc.starts_with("/grpc.reflection.")) return OkStatus();
  return PermissionDenied("{} is served on the loopback only, or with --insecure", rpc);
}

grpc::Status AccessProcessor::Process(const InputMetadata& auth_metadata,
                                      grpc::AuthContext* context, OutputMetadata*,
                                      OutputMetadata*) {
  const auto path = auth_metadata.find(":path");
  const std::string rpc = path == auth_metadata.end() ? std::string() : Text(path->second);
  std::string name;
  const Status access = CheckPeer(rpc, *context, &name);
  if (access.ok()) return grpc::Status::OK;
  audit_.AppendRefusal(name, rpc, std::string(Message(access)));
  return {static_cast<grpc::StatusCode>(access.code()), std::string(Message(access))};
}

}  // namespace troupe
