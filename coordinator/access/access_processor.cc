#include "coordinator/access/access_processor.h"

#include <grpc/grpc_security_constants.h>

#include <vector>

#include "coordinator/access/access.h"

namespace troupe {
namespace {

constexpr int64_t kNanosecondsInASecond = 1'000'000'000;

std::string Text(const grpc::string_ref& text) { return {text.data(), text.size()}; }

std::string Property(const grpc::AuthContext& peer, const char* name) {
  const std::vector<grpc::string_ref> values = peer.FindPropertyValues(name);
  return values.empty() ? std::string() : Text(values.front());
}

}  // namespace

std::string CertificateOf(const grpc::AuthContext& peer) {
  return Property(peer, GRPC_X509_PEM_CERT_PROPERTY_NAME);
}

grpc::Status AccessProcessor::Process(const InputMetadata& auth_metadata,
                                      grpc::AuthContext* context, OutputMetadata*,
                                      OutputMetadata*) {
  const auto path = auth_metadata.find(":path");
  const std::string rpc = path == auth_metadata.end() ? std::string() : Text(path->second);
  const int64_t now_seconds = clock_.WallNanoseconds() / kNanosecondsInASecond;
  const auto caller = Authenticate(CertificateOf(*context), cluster_, now_seconds);
  const Status access = caller.ok() ? CheckAccess(rpc, *caller) : caller.status();
  if (access.ok()) return grpc::Status::OK;
  audit_.AppendRefusal(
      caller.ok() ? ToUri(*caller) : Property(*context, GRPC_PEER_URI_PROPERTY_NAME), rpc,
      std::string(Message(access)));
  return {static_cast<grpc::StatusCode>(access.code()), std::string(Message(access))};
}

}  // namespace troupe
