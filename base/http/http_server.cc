#include "base/http/http_server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPauseWithoutDescriptor{100};

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  std::unique_ptr<HttpServer> server(new HttpServer());
  if (options.tls) {
    TROUPE_ASSIGN_OR_RETURN(server->tls_, HttpTls::Make(*options.tls));
  }
  TROUPE_ASSIGN_OR_RETURN(server->listeners_, ListenSockets::Open(options.listen));
  server->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (server->wake_ < 0) return ErrnoStatus(errno, "eventfd");
  server->options_ = std::move(options);
  server->thread_ = std::thread([raw = server.get()] { raw->Run(); });
  return server;
}

HttpServer::~HttpServer() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!write(wake_, &one, sizeof one);
    thread_.join();
  }
  if (wake_ >= 0) close(wake_);
}

void HttpServer::Run() {
  // OpenSSL writes to sockets whose clients have gone; signals of the process are for others.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (true) {
    std::vector<pollfd> polled = Polled(steady_clock::now());
    if (poll(polled.data(), polled.size(), PollLimit(steady_clock::now())) < 0) continue;
    if (polled[0].revents != 0) return;
    const auto now = steady_clock::now();
    size_t next = 1 + listeners_.descriptors().size();
    for (Served& served : connections_) {
      const short events = polled[next++].revents;
      if (events != 0) Turn(&served, events, now);
    }
    RemoveEnded(now);
    for (size_t i = 0; i < listeners_.descriptors().size(); ++i) {
      if (polled[1 + i].revents != 0) Accept(listeners_.descriptors()[i], now);
    }
  }
}

std::vector<pollfd> HttpServer::Polled(Time now) const {
  std::vector<pollfd> polled = {{wake_, POLLIN, 0}};
  const short accepted = now < accept_after_ ? 0 : POLLIN;
  for (const int listener : listeners_.descriptors()) polled.push_back({listener, accepted, 0});
  for (const Served& served : connections_)
    polled.push_back({served.connection->descriptor(), served.events, 0});
  return polled;
}

int HttpServer::PollLimit(Time now) const {
  Time due = Time::max();
  if (now < accept_after_) due = accept_after_;
  for (const Served& served : connections_) due = std::min(due, served.connection->deadline());
  if (due == Time::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(due - now);
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

void HttpServer::Accept(int listener, Time now) {
  const int descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) {
    if (errno != EMFILE && errno != ENFILE) return;  // the client has gone, for one
    if (!connections_.empty()) connections_.pop_front();
    accept_after_ = now + kPauseWithoutDescriptor;
    return;
  }
  TlsSession session = tls_ == nullptr ? nullptr : tls_->Accept(descriptor);
  if (tls_ != nullptr && session == nullptr) {
    close(descriptor);
    return;
  }
  if (connections_.size() >= options_.most_connections) connections_.pop_front();
  connections_.push_back({std::make_unique<HttpConnection>(descriptor, std::move(session),
                                                           options_.handlers, options_.limits, now),
                          POLLIN});
}

void HttpServer::Turn(Served* served, short events, Time now) {
  served->events = (events & POLLNVAL) != 0 ? 0 : served->connection->Turn(now);
}

void HttpServer::RemoveEnded(Time now) {
  std::erase_if(connections_, [now](const Served& served) {
    return served.events == 0 || now >= served.connection->deadline();
  });
}

}  // namespace troupe
