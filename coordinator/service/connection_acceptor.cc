#include "coordinator/service/connection_acceptor.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"

namespace troupe {
namespace {

// Descriptors reserved for the catalog (RocksDB), logs, gRPC itself and /metrics.
constexpr int kReservedMax = 512;
constexpr int kConnectionsMax = 16384;
constexpr int kBacklog = 1024;
constexpr int kTurnMilliseconds = 500;

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

int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

int FirstRefusedDescriptor(int descriptor_limit) {
  const int reserved = std::min(kReservedMax, descriptor_limit / 4);
  return std::min(descriptor_limit - reserved, kConnectionsMax);
}

StatusOr<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Listen(
    const std::string& listen) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return InvalidArgument("{} is not HOST:PORT", listen);
  std::string host = listen.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::unique_ptr<ConnectionAcceptor> acceptor(new ConnectionAcceptor());
  const Status bound = acceptor->Bind(host, listen.substr(colon + 1));
  if (!bound.ok()) return Unavailable("cannot listen on {}: {}", listen, Message(bound));
  acceptor->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  acceptor->spare_ = OpenNull();
  if (acceptor->wake_ < 0 || acceptor->spare_ < 0) return ErrnoStatus(errno, "eventfd");
  return acceptor;
}

Status ConnectionAcceptor::Bind(const std::string& host, const std::string& port) {
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
    listeners_.push_back(listener);
    port_ = PortOf(listener);
  }
  return listeners_.empty() ? failed : OkStatus();
}

ConnectionAcceptor::~ConnectionAcceptor() {
  Stop();
  for (const int listener : listeners_) close(listener);
  if (wake_ >= 0) close(wake_);
  if (spare_ >= 0) close(spare_);
}

void ConnectionAcceptor::Start(Handlers handlers, int first_refused) {
  handlers_ = std::move(handlers);
  first_refused_ = first_refused;
  thread_ = std::thread([this] { Run(); });
}

void ConnectionAcceptor::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
  thread_.join();
}

void ConnectionAcceptor::Run() {
  std::vector<pollfd> polled;
  for (const int listener : listeners_) polled.push_back({listener, POLLIN, 0});
  polled.push_back({wake_, POLLIN, 0});
  while (true) {
    turned_.Touch();
    if (poll(polled.data(), polled.size(), kTurnMilliseconds) < 0) continue;
    if (polled.back().revents != 0) return;
    for (const pollfd& one : polled) {
      if (one.revents != 0) Accept(one.fd);
    }
  }
}

void ConnectionAcceptor::Accept(int listener) {
  const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection >= 0 && connection < first_refused_) {
    handlers_.accepted(listener, connection);
    return;
  }
  if (connection >= 0) {
    close(connection);
    handlers_.refused();
  } else if (errno == EMFILE || errno == ENFILE) {
    DropOne(listener);
  }
  // Any other error (the client has gone, a signal) needs no handling; the next waiting connection
  // follows.
}

void ConnectionAcceptor::DropOne(int listener) {
  if (spare_ >= 0) close(spare_);
  const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection >= 0) close(connection);
  spare_ = OpenNull();
  handlers_.refused();
  // No connection can be accepted until descriptors are freed, so pause to avoid a busy loop.
  pollfd wake{wake_, POLLIN, 0};
  poll(&wake, 1, 10);
}

}  // namespace troupe
