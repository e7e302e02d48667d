// TLS of an HTTP server with the files of a TLS directory: the server presents a certificate, and
// the client one of an authority of the directory, or none if it may. Not thread-safe.
#ifndef TROUPE_BASE_HTTP_HTTP_TLS_H_
#define TROUPE_BASE_HTTP_HTTP_TLS_H_

#include <openssl/ssl.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/security/openssl.h"
#include "base/security/tls_reader.h"

namespace troupe {

// One end of a TLS connection.
using TlsSession = std::unique_ptr<SSL, openssl::Deleter<SSL_free>>;

// Whether a client needs a certificate. One that is presented must be valid in any case.
enum class ClientCertificate { kRequired, kOptional };

class HttpTls {
 public:
  // Reads the files. INVALID_ARGUMENT if they cannot be used. REQUIRES: `files` is from
  // CheckTlsDirectory.
  static StatusOr<std::unique_ptr<HttpTls>> Make(const TlsFiles& files, ClientCertificate clients);

  // Makes the server's end of a connection, whose handshake has not begun. Files that have changed
  // are read before, about once a second. Null if OpenSSL refuses.
  TlsSession Accept(int descriptor);

 private:
  using TlsContext = std::unique_ptr<SSL_CTX, openssl::Deleter<SSL_CTX_free>>;

  HttpTls(const TlsFiles& files, ClientCertificate clients);
  Status Use(const TlsContents& contents);

  const ClientCertificate clients_;
  TlsContext context_;
  TlsReader reader_;
  std::chrono::steady_clock::time_point read_at_{};
  int64_t noted_at_ = 0;  // Unix time of the last record of a certificate that is not valid now
};

// Returns the client's certificate in PEM; empty if it has none and needs none. INVALID_ARGUMENT if
// it has none but needs one. REQUIRES: the handshake of `session` is complete.
StatusOr<std::string> CertificateOfClient(SSL* session);

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_HTTP_TLS_H_
