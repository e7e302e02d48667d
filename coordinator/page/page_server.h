// The coordinator's web page: read-only, over HTTPS with the coordinator's certificate, or over
// HTTP without TLS.
#ifndef TROUPE_COORDINATOR_PAGE_PAGE_SERVER_H_
#define TROUPE_COORDINATOR_PAGE_PAGE_SERVER_H_

#include <memory>
#include <optional>
#include <string>

#include "base/http/http_server.h"
#include "base/security/tls_files.h"
#include "base/status.h"
#include "coordinator/page/page_maker.h"

namespace troupe {

struct PageServerOptions {
  std::string listen;           // HOST:PORT; port 0 selects a free one
  std::optional<TlsFiles> tls;  // those of this process
  PageMaker::Options maker;     // its has_tls is set by the server
};

// Thread-safe.
class PageServer {
 public:
  // UNAVAILABLE if the address cannot be listened on; INVALID_ARGUMENT if the TLS files cannot be
  // used. Whether the address may be one off the loopback is the caller's decision.
  static StatusOr<std::unique_ptr<PageServer>> Start(const PageServerOptions& options);
  // Ends the calls of pages that are being made, and waits for these pages. REQUIRES: the services
  // that the pages call still run.
  ~PageServer();

  int port() const { return server_->port(); }
  const std::string& url() const { return url_; }  // "http://HOST:PORT/"

 private:
  PageServer() = default;

  std::unique_ptr<PageMaker> maker_;
  std::unique_ptr<HttpServer> server_;  // calls maker_ until it is destroyed
  std::string url_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_PAGE_SERVER_H_
