#include "coordinator/service/connection_acceptor.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {
namespace {

// A connection to `port` of `host`. IsEnded waits until the peer closes it.
class Dialled {
 public:
  explicit Dialled(int port, const std::string& host = "127.0.0.1")
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1) << host;
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Dialled() { close(socket_); }

  bool IsEnded() {
    char byte = 0;
    const ssize_t got = recv(socket_, &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

 private:
  const int socket_;
};

struct Seen {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> accepted;
  int refused = 0;

  ConnectionAcceptor::Handlers Handlers() {
    return {.accepted =
                [this](int, int connection) {
                  const std::lock_guard lock(mutex);
                  accepted.push_back(connection);
                  changed.notify_all();
                },
            .refused =
                [this] {
                  const std::lock_guard lock(mutex);
                  ++refused;
                  changed.notify_all();
                }};
  }
  bool Wait(size_t connections, int refusals) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(10),
                            [&] { return accepted.size() >= connections && refused >= refusals; });
  }
};

TEST(ConnectionAcceptorTest, HandsConnectionsOnAndRefusesThoseAboveTheBound) {
  auto acceptor = ConnectionAcceptor::Listen("127.0.0.1:0");
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  const int next = dup(0);  // the lowest free number
  close(next);
  Seen seen;
  // This process has both ends of each connection, so the third one's accepted end exceeds the
  // bound.
  (*acceptor)->Start(seen.Handlers(), {.first_refused = next + 5, .most_address_connections = 1});
  Dialled first((*acceptor)->port());
  ASSERT_TRUE(seen.Wait(1, 0));
  Dialled second((*acceptor)->port());
  ASSERT_TRUE(seen.Wait(2, 0));
  Dialled third((*acceptor)->port());
  ASSERT_TRUE(seen.Wait(2, 1));
  EXPECT_TRUE(third.IsEnded());
  // Closing two connections frees the descriptors for both ends of another one.
  close(seen.accepted[0]);
  close(seen.accepted[1]);
  Dialled fourth((*acceptor)->port());
  EXPECT_TRUE(seen.Wait(3, 1));
  (*acceptor)->Stop();
  close(seen.accepted[2]);
}

// Returns an IPv4 address of this host that is not on the loopback; empty if it has none.
std::string OwnAddress() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    sockaddr_in address;
    std::memcpy(&address, one->ifa_addr, sizeof address);
    char text[INET_ADDRSTRLEN];
    found = inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  }
  freeifaddrs(all);
  return found;
}

TEST(ConnectionAcceptorTest, OneAddressGetsNoMoreThanItsLimitAndTheLoopbackHasNone) {
  const std::string own = OwnAddress();
  if (own.empty()) GTEST_SKIP() << "this host has the loopback only";
  auto acceptor = ConnectionAcceptor::Listen("0.0.0.0:0");
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  const int port = (*acceptor)->port();
  Seen seen;
  (*acceptor)->Start(seen.Handlers(), {.first_refused = 1024, .most_address_connections = 2});
  const Dialled first(port, own);
  const Dialled second(port, own);
  ASSERT_TRUE(seen.Wait(2, 0));
  Dialled third(port, own);
  EXPECT_TRUE(third.IsEnded());
  EXPECT_TRUE(seen.Wait(2, 1));
  const Dialled local(port);
  const Dialled other(port);
  const Dialled another(port);
  EXPECT_TRUE(seen.Wait(5, 1));
  (*acceptor)->Stop();
  EXPECT_EQ(seen.accepted.size(), 5);
  for (const int connection : seen.accepted) close(connection);
}

TEST(ConnectionAcceptorTest, AnAddressHasAQuarterOfAllConnections) {
  EXPECT_EQ(MostAddressConnections(FirstRefusedDescriptor(1 << 20)), 4096);
  EXPECT_EQ(MostAddressConnections(FirstRefusedDescriptor(1024)), 192);
  EXPECT_EQ(MostAddressConnections(2), 1);
}

TEST(ConnectionAcceptorTest, ATakenPortIsNamedWithTheReason) {
  auto acceptor = ConnectionAcceptor::Listen("127.0.0.1:0");
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  const std::string listen = fmt::format("127.0.0.1:{}", (*acceptor)->port());
  const Status status = ConnectionAcceptor::Listen(listen).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(status)), ::testing::HasSubstr(listen));
  EXPECT_THAT(std::string(Message(status)), ::testing::HasSubstr("in use"));
  EXPECT_EQ(ConnectionAcceptor::Listen("no such host:1").status().code(), StatusCode::kUnavailable);
}

TEST(ConnectionAcceptorTest, APortThatIsTakenInOneAddressFamilyIsTaken) {
  auto loopback = ConnectionAcceptor::Listen("[::1]:0");
  if (!loopback.ok()) GTEST_SKIP() << "this host has no IPv6: " << loopback.status();
  // Without a host all addresses of both families are meant.
  const auto all = ConnectionAcceptor::Listen(fmt::format(":{}", (*loopback)->port()));
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.status().code(), StatusCode::kUnavailable);
  const auto free = ConnectionAcceptor::Listen(":0");
  EXPECT_TRUE(free.ok()) << free.status();
}

TEST(ConnectionAcceptorTest, TheBoundLeavesDescriptorsToTheRestOfTheProcess) {
  EXPECT_EQ(FirstRefusedDescriptor(200), 150);
  EXPECT_EQ(FirstRefusedDescriptor(1024), 768);
  EXPECT_EQ(FirstRefusedDescriptor(10000), 9488);
  EXPECT_EQ(FirstRefusedDescriptor(1 << 20), 16384);
}

}  // namespace
}  // namespace troupe
