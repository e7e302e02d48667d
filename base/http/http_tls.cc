#include "base/http/http_tls.h"

#include <ctime>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/security/certificate.h"

namespace troupe {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kReadInterval{1};
constexpr int64_t kTimeNoteSeconds = 10;  // between two records of refused times

// Records both times of a client's certificate that is not valid now, because clocks that differ
// are a frequent reason. Only holders of signed certificates get this far.
int NoteTimes(int verified, X509_STORE_CTX* context) {
  if (verified == 1) return verified;
  const int error = X509_STORE_CTX_get_error(context);
  if (error != X509_V_ERR_CERT_NOT_YET_VALID && error != X509_V_ERR_CERT_HAS_EXPIRED) return 0;
  const auto* const session =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& noted_at = *static_cast<int64_t*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(session)));
  const int64_t now = std::time(nullptr);
  if (now - noted_at < kTimeNoteSeconds) return 0;
  noted_at = now;
  X509* const certificate = X509_STORE_CTX_get_current_cert(context);
  const auto begin = openssl::ToSeconds(X509_get0_notBefore(certificate));
  const auto end = openssl::ToSeconds(X509_get0_notAfter(certificate));
  if (begin.ok() && end.ok()) {
    LogWarning("security", "a client is refused: the certificate of {} is {}",
               fmt::join(openssl::UrisOf(certificate), " "), ValidityText(*begin, *end, now));
  }
  return 0;
}

Status Expect(bool worked, std::string_view what) {
  return worked ? OkStatus() : Internal("OpenSSL cannot {}: {}", what, openssl::OldestError());
}

}  // namespace

HttpTls::HttpTls(const TlsFiles& files, ClientCertificate clients)
    : clients_(clients),
      reader_(files, [this](const TlsContents& contents) { return Use(contents); }) {}

StatusOr<std::unique_ptr<HttpTls>> HttpTls::Make(const TlsFiles& files, ClientCertificate clients) {
  std::unique_ptr<HttpTls> tls(new HttpTls(files, clients));
  TROUPE_RETURN_IF_ERROR(tls->reader_.Read(std::time(nullptr)));
  tls->read_at_ = steady_clock::now();
  return tls;
}

Status HttpTls::Use(const TlsContents& contents) {
  const openssl::ErrorScope scope;
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  TROUPE_RETURN_IF_ERROR(Expect(context != nullptr, "make a context"));
  SSL_CTX* const raw = context.get();
  TROUPE_ASSIGN_OR_RETURN(const auto certificates,
                          openssl::ParseCertificates(contents.certificate));
  TROUPE_ASSIGN_OR_RETURN(const auto authorities, openssl::ParseCertificates(contents.authority));
  TROUPE_ASSIGN_OR_RETURN(const openssl::Key key, openssl::ParseKey(contents.key));
  TROUPE_RETURN_IF_ERROR(Expect(SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) == 1 &&
                                    SSL_CTX_use_certificate(raw, certificates[0].get()) == 1 &&
                                    SSL_CTX_use_PrivateKey(raw, key.get()) == 1,
                                "use a certificate and its key"));
  for (size_t i = 1; i < certificates.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(Expect(SSL_CTX_add1_chain_cert(raw, certificates[i].get()) == 1,
                                  "use an intermediate certificate"));
  }
  for (const auto& authority : authorities) {
    TROUPE_RETURN_IF_ERROR(
        Expect(X509_STORE_add_cert(SSL_CTX_get_cert_store(raw), authority.get()) == 1 &&
                   SSL_CTX_add_client_CA(raw, authority.get()) == 1,
               "trust an authority"));
  }
  SSL_CTX_set_app_data(raw, &noted_at_);
  const bool is_required = clients_ == ClientCertificate::kRequired;
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | (is_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     NoteTimes);
  // Every connection proves its identity anew, to the authorities that are trusted then.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(raw, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  context_ = std::move(context);
  return OkStatus();
}

TlsSession HttpTls::Accept(int descriptor) {
  if (const auto now = steady_clock::now(); now - read_at_ >= kReadInterval) {
    read_at_ = now;
    reader_.Read(std::time(nullptr)).IgnoreError();  // the log has it
  }
  const openssl::ErrorScope scope;
  TlsSession session(SSL_new(context_.get()));
  if (session == nullptr || SSL_set_fd(session.get(), descriptor) != 1) return nullptr;
  SSL_set_accept_state(session.get());
  return session;
}

StatusOr<std::string> CertificateOfClient(SSL* session) {
  const openssl::Certificate certificate(SSL_get1_peer_certificate(session));
  if (certificate == nullptr) {
    const bool is_required = (SSL_get_verify_mode(session) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT) != 0;
    if (is_required) return InvalidArgument("the client has no certificate");
    return std::string();
  }
  return openssl::ToPem(certificate);
}

}  // namespace troupe
