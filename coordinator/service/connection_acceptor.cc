#include "coordinator/service/connection_acceptor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"

namespace troupe {
namespace {

// Descriptors reserved for the catalog (RocksDB), logs, gRPC itself and /metrics.
constexpr int kReservedMax = 512;
constexpr int kConnectionsMax = 16384;
constexpr int kTurnMilliseconds = 500;

int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

int FirstRefusedDescriptor(int descriptor_limit) {
  const int reserved = std::min(kReservedMax, descriptor_limit / 4);
  return std::min(descriptor_limit - reserved, kConnectionsMax);
}

int MostAddressConnections(int first_refused) { return std::max(1, first_refused / 4); }

StatusOr<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Listen(
    const std::string& listen) {
  std::unique_ptr<ConnectionAcceptor> acceptor(new ConnectionAcceptor());
  TROUPE_ASSIGN_OR_RETURN(acceptor->listeners_, ListenSockets::Open(listen));
  acceptor->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  acceptor->spare_ = OpenNull();
  if (acceptor->wake_ < 0 || acceptor->spare_ < 0) return ErrnoStatus(errno, "eventfd");
  return acceptor;
}

ConnectionAcceptor::~ConnectionAcceptor() {
  Stop();
  if (wake_ >= 0) close(wake_);
  if (spare_ >= 0) close(spare_);
}

void ConnectionAcceptor::Start(Handlers handlers, const Limits& limits) {
  handlers_ = std::move(handlers);
  first_refused_ = limits.first_refused;
  peers_.emplace(limits.most_address_connections);
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
  for (const int listener : listeners_.descriptors()) polled.push_back({listener, POLLIN, 0});
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
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const int connection =
      accept4(listener, reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    // Any other error (the client has gone, a signal) needs no handling; the next waiting
    // connection follows.
    if (errno == EMFILE || errno == ENFILE) DropOne(listener);
    return;
  }
  if (connection >= first_refused_ || !AdmitPeer(connection, PeerOf(address))) {
    close(connection);
    handlers_.refused();
    return;
  }
  handlers_.accepted(listener, connection);
}

bool ConnectionAcceptor::AdmitPeer(int connection, const std::string& peer) {
  const MonotonicTime now = SystemClock().Now();
  if (peers_->Admit(connection, peer, now)) return true;
  if (peers_->IsLogDue(peer, now)) {
    LogWarning("coordinator",
               "connections of {} are refused: it has the {} that an address may have "
               "(--most-address-connections)",
               peer, peers_->most());
  }
  return false;
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
