#include "base/http/http_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace troupe {

HttpConnection::HttpConnection(int descriptor, TlsSession session, const HttpHandlers& handlers,
                               const HttpLimits& limits, Time now)
    : descriptor_(descriptor),
      session_(std::move(session)),
      handlers_(handlers),
      limits_(limits),
      state_(session_ == nullptr ? State::kRequest : State::kHandshake),
      deadline_(now + limits.request) {}

HttpConnection::~HttpConnection() { close(descriptor_); }

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
  if (head_.find("\r\n\r\n") == head_.npos) {
    if (head_.size() > kMostHeadBytes) {
      BeginAnswer({431, "the head of the request is too long\n"}, false, now);
    }
    return Next::kProceed;
  }
  const HttpRequest request = ParseRequest(head_);
  if (request.refused != 0) {
    BeginAnswer({request.refused, "only GET and HEAD of a page are served\n"}, false, now);
  } else {
    BeginAnswer(PageOf(request.path), request.only_head, now);
  }
  return Next::kProceed;
}

HttpPage HttpConnection::PageOf(std::string_view path) const {
  if (session_ != nullptr) {
    const StatusOr<std::string> client = CertificateOfClient(session_.get());
    const Status admitted = client.ok() ? handlers_.admit(*client) : client.status();
    if (!admitted.ok()) return {403, std::string(Message(admitted)) + "\n"};
  }
  return handlers_.pages(path);
}

void HttpConnection::BeginAnswer(const HttpPage& page, bool only_head, Time now) {
  answer_ = AnswerOf(page, only_head);
  state_ = State::kAnswer;
  deadline_ = now + limits_.answer;
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
  deadline_ = std::min(deadline_, now + limits_.end);
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
