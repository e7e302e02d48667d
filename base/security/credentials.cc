#include "base/security/credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/security/tls_watch.h"

namespace troupe {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::FileWatcherCertificateProvider;
using grpc::experimental::TlsCredentialsOptions;
using grpc::experimental::TlsCustomVerificationCheckRequest;

constexpr unsigned int kRefresh = 1;  // seconds between two looks of gRPC at a TlsWatch's files

// Checks the identity of a peer whose certificate an authority signed. gRPC destroys a verifier
// with the last server, channel or connection that uses the credentials, so it also owns the watch,
// if there is one.
class PeerVerifier : public ExternalCertificateVerifier {
 public:
  using Check = std::function<Status(const std::vector<std::string>& uris)>;

  PeerVerifier(std::shared_ptr<TlsWatch> watch, Check check)
      : watch_(std::move(watch)), check_(std::move(check)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    std::vector<std::string> uris;
    for (const grpc::string_ref& uri : request->uri_names()) {
      uris.emplace_back(uri.data(), uri.size());
    }
    const Status status = check_(uris);
    *sync_status =
        status.ok() ? grpc::Status::OK
                    : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(Message(status)));
    return true;
  }

  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<TlsWatch> watch_;
  const Check check_;
};

Status CheckCoordinator(const std::string& cluster, const std::vector<std::string>& uris) {
  TROUPE_ASSIGN_OR_RETURN(const Identity server, ParseSoleIdentity(uris));
  if (server.cluster == cluster && server.role == Role::kCoordinator) return OkStatus();
  return InvalidArgument("the server is {}, and not a coordinator of the cluster {}", ToUri(server),
                         cluster);
}

// Provides what `watch` keeps: all of it, or the authorities alone.
std::shared_ptr<FileWatcherCertificateProvider> ProviderOf(const TlsWatch& watch,
                                                           bool has_certificate) {
  if (!has_certificate)
    return std::make_shared<FileWatcherCertificateProvider>(watch.authority_path(), kRefresh);
  return std::make_shared<FileWatcherCertificateProvider>(
      watch.identity_path(), watch.identity_path(), watch.authority_path(), kRefresh);
}

PeerVerifier::Check CoordinatorOf(const std::string& cluster) {
  return
      [cluster](const std::vector<std::string>& uris) { return CheckCoordinator(cluster, uris); };
}

void Watch(std::shared_ptr<TlsWatch> watch, bool has_certificate, PeerVerifier::Check check,
           TlsCredentialsOptions* options) {
  options->watch_root_certs();
  if (has_certificate) options->watch_identity_key_cert_pairs();
  options->set_certificate_verifier(
      ExternalCertificateVerifier::Create<PeerVerifier>(std::move(watch), std::move(check)));
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsServerCredentialsOf(const TlsFiles& files) {
  auto watch = std::make_shared<TlsWatch>(files);
  grpc::experimental::TlsServerCredentialsOptions options(ProviderOf(*watch, true));
  // A client without a certificate may hold a token, which the server's code checks, or may have
  // neither yet.
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  // The server's code checks identities, call by call, because it knows the roles that a call
  // needs.
  const auto accept = [](const std::vector<std::string>&) { return OkStatus(); };
  Watch(std::move(watch), true, accept, &options);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsChannelCredentialsOf(const TlsFiles& files) {
  auto watch = std::make_shared<TlsWatch>(files);
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(ProviderOf(*watch, files.has_certificate()));
  options.set_check_call_host(false);
  Watch(std::move(watch), files.has_certificate(), CoordinatorOf(files.identity.cluster), &options);
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> AnonymousChannelCredentials(
    const std::string& authorities, const std::string& cluster) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(authorities));
  options.watch_root_certs();
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      ExternalCertificateVerifier::Create<PeerVerifier>(nullptr, CoordinatorOf(cluster)));
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> UnverifiedChannelCredentials() {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TokenChannelCredentialsOf(const TlsFiles& files,
                                                                    const std::string& token) {
  return grpc::CompositeChannelCredentials(TlsChannelCredentialsOf(files),
                                           grpc::AccessTokenCredentials(token));
}

}  // namespace troupe
