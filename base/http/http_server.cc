#include "base/http/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/http/block_signals.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPauseWithoutDescriptor{100};

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  std::unique_ptr<HttpServer> server(new HttpServer());
  if (options.tls) {
    TROUPE_CHECK(
        options.handlers.admit || options.client_certificate == ClientCertificate::kOptional,
        "required certificates need a function that admits them");
    TROUPE_ASSIGN_OR_RETURN(server->tls_, HttpTls::Make(*options.tls, options.client_certificate));
  }
  TROUPE_ASSIGN_OR_RETURN(server->listeners_, ListenSockets::Open(options.listen));
  server->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (server->wake_ < 0) return ErrnoStatus(errno, "eventfd");
  server->options_ = std::move(options);
  HttpServer* const raw = server.get();
  if (raw->options_.threads > 0) {
    raw->page_threads_ = std::make_unique<PageThreads>(
        PageThreads::Options{.pages = raw->options_.handlers.pages,
                             .threads = raw->options_.threads,
                             .most_waiting = raw->options_.most_waiting,
                             .on_made = [raw] { raw->Wake(); }});
  }
  raw->thread_ = std::thread([raw] { raw->Run(); });
  return server;
}

HttpServer::~HttpServer() {
  if (thread_.joinable()) {
    stops_ = true;
    Wake();
    thread_.join();
  }
  page_threads_.reset();  // each page in progress writes to `wake_` at its end
  if (wake_ >= 0) close(wake_);
}

void HttpServer::Wake() const {
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
}

void HttpServer::TakeWake() const {
  uint64_t count = 0;
  (void)!read(wake_, &count, sizeof count);
}

void HttpServer::Run() {
  BlockSignals();
  while (true) {
    std::vector<pollfd> polled = Polled(steady_clock::now());
    if (poll(polled.data(), polled.size(), PollLimit(steady_clock::now())) < 0) continue;
    const bool is_woken = polled[0].revents != 0;
    if (is_woken) TakeWake();  // before the looks at what it may be about
    if (stops_) break;
    const auto now = steady_clock::now();
    size_t next = 1 + listeners_.descriptors().size();
    for (Served& served : connections_) {
      const short events = polled[next++].revents;
      const bool may_have_page = is_woken && served.connection->awaits_page();
      if (events != 0 || may_have_page) Turn(&served, events, now);
    }
    RemoveEnded(now);
    for (size_t i = 0; i < listeners_.descriptors().size(); ++i) {
      if (polled[1 + i].revents != 0) Accept(listeners_.descriptors()[i], now);
    }
  }
  connections_.clear();  // also the requests that wait, so that no page of them is begun
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
    MakeRoom();
    accept_after_ = now + kPauseWithoutDescriptor;
    return;
  }
  TlsSession session = tls_ == nullptr ? nullptr : tls_->Accept(descriptor);
  if (tls_ != nullptr && session == nullptr) {
    close(descriptor);
    return;
  }
  if (connections_.size() >= options_.most_connections) MakeRoom();
  const HttpService service{options_.handlers, options_.limits, page_threads_.get()};
  connections_.push_back(
      {std::make_unique<HttpConnection>(descriptor, std::move(session), service, now), POLLIN});
}

void HttpServer::MakeRoom() {
  if (connections_.empty()) return;
  const auto oldest = std::ranges::find_if(
      connections_, [](const Served& served) { return !served.connection->has_page(); });
  connections_.erase(oldest == connections_.end() ? connections_.begin() : oldest);
}

void HttpServer::Turn(Served* served, short events, Time now) {
  // A connection that awaits its page has an event only if its client has gone.
  const bool is_over =
      (events & POLLNVAL) != 0 || (events != 0 && served->connection->awaits_page());
  served->events = is_over ? 0 : served->connection->Turn(now);
}

void HttpServer::RemoveEnded(Time now) {
  std::erase_if(connections_, [now](const Served& served) {
    return served.events == 0 || now >= served.connection->deadline();
  });
}

}  // namespace troupe
