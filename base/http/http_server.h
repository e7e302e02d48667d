// Serves a few pages over HTTP/1.1, one request for each connection, with or without TLS.
//
// Overload: one thread serves all connections and waits for none of them. Each has a limited time,
// and the oldest one is closed for a new one once there are too many, so that clients that send
// garbage, nothing, or a byte now and then keep nobody from an answer.
#ifndef TROUPE_BASE_HTTP_HTTP_SERVER_H_
#define TROUPE_BASE_HTTP_HTTP_SERVER_H_

#include <poll.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/http/http_connection.h"
#include "base/http/http_tls.h"
#include "base/http/listen_sockets.h"
#include "base/security/tls_files.h"
#include "base/status.h"

namespace troupe {

struct HttpServerOptions {
  std::string listen;           // HOST:PORT; port 0 selects a free one
  std::optional<TlsFiles> tls;  // with TLS, clients need a certificate, and `admit` is called
  HttpHandlers handlers;
  HttpLimits limits;
  size_t most_connections = 64;
};

// Thread-safe.
class HttpServer {
 public:
  // UNAVAILABLE if the address cannot be listened on; INVALID_ARGUMENT if the TLS files cannot be
  // used.
  static StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  // Ends all connections.
  ~HttpServer();

  int port() const { return listeners_.port(); }

 private:
  using Time = HttpConnection::Time;
  struct Served {
    std::unique_ptr<HttpConnection> connection;
    short events = 0;  // the ones of poll that it waits for
  };

  HttpServer() = default;
  void Run();
  // Returns the longest time of poll, in milliseconds.
  int PollLimit(Time now) const;
  std::vector<pollfd> Polled(Time now) const;
  void Accept(int listener, Time now);
  void Turn(Served* served, short events, Time now);
  void RemoveEnded(Time now);

  HttpServerOptions options_;
  ListenSockets listeners_;
  std::unique_ptr<HttpTls> tls_;
  std::list<Served> connections_;  // the oldest first
  Time accept_after_{};            // until then the system had no descriptor for a connection
  int wake_ = -1;                  // eventfd that ends the thread
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_HTTP_SERVER_H_
