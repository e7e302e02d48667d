#include "worker/daemon/host_network.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "base/log.h"
#include "base/security/listen_policy.h"

namespace troupe {
namespace {

// Returns the bytes of an IPv4 or IPv6 address; empty for another family.
std::string AddressBytes(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    const auto* const ip = reinterpret_cast<const sockaddr_in*>(address);
    return {reinterpret_cast<const char*>(&ip->sin_addr), sizeof ip->sin_addr};
  }
  if (address->sa_family == AF_INET6) {
    const auto* const ip = reinterpret_cast<const sockaddr_in6*>(address);
    return {reinterpret_cast<const char*>(&ip->sin6_addr), sizeof ip->sin6_addr};
  }
  return {};
}

StatusOr<std::vector<std::string>> Resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return InvalidArgument("--host is \"{}\", which is not an address: {}", host,
                           gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    addresses.push_back(AddressBytes(one->ai_addr));
  }
  return addresses;
}

std::string FirstLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the entries of `folder` sorted by name; none if it cannot be read.
std::vector<std::string> EntriesOf(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Waits until the coordinator's name has an address. CANCELLED if one of `signals` comes first.
StatusOr<std::string> AwaitOwnAddress(const std::string& coordinator, const sigset_t& signals) {
  constexpr timespec kInterval = {.tv_sec = 0, .tv_nsec = 500'000'000};
  constexpr int kTriesPerNote = 120;
  for (int tries = 0;; ++tries) {
    StatusOr<std::string> own = OwnAddressTowards(coordinator);
    if (own.ok()) return own;
    if (tries % kTriesPerNote == 0) {
      LogWarning("worker", "{}; it tries again, because the default of --host depends on it",
                 Message(own.status()));
    }
    const int signal_number = sigtimedwait(&signals, nullptr, &kInterval);
    if (signal_number > 0)
      return Cancelled("ends after signal {}, before {} had an address", signal_number,
                       coordinator);
  }
}

}  // namespace

StatusOr<std::string> InterfaceOf(const std::string& host) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> addresses, Resolve(host));
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return ErrnoStatus(errno, "getifaddrs");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(found, freeifaddrs);
  std::vector<std::string> names;
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    const std::string bytes = AddressBytes(one->ifa_addr);
    if (bytes.empty()) continue;
    if (std::find(addresses.begin(), addresses.end(), bytes) != addresses.end()) {
      return std::string(one->ifa_name);
    }
    names.emplace_back(one->ifa_name);
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return InvalidArgument("--host is \"{}\", but no interface of this machine has that address ({})",
                         host, fmt::join(names, ", "));
}

StatusOr<std::string> OwnAddressTowards(const std::string& host_port) {
  const size_t colon = host_port.rfind(':');
  std::string host = host_port.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : host_port.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return Unavailable("{} has no address: {}", host_port, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    // Connecting a datagram socket sends nothing: it only chooses the route.
    const int descriptor = socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) continue;
    sockaddr_storage own{};
    socklen_t bytes = sizeof own;
    char text[NI_MAXHOST];
    const bool known = connect(descriptor, one->ai_addr, one->ai_addrlen) == 0 &&
                       getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &bytes) == 0 &&
                       getnameinfo(reinterpret_cast<const sockaddr*>(&own), bytes, text,
                                   sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
    close(descriptor);
    if (known) return std::string(text);
  }
  return Unavailable("no interface of this machine leads to {}", host_port);
}

std::string RdmaPortsOf(const std::string& root, const std::string& interface) {
  std::vector<std::string> ports;
  for (const std::string& device : EntriesOf(root)) {
    const std::filesystem::path folder = std::filesystem::path(root) / device / "ports";
    for (const std::string& port : EntriesOf(folder)) {
      const std::filesystem::path networks = folder / port / "gid_attrs" / "ndevs";
      const std::vector<std::string> gids = EntriesOf(networks);
      if (std::any_of(gids.begin(), gids.end(), [&](const std::string& gid) {
            return FirstLine(networks / gid) == interface;
          })) {
        ports.push_back(fmt::format("{}:{}", device, port));
      }
    }
  }
  return fmt::format("{}", fmt::join(ports, ","));
}

Status BindRanksTo(const std::string& host) {
  TROUPE_ASSIGN_OR_RETURN(const std::string interface, InterfaceOf(host));
  const std::string rdma = RdmaPortsOf("/sys/class/infiniband", interface);
  const std::string devices = rdma.empty() ? interface : interface + "," + rdma;
  setenv("UCX_NET_DEVICES", devices.c_str(), /*overwrite=*/0);
  if (IsLoopbackHost(host)) setenv("UCX_TLS", "^tcp", /*overwrite=*/0);
  // "=" selects exactly this name instead of all that begin with it.
  setenv("NCCL_SOCKET_IFNAME", ("=" + interface).c_str(), /*overwrite=*/0);
  return OkStatus();
}

StatusOr<std::string> BindRanks(std::string host, const std::string& coordinator,
                                const sigset_t& signals) {
  if (host.empty()) {
    TROUPE_ASSIGN_OR_RETURN(host, AwaitOwnAddress(coordinator, signals));
  }
  TROUPE_RETURN_IF_ERROR(BindRanksTo(host));
  return host;
}

}  // namespace troupe
