// Counts the open connections of each peer address and limits them, so that one host cannot take
// all that a listener has.
#ifndef TROUPE_COORDINATOR_SERVICE_PEER_CONNECTIONS_H_
#define TROUPE_COORDINATOR_SERVICE_PEER_CONNECTIONS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"

namespace troupe {

// Returns the address under which connections of this peer are counted: an IPv4 address, or the
// /64 network of an IPv6 one, because a host may have all addresses of its network. Empty for the
// loopback, which is not limited: whoever is on the coordinator's host is trusted.
std::string PeerOf(const sockaddr_storage& address);

// Not thread-safe.
class PeerConnections {
 public:
  // `most`: connections of one peer at a time.
  explicit PeerConnections(int most) : most_(most) {}

  // Returns whether the peer may have this connection, and counts it then until its descriptor is
  // closed. An empty `peer` may have any number. REQUIRES: `now` does not decrease.
  bool Admit(int connection, const std::string& peer, MonotonicTime now);

  // Returns whether a refusal of the peer is due to be logged: once a minute.
  bool IsLogDue(const std::string& peer, MonotonicTime now);

  int most() const { return most_; }

 private:
  // The descriptor's number may be that of another file meanwhile: device and inode show it.
  struct Open {
    std::string peer;
    dev_t device;
    ino_t inode;
  };

  int CountOf(const std::string& peer) const;
  void Forget(std::map<int, Open>::iterator open);
  void ForgetClosed();

  const int most_;
  std::map<int, Open> open_;           // by descriptor
  std::map<std::string, int> counts_;  // the connections in `open_`, by peer
  std::optional<MonotonicTime> looked_for_closed_;
  std::map<std::string, MonotonicTime> logged_;  // within the last minute
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_PEER_CONNECTIONS_H_
