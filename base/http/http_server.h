// Serves a few pages over HTTP/1.1, one request for each connection, with or without TLS.
//
// Overload: one thread serves all connections and waits for none of them. Each has a limited time,
// and once there are too many, one is closed for a new one: the oldest of those whose page is not
// being made and whose answer is not being sent, else the oldest. So clients that send garbage,
// nothing, or a byte now and then keep nobody from an answer. Pages that take time are made on
// threads of their own, for which a limited number of requests waits; the page of a client that has
// gone, or has closed its side of the connection, is not begun, or dropped.
#ifndef TROUPE_BASE_HTTP_HTTP_SERVER_H_
#define TROUPE_BASE_HTTP_HTTP_SERVER_H_

#include <poll.h>

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/http/http_connection.h"
#include "base/http/http_tls.h"
#include "base/http/listen_sockets.h"
#include "base/http/page_threads.h"
#include "base/security/tls_files.h"
#include "base/status.h"

namespace troupe {

struct HttpServerOptions {
  std::string listen;  // HOST:PORT; port 0 selects a free one
  std::optional<TlsFiles> tls;
  // With TLS. `handlers.admit` may be absent only if the certificate is optional.
  ClientCertificate client_certificate = ClientCertificate::kRequired;
  HttpHandlers handlers;
  HttpLimits limits;
  size_t most_connections = 64;
  // Without threads, pages are made on the server's thread, and must not block. Otherwise they are
  // made on this many threads at once, and may block for a limited time.
  int threads = 0;
  // Further requests than these, which wait for a thread, are answered 503 at once.
  size_t most_waiting = 32;
};

// Thread-safe.
class HttpServer {
 public:
  // UNAVAILABLE if the address cannot be listened on; INVALID_ARGUMENT if the TLS files cannot be
  // used. REQUIRES: all that `handlers` use outlives the server.
  static StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  // Ends all connections, begins no further page, and waits for those in progress.
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
  // Lets the server's thread look at pages and at `stops_`. Thread-safe.
  void Wake() const;
  // Empties `wake_`.
  void TakeWake() const;
  // Returns the longest time of poll, in milliseconds.
  int PollLimit(Time now) const;
  std::vector<pollfd> Polled(Time now) const;
  void Accept(int listener, Time now);
  // Closes one connection, if there is one.
  void MakeRoom();
  void Turn(Served* served, short events, Time now);
  void RemoveEnded(Time now);

  HttpServerOptions options_;
  ListenSockets listeners_;
  std::unique_ptr<HttpTls> tls_;
  std::unique_ptr<PageThreads> page_threads_;  // null: pages are made on the server's thread
  std::list<Served> connections_;              // the oldest first
  Time accept_after_{};  // until then the system had no descriptor for a connection
  int wake_ = -1;        // eventfd
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_HTTP_SERVER_H_
