#include "base/http/listen_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

namespace troupe {
namespace {

constexpr int kBacklog = 1024;

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void SetPort(addrinfo* address, int port) {
  if (address->ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address->ai_addr)->sin6_port =
        htons(static_cast<uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in*>(address->ai_addr)->sin_port = htons(static_cast<uint16_t>(port));
  }
}

}  // namespace

StatusOr<ListenSockets> ListenSockets::Open(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return InvalidArgument("{} is not HOST:PORT", listen);
  std::string host = listen.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  ListenSockets sockets;
  const Status bound = sockets.Bind(host, listen.substr(colon + 1));
  if (!bound.ok()) return Unavailable("cannot listen on {}: {}", listen, Message(bound));
  return sockets;
}

ListenSockets::~ListenSockets() {
  for (const int descriptor : descriptors_) close(descriptor);
}

ListenSockets::ListenSockets(ListenSockets&& other) noexcept
    : port_(std::exchange(other.port_, 0)), descriptors_(std::exchange(other.descriptors_, {})) {}

ListenSockets& ListenSockets::operator=(ListenSockets&& other) noexcept {
  std::swap(port_, other.port_);
  descriptors_.swap(other.descriptors_);
  return *this;
}

Status ListenSockets::Bind(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return Unavailable("{}", gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  Status failed = Unavailable("it has no address");
  bool has_ipv4 = false;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    has_ipv4 |= address->ai_family == AF_INET;
  }
  for (addrinfo* address = found; address != nullptr; address = address->ai_next) {
    if (address->ai_family != AF_INET && address->ai_family != AF_INET6) continue;
    const int listener =
        socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (listener < 0) {
      failed = ErrnoStatus(errno, "socket");
      continue;
    }
    // All addresses of a name share one port.
    if (port_ != 0) SetPort(address, port_);
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // Next to a socket for IPv4, that for IPv6 must not take the same port of IPv4 too.
    if (address->ai_family == AF_INET6 && has_ipv4) {
      setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    // Inherited by the connections: messages are small, and each is waited for.
    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bind(listener, address->ai_addr, address->ai_addrlen) != 0 ||
        ::listen(listener, kBacklog) != 0) {
      const int cause = errno;
      failed = ErrnoStatus(cause, "bind");
      close(listener);
      // Another process has the port. An address family that is switched off does not matter.
      if (cause == EADDRINUSE) return failed;
      continue;
    }
    descriptors_.push_back(listener);
    port_ = PortOf(listener);
  }
  return descriptors_.empty() ? failed : OkStatus();
}

}  // namespace troupe
