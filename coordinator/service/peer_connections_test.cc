#include "coordinator/service/peer_connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace troupe {
namespace {

sockaddr_storage AddressOf(const std::string& text) {
  sockaddr_storage address{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    std::memcpy(&address, &v4, sizeof v4);
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1) << text;
    v6.sin6_family = AF_INET6;
    std::memcpy(&address, &v6, sizeof v6);
  }
  return address;
}

TEST(PeerConnections, AreCountedByTheIpv4AddressOrTheNetworkOfTheIpv6One) {
  EXPECT_EQ(PeerOf(AddressOf("192.0.2.7")), "192.0.2.7");
  EXPECT_EQ(PeerOf(AddressOf("::ffff:192.0.2.7")), "192.0.2.7");
  EXPECT_EQ(PeerOf(AddressOf("2001:db8:1:2:3:4:5:6")), "2001:db8:1:2::/64");
  EXPECT_EQ(PeerOf(AddressOf("2001:db8:1:2::9")), "2001:db8:1:2::/64");
}

TEST(PeerConnections, OfTheLoopbackAreNotCounted) {
  for (const char* loopback : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"})
    EXPECT_EQ(PeerOf(AddressOf(loopback)), "") << loopback;
}

class PeerConnectionsTest : public ::testing::Test {
 protected:
  ~PeerConnectionsTest() override {
    for (const int socket : sockets_) close(socket);
  }
  int Socket() {
    sockets_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return sockets_.back();
  }
  void Close(int socket) {
    std::erase(sockets_, socket);
    close(socket);
  }
  static MonotonicTime At(int seconds) { return MonotonicTime(std::chrono::seconds(seconds)); }

  PeerConnections connections_{2};
  std::vector<int> sockets_;
};

TEST_F(PeerConnectionsTest, OfEachAddressAreLimited) {
  const int first = Socket();
  EXPECT_TRUE(connections_.Admit(first, "a", At(0)));
  EXPECT_TRUE(connections_.Admit(Socket(), "a", At(0)));
  const int third = Socket();
  EXPECT_FALSE(connections_.Admit(third, "a", At(0)));
  EXPECT_TRUE(connections_.Admit(third, "b", At(0)));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(connections_.Admit(Socket(), "", At(0)));
  EXPECT_FALSE(connections_.Admit(Socket(), "a", At(1)));
}

TEST_F(PeerConnectionsTest, ThatAreClosedMakeRoom) {
  const int first = Socket();
  const int second = Socket();
  ASSERT_TRUE(connections_.Admit(first, "a", At(0)));
  ASSERT_TRUE(connections_.Admit(second, "a", At(0)));
  Close(second);
  // This one has the number of the closed one.
  const int reused = Socket();
  ASSERT_EQ(reused, second);
  EXPECT_TRUE(connections_.Admit(reused, "a", At(0)));
  const int third = Socket();
  EXPECT_FALSE(connections_.Admit(third, "a", At(0)));
  Close(first);
  EXPECT_FALSE(connections_.Admit(third, "a", At(0))) << "closed ones are looked for every second";
  EXPECT_TRUE(connections_.Admit(third, "a", At(1)));
}

TEST_F(PeerConnectionsTest, WhoseNumberAnotherFileHasMakeRoom) {
  const int first = Socket();
  ASSERT_TRUE(connections_.Admit(first, "a", At(0)));
  ASSERT_TRUE(connections_.Admit(Socket(), "a", At(0)));
  ASSERT_EQ(dup2(Socket(), first), first);  // closes the first connection
  EXPECT_TRUE(connections_.Admit(Socket(), "a", At(0)));
}

TEST_F(PeerConnectionsTest, OfAnAddressAreLoggedOnceAMinute) {
  EXPECT_TRUE(connections_.IsLogDue("a", At(0)));
  EXPECT_FALSE(connections_.IsLogDue("a", At(59)));
  EXPECT_TRUE(connections_.IsLogDue("b", At(59)));
  EXPECT_TRUE(connections_.IsLogDue("a", At(60)));
  EXPECT_FALSE(connections_.IsLogDue("b", At(61)));
}

}  // namespace
}  // namespace troupe
