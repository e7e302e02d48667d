// TLS of an HTTP server with the files of a TLS directory: server and client present certificates.
// Not thread-safe.
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

class HttpTls {
 public:
  // Reads the files. INVALID_ARGUMENT if they cannot be used. REQUIRES: `files` is from
  // CheckTlsDirectory.
  static StatusOr<std::unique_ptr<HttpTls>> Make(const TlsFiles& files);

  // Makes the server's end of a connection, whose handshake has not begun. Files that have changed
  // are read before, about once a second. Null if OpenSSL refuses.
  TlsSession Accept(int descriptor);

 private:
  using TlsContext = std::unique_ptr<SSL_CTX, openssl::Deleter<SSL_CTX_free>>;

  explicit HttpTls(const TlsFiles& files);
  Status Use(const TlsContents& contents);

  TlsContext context_;
  TlsReader reader_;
  std::chrono::steady_clock::time_point read_at_{};
  int64_t noted_at_ = 0;  // Unix time of the last record of a certificate that is not valid now
};

// Returns the client's certificate in PEM. INVALID_ARGUMENT if it has none. REQUIRES: the handshake
// of `session` is complete.
StatusOr<std::string> CertificateOfClient(SSL* session);

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_HTTP_TLS_H_
