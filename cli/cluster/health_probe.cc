#include "cli/cluster/health_probe.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>

#include "base/metrics/metric_list.h"

namespace troupe {
namespace {

constexpr std::string_view kRequest =
    "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
constexpr size_t kMostBytes = 64 << 10;

}  // namespace

std::optional<double> HealthAgeIn(std::string_view response) {
  if (!response.starts_with("HTTP/1.1 200")) return std::nullopt;
  const std::string name = fmt::format("\n{} ", metric::kHealthAge.text.name);
  const size_t at = response.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = response.substr(at + name.size());
  double age = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), age);
  if (error != std::errc() || !(age >= 0)) return std::nullopt;
  return age;
}

HealthProbe::HealthProbe(int port)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // The next Turn sees the result.
  if (socket_ >= 0) {
    (void)!connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
}

HealthProbe::~HealthProbe() {
  if (socket_ >= 0) close(socket_);
}

HealthProbe::State HealthProbe::Turn() {
  if (socket_ < 0) return State::kFailed;
  pollfd polled{socket_, static_cast<short>(asked_ ? POLLIN : POLLOUT), 0};
  if (poll(&polled, 1, 0) <= 0) return State::kWaiting;
  if (asked_) return Read();
  // A request of this size fits into an empty socket buffer.
  const ssize_t sent = send(socket_, kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(kRequest.size())) return State::kFailed;
  asked_ = true;
  return State::kWaiting;
}

HealthProbe::State HealthProbe::Read() {
  char buffer[4096];
  while (true) {
    const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
    if (got < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK ? State::kWaiting : State::kFailed;
    }
    if (got == 0) break;
    response_.append(buffer, static_cast<size_t>(got));
    if (response_.size() > kMostBytes) return State::kFailed;
  }
  const std::optional<double> age = HealthAgeIn(response_);
  if (!age) return State::kFailed;
  age_ = std::chrono::duration<double>(*age);
  return State::kAnswered;
}

}  // namespace troupe
