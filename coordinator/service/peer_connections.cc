#include "coordinator/service/peer_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

namespace troupe {
namespace {

// A look at all descriptors takes milliseconds, which refused connections must not add up.
constexpr Duration kLookInterval = std::chrono::seconds(1);
constexpr Duration kLogInterval = std::chrono::minutes(1);
constexpr size_t kMostLogged = 1024;  // peers in an interval
constexpr size_t kNetworkBytes = 8;   // an IPv6 address has twice as many

std::string TextOf(const in_addr& address) {
  char text[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &address, text, sizeof text);
}

std::string PeerOfV6(in6_addr address) {
  if (IN6_IS_ADDR_LOOPBACK(&address)) return "";
  std::memset(&address.s6_addr[kNetworkBytes], 0, sizeof address - kNetworkBytes);
  char text[INET6_ADDRSTRLEN];
  return fmt::format("{}/64", inet_ntop(AF_INET6, &address, text, sizeof text));
}

std::string PeerOfV4(const in_addr& address) {
  const bool is_loopback = ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
  return is_loopback ? "" : TextOf(address);
}

}  // namespace

std::string PeerOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    return PeerOfV4(v4.sin_addr);
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof v6);
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return PeerOfV6(v6.sin6_addr);
  in_addr mapped;
  std::memcpy(&mapped, &v6.sin6_addr.s6_addr[sizeof v6.sin6_addr - sizeof mapped], sizeof mapped);
  return PeerOfV4(mapped);
}

int PeerConnections::CountOf(const std::string& peer) const {
  const auto found = counts_.find(peer);
  return found == counts_.end() ? 0 : found->second;
}

void PeerConnections::Forget(std::map<int, Open>::iterator open) {
  const auto count = counts_.find(open->second.peer);
  if (--count->second == 0) counts_.erase(count);
  open_.erase(open);
}

void PeerConnections::ForgetClosed() {
  for (auto next = open_.begin(); next != open_.end();) {
    const auto open = next++;
    struct stat now;
    if (fstat(open->first, &now) != 0 || now.st_dev != open->second.device ||
        now.st_ino != open->second.inode) {
      Forget(open);
    }
  }
}

bool PeerConnections::Admit(int connection, const std::string& peer, MonotonicTime now) {
  // The former connection of this number has been closed.
  if (const auto former = open_.find(connection); former != open_.end()) Forget(former);
  if (peer.empty()) return true;
  if (CountOf(peer) >= most_ &&
      (!looked_for_closed_ || now - *looked_for_closed_ >= kLookInterval)) {
    looked_for_closed_ = now;
    ForgetClosed();
  }
  if (CountOf(peer) >= most_) return false;
  struct stat opened;
  if (fstat(connection, &opened) != 0) return true;  // it is closed already
  open_[connection] = {peer, opened.st_dev, opened.st_ino};
  ++counts_[peer];
  return true;
}

bool PeerConnections::IsLogDue(const std::string& peer, MonotonicTime now) {
  std::erase_if(logged_, [&](const auto& one) { return now - one.second >= kLogInterval; });
  if (logged_.size() >= kMostLogged) return false;
  return logged_.try_emplace(peer, now).second;
}

}  // namespace troupe
