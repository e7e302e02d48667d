// One connection of an HTTP server: a handshake if it has TLS, one request, one answer. It never
// blocks. Not thread-safe.
#ifndef TROUPE_BASE_HTTP_HTTP_CONNECTION_H_
#define TROUPE_BASE_HTTP_HTTP_CONNECTION_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/http/http_page.h"
#include "base/http/http_tls.h"
#include "base/status.h"

namespace troupe {

// The work that a connection gets from its server. Both outlive it.
struct HttpHandlers {
  HttpPages pages;
  // With TLS, an error refuses the client with this certificate, in PEM, and is the answer.
  std::function<Status(const std::string& certificate)> admit;
};

// The time that a connection has, however slowly its bytes come.
struct HttpLimits {
  std::chrono::milliseconds request{10'000};  // for the handshake and the request
  std::chrono::milliseconds answer{30'000};
  std::chrono::milliseconds end{1'000};  // for the client to end it after the answer
};

class HttpConnection {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Owns `descriptor`, a connected socket that does not block. Without a session the connection has
  // no TLS.
  HttpConnection(int descriptor, TlsSession session, const HttpHandlers& handlers,
                 const HttpLimits& limits, Time now);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Proceeds as far as possible. Returns the events of poll that it waits for; 0: it has ended.
  short Turn(Time now);

  int descriptor() const { return descriptor_; }
  Time deadline() const { return deadline_; }  // it is closed then

 private:
  enum class State { kHandshake, kRequest, kAnswer, kEnd };
  enum class Next { kProceed, kRead, kWrite, kOver };

  // One step of each state.
  Next ShakeHands();
  Next Receive(Time now);
  Next Send(Time now);
  Next Drain();

  void BeginAnswer(const HttpPage& page, bool only_head, Time now);
  HttpPage PageOf(std::string_view path) const;
  // The next step after a call of OpenSSL or of the system that returned `result`, not above 0.
  Next After(ssize_t result) const;

  const int descriptor_;
  const TlsSession session_;
  const HttpHandlers& handlers_;
  const HttpLimits limits_;
  State state_;
  Time deadline_;
  std::string head_;
  std::string answer_;
  size_t sent_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_HTTP_CONNECTION_H_
