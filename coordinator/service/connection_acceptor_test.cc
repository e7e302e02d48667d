#include "coordinator/service/connection_acceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

namespace troupe {
namespace {

// A connection to `port` of 127.0.0.1. IsEnded waits until the peer closes it.
class Dialled {
 public:
  explicit Dialled(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
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
  (*acceptor)->Start(seen.Handlers(), next + 5);
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
