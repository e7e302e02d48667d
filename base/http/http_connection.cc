#include "base/http/http_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace troupe {

HttpConnection::HttpConnection(int descriptor, TlsSession session, const HttpService& service,
                               Time now)
    : descriptor_(descriptor),
      session_(std::move(session)),
      service_(service),
      state_(session_ == nullptr ? State::kRequest : State::kHandshake),
      deadline_(now + service.limits.request) {}

HttpConnection::~HttpConnection() {
  asked_.reset();  // once the client sees the end, nothing of its request is begun
  close(descriptor_);
}

short HttpConnection::Turn(Time now) {
  while (true) {
    // OpenSSL's view of an error needs an empty queue before each of its calls.
    const openssl::ErrorScope scope;
    Next next = Next::kOver;
    switch (state_) {
      case State::kHandshake:
        next = ShakeHands();
        break;
      case State::kRequest:
        next = Receive(now);
        break;
      case State::kPage:
        next = AwaitPage(now);
        break;
      case State::kAnswer:
        next = Send(now);
        break;
      case State::kEnd:
        next = Drain();
        break;
    }
    switch (next) {
      case Next::kProceed:
        break;
      case Next::kRead:
        return POLLIN;
      case Next::kPage:
        return POLLRDHUP;
      case Next::kWrite:
        return POLLOUT;
      case Next::kOver:
        return 0;
    }
  }
}

HttpConnection::Next HttpConnection::After(ssize_t result) const {
  if (session_ != nullptr && state_ != State::kEnd) {
    switch (SSL_get_error(session_.get(), static_cast<int>(result))) {
      case SSL_ERROR_WANT_READ:
        return Next::kRead;
      case SSL_ERROR_WANT_WRITE:
        return Next::kWrite;
      default:
        return Next::kOver;
    }
  }
  if (result == 0) return Next::kOver;
  if (errno == EINTR) return Next::kProceed;
  if (errno != EAGAIN && errno != EWOULDBLOCK) return Next::kOver;
  return state_ == State::kAnswer ? Next::kWrite : Next::kRead;
}

HttpConnection::Next HttpConnection::ShakeHands() {
  const int result = SSL_accept(session_.get());
  if (result != 1) return After(result);
  state_ = State::kRequest;
  return Next::kProceed;
}

HttpConnection::Next HttpConnection::Receive(Time now) {
  char bytes[2048];
  const ssize_t got = session_ != nullptr ? SSL_read(session_.get(), bytes, sizeof bytes)
                                          : recv(descriptor_, bytes, sizeof bytes, 0);
  if (got <= 0) return After(got);
  head_.append(bytes, static_cast<size_t>(got));
  if (head_.find("\r\n\r\n") != head_.npos) {
    Serve(now);
  } else if (head_.size() > kMostHeadBytes) {
    BeginAnswer({431, "the head of the request is too long\n"}, now);
  }
  return Next::kProceed;
}

void HttpConnection::Serve(Time now) {
  HttpRequest request = ParseRequest(head_);
  if (request.refused != 0) {
    return BeginAnswer({request.refused, "only well-formed GET and HEAD of a page are served\n"},
                       now);
  }
  only_head_ = request.only_head;
  if (const Status admitted = Admit(&request); !admitted.ok()) {
    return BeginAnswer({403, std::string(Message(admitted)) + "\n"}, now);
  }
  if (service_.threads == nullptr) return BeginAnswer(service_.handlers.pages(request), now);
  asked_ = service_.threads->Ask(std::move(request));
  if (asked_ == nullptr) {
    return BeginAnswer(
        {.code = 503, .body = "too many requests wait\n", .headers = {{"Retry-After", "1"}}}, now);
  }
  state_ = State::kPage;
  deadline_ = now + service_.limits.answer;
}

Status HttpConnection::Admit(HttpRequest* request) const {
  if (session_ == nullptr) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(request->certificate, CertificateOfClient(session_.get()));
  if (request->certificate.empty() || !service_.handlers.admit) return OkStatus();
  return service_.handlers.admit(request->certificate);
}

HttpConnection::Next HttpConnection::AwaitPage(Time now) {
  const std::optional<HttpPage> page = service_.threads->Take(asked_.get());
  if (!page) return Next::kPage;
  asked_.reset();
  BeginAnswer(*page, now);
  return Next::kProceed;
}

void HttpConnection::BeginAnswer(const HttpPage& page, Time now) {
  answer_ = AnswerOf(page, only_head_);
  state_ = State::kAnswer;
  deadline_ = now + service_.limits.answer;
}

HttpConnection::Next HttpConnection::Send(Time now) {
  const char* const from = answer_.data() + sent_;
  const size_t left = answer_.size() - sent_;
  const ssize_t count =
      session_ != nullptr
          ? SSL_write(session_.get(), from, static_cast<int>(std::min<size_t>(left, 1 << 20)))
          : send(descriptor_, from, left, MSG_NOSIGNAL);
  if (count <= 0) return After(count);
  sent_ += static_cast<size_t>(count);
  if (sent_ < answer_.size()) return Next::kProceed;
  if (session_ != nullptr) SSL_shutdown(session_.get());
  shutdown(descriptor_, SHUT_WR);
  state_ = State::kEnd;
  deadline_ = std::min(deadline_, now + service_.limits.end);
  return Next::kProceed;
}

// Reads what the client still sends: a connection that is closed with unread bytes is reset, and
// the client may lose the answer.
HttpConnection::Next HttpConnection::Drain() {
  char bytes[2048];
  const ssize_t got = recv(descriptor_, bytes, sizeof bytes, 0);
  return got > 0 ? Next::kRead : After(got);
}

}  // namespace troupe
