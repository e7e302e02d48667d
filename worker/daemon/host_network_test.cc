#include "worker/daemon/host_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(HostNetworkTest, AnAddressNamesItsInterface) {
  const auto loopback = InterfaceOf("127.0.0.1");
  ASSERT_TRUE(loopback.ok()) << loopback.status();
  EXPECT_EQ(*loopback, "lo");
  EXPECT_EQ(*InterfaceOf("localhost"), "lo");
}

TEST(HostNetworkTest, AnAddressOfAnotherMachineIsRefused) {
  const Status status = InterfaceOf("203.0.113.7").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("203.0.113.7"));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("lo"));
  EXPECT_EQ(InterfaceOf("no such name").status().code(), StatusCode::kInvalidArgument);
}

TEST(HostNetworkTest, RdmaPortsBehindAnInterfaceAreKept) {
  const TemporaryDirectory root;
  const auto port = [&](const std::string& device, int number, const std::string& interface) {
    const std::string folder =
        fmt::format("{}/{}/ports/{}/gid_attrs/ndevs", root.path(), device, number);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/0") << interface << "\n";
  };
  port("mlx5_0", 1, "eth0");
  port("mlx5_1", 1, "eth1");
  port("mlx5_2", 2, "eth0");
  EXPECT_EQ(RdmaPortsOf(root.path(), "eth0"), "mlx5_0:1,mlx5_2:2");
  EXPECT_EQ(RdmaPortsOf(root.path(), "lo"), "");
  EXPECT_EQ(RdmaPortsOf(root.path() + "/absent", "eth0"), "");
}

TEST(HostNetworkTest, TheOwnAddressIsTheOneThatLeadsToThePeer) {
  const auto own = OwnAddressTowards("127.0.0.1:7");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(*own, "127.0.0.1");
  EXPECT_EQ(*InterfaceOf(*own), "lo");
  const Status refused = OwnAddressTowards("no such name:7").status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("no such name:7"));
}

TEST(HostNetworkTest, ASignalEndsTheWaitForTheAddressOfTheCoordinator) {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &signals, &before), 0);
  ASSERT_EQ(raise(SIGUSR1), 0);
  const Status status = BindRanks("", "no such name:7", signals).status();
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_EQ(status.code(), StatusCode::kCancelled) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("before no such name:7 had an address"));
}

TEST(HostNetworkTest, OnTheLoopbackRanksUseNoTcpUnlessTheUserChoosesIt) {
  for (const char* variable : {"UCX_NET_DEVICES", "UCX_TLS", "NCCL_SOCKET_IFNAME"}) {
    if (std::getenv(variable) != nullptr) GTEST_SKIP() << variable << " is set";
  }
  ASSERT_TRUE(BindRanksTo("127.0.0.1").ok());
  EXPECT_STREQ(std::getenv("UCX_NET_DEVICES"), "lo");
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "=lo");
  EXPECT_STREQ(std::getenv("UCX_TLS"), "^tcp");
  ASSERT_EQ(setenv("UCX_TLS", "all", /*overwrite=*/1), 0);
  ASSERT_TRUE(BindRanksTo("127.0.0.1").ok());
  EXPECT_STREQ(std::getenv("UCX_TLS"), "all");
  for (const char* variable : {"UCX_NET_DEVICES", "UCX_TLS", "NCCL_SOCKET_IFNAME"})
    unsetenv(variable);
}

}  // namespace
}  // namespace troupe
