// One connection of an HTTP server: a handshake if it has TLS, one request, one answer. It never
// blocks. Not thread-safe.
#ifndef TROUPE_BASE_HTTP_HTTP_CONNECTION_H_
#define TROUPE_BASE_HTTP_HTTP_CONNECTION_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/http/http_page.h"
#include "base/http/http_tls.h"
#include "base/http/page_threads.h"
#include "base/status.h"

namespace troupe {

struct HttpHandlers {
  HttpPages pages;
  // With TLS, an error refuses the client with this certificate, in PEM, and is the answer. Called
  // on the server's thread, but not for a client without a certificate.
  std::function<Status(const std::string& certificate)> admit;
};

// The time that a connection has, however slowly its bytes come.
struct HttpLimits {
  std::chrono::milliseconds request{10'000};  // for the handshake and the request
  std::chrono::milliseconds answer{30'000};   // for a page of another thread; again to send
  std::chrono::milliseconds end{1'000};       // for the client to end it after the answer
};

// The parts of a server that its connections use. All outlive them.
struct HttpService {
  const HttpHandlers& handlers;
  const HttpLimits& limits;
  PageThreads* threads;  // null: each connection makes its page itself
};

class HttpConnection {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Owns `descriptor`, a connected socket that does not block. Without a session the connection has
  // no TLS.
  HttpConnection(int descriptor, TlsSession session, const HttpService& service, Time now);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Proceeds as far as possible. Returns the events of poll that it waits for; 0: it has ended.
  short Turn(Time now);

  int descriptor() const { return descriptor_; }
  // Whether another thread is to make the page. Until Turn finds it, the only event is that the
  // client has gone.
  bool awaits_page() const { return state_ == State::kPage; }
  // Whether a page is made for it, or an answer sent.
  bool has_page() const { return state_ == State::kPage || state_ == State::kAnswer; }
  Time deadline() const { return deadline_; }  // it is closed then

 private:
  enum class State { kHandshake, kRequest, kPage, kAnswer, kEnd };
  enum class Next { kProceed, kRead, kPage, kWrite, kOver };

  // One step of each state.
  Next ShakeHands();
  Next Receive(Time now);
  Next AwaitPage(Time now);
  Next Send(Time now);
  Next Drain();

  // Answers the request of `head_`, or enqueues it.
  void Serve(Time now);
  // Sets the certificate of the request. Returns why the client is refused.
  Status Admit(HttpRequest* request) const;
  void BeginAnswer(const HttpPage& page, Time now);
  // The next step after a call of OpenSSL or of the system that returned `result`, not above 0.
  Next After(ssize_t result) const;

  const int descriptor_;
  const TlsSession session_;
  const HttpService service_;
  State state_;
  Time deadline_;
  std::string head_;
  bool only_head_ = false;
  std::shared_ptr<PageThreads::Asked> asked_;  // in the state kPage
  std::string answer_;
  size_t sent_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_HTTP_CONNECTION_H_
