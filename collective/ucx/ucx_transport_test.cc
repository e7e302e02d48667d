// Repeats the main tests over UCX: ranks are threads of this process, each with its own worker, or
// processes where a peer dies.
#include "collective/ucx/ucx_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collective/network.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;

constexpr Duration kLimit = std::chrono::seconds(20);

std::unique_ptr<CollectiveNetwork> MakeNetwork(NetworkOptions options,
                                               const std::string& transports) {
  auto transport = MakeUcxTransport({.transports = transports});
  EXPECT_TRUE(transport.ok()) << transport.status();
  auto network = CollectiveNetwork::Make(options, std::move(*transport));
  EXPECT_TRUE(network.ok()) << network.status();
  return std::move(*network);
}

// Runs the ranks of one group as threads, then closes each network and checks that Close succeeded.
void RunGroup(int ranks, const std::string& transports,
              const std::function<void(CollectiveNetwork&, Communicator&)>& body) {
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::unique_ptr<CollectiveNetwork>> networks;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < ranks; ++rank) {
    networks.push_back(MakeNetwork(
        {.rank = rank, .ranks = ranks, .ranks_on_host = ranks, .cores_on_host = 2}, transports));
    addresses.push_back(networks.back()->address());
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      CollectiveNetwork& network = *networks[static_cast<size_t>(rank)];
      auto group = network.MakeCommunicator("tensor", Purpose::kTensor, all, "tensor/0");
      ASSERT_TRUE(group.ok()) << group.status();
      const Status connected = network.Connect(addresses, kLimit);
      ASSERT_TRUE(connected.ok()) << connected;
      body(network, **group);
      const Status closed = network.Close(kLimit);
      EXPECT_TRUE(closed.ok()) << closed;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class UcxTest : public testing::TestWithParam<std::string> {};

TEST_P(UcxTest, OperationsOfAllSizesGiveWholeNumbersExactly) {
  for (const int ranks : {2, 3}) {
    RunGroup(ranks, GetParam(), [&](CollectiveNetwork&, Communicator& group) {
      const size_t n = static_cast<size_t>(ranks);
      for (const size_t count : {0, 1, 37, 5000, 200001}) {
        const auto value = [](int rank, size_t i) {
          return static_cast<float>((rank + 1) * static_cast<int>(i % 1000));
        };
        const float factor = static_cast<float>(ranks * (ranks + 1) / 2);
        std::vector<float> data(count * n);
        const auto fill = [&] {
          for (size_t i = 0; i < data.size(); ++i) data[i] = value(group.rank(), i);
        };
        fill();
        ASSERT_TRUE(group.AllReduce(data.data(), data.size(), SumFloat32()).ok());
        for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], value(0, i) * factor) << i;
        fill();
        std::vector<float> block(count);
        ASSERT_TRUE(group.ReduceScatter(data.data(), block.data(), count, SumFloat32()).ok());
        ASSERT_TRUE(group.AllGather(block.data(), data.data(), count * sizeof(float)).ok());
        for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], value(0, i) * factor) << i;
        fill();
        std::vector<float> exchanged(data.size());
        ASSERT_TRUE(group.AllToAll(data.data(), exchanged.data(), count * sizeof(float)).ok());
        for (size_t i = 0; i < data.size(); ++i) {
          const int from = static_cast<int>(i / std::max<size_t>(count, 1));
          ASSERT_EQ(exchanged[i],
                    value(from, static_cast<size_t>(group.rank()) * count + i % count))
              << i;
        }
        fill();
        ASSERT_TRUE(group.Broadcast(data.data(), data.size() * sizeof(float), ranks - 1).ok());
        for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], value(ranks - 1, i)) << i;
        ASSERT_TRUE(group.Barrier().ok());
      }
    });
  }
}

TEST_P(UcxTest, PipelineSendsArriveWhileTheSenderComputes) {
  RunGroup(2, GetParam(), [](CollectiveNetwork& network, Communicator& group) {
    std::vector<float> activations(4 * 131072, static_cast<float>(group.rank() + 1));
    if (group.rank() == 0) {
      CollectiveHandle sent =
          group.StartSend(activations.data(), activations.size() * sizeof(float), 1);
      // Rank 0 never enters the network while rank 1 receives; the flight recorder shows that its
      // message has been sent.
      const MonotonicTime limit = std::chrono::steady_clock::now() + kLimit;
      while (network.FlightRecorderJson().find("finished\"") == std::string::npos) {
        ASSERT_LT(std::chrono::steady_clock::now(), limit);
        std::this_thread::yield();
      }
      ASSERT_TRUE(sent.Wait().ok());
    } else {
      ASSERT_TRUE(group.Receive(activations.data(), activations.size() * sizeof(float), 0).ok());
      EXPECT_EQ(activations, std::vector<float>(activations.size(), 1.0f));
    }
    ASSERT_TRUE(group.Barrier().ok());
  });
}

TEST_P(UcxTest, AbortEndsASleepingWaitWithin100Milliseconds) {
  std::promise<void> seen;
  RunGroup(2, GetParam(), [&](CollectiveNetwork& network, Communicator& group) {
    ASSERT_TRUE(group.Barrier().ok());
    if (group.rank() == 1) {
      // Stays alive but does not participate, like a rank that hangs in its own code.
      seen.get_future().wait_for(kLimit);
      return;
    }
    std::vector<float> data(100000);
    MonotonicTime aborted;
    std::thread control([&] {
      const MonotonicTime limit = std::chrono::steady_clock::now() + kLimit;
      while (network.FlightRecorderJson().find("\"pending\"") == std::string::npos &&
             std::chrono::steady_clock::now() < limit) {
        std::this_thread::yield();
      }
      aborted = std::chrono::steady_clock::now();
      network.Abort(Unavailable("rank 1 was lost"));
    });
    const Status status = group.AllReduce(data.data(), data.size(), SumFloat32());
    const MonotonicTime ended = std::chrono::steady_clock::now();
    control.join();
    seen.set_value();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_EQ(std::string(Message(status)), "rank 1 was lost");
    EXPECT_LT(ToSeconds(ended - aborted), 0.1);
  });
}

TEST_P(UcxTest, AMessageOfAnotherLengthIsAnError) {
  RunGroup(2, GetParam(), [](CollectiveNetwork&, Communicator& group) {
    char data[64] = {};
    if (group.rank() == 0) {
      EXPECT_TRUE(group.Send(data, 32, 1).ok());
      EXPECT_TRUE(group.Send(data, 64, 1).ok());
    } else {
      const Status status = group.Receive(data, 64, 0);
      EXPECT_EQ(
          std::string(Message(status)),
          "receive of group tensor/0, sequence 0: the peer sent 32 bytes where 64 were expected");
    }
  });
}

bool WriteText(int descriptor, const std::string& text) {
  const uint64_t bytes = text.size();
  return ::write(descriptor, &bytes, sizeof(bytes)) == sizeof(bytes) &&
         ::write(descriptor, text.data(), bytes) == static_cast<ssize_t>(bytes);
}

std::string ReadText(int descriptor) {
  uint64_t bytes = 0;
  if (::recv(descriptor, &bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes) || bytes > 65536)
    return "";
  std::string text(bytes, '\0');
  return ::recv(descriptor, text.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes) ? text
                                                                                            : "";
}

// Rank 1 in a process of its own: connects, runs one shared operation, then receives until it is
// killed.
int LiveAsRankOne(int descriptor, const std::string& transports) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto network = MakeNetwork({.rank = 1, .ranks = 2}, transports);
  auto group = network->MakeCommunicator("tensor", Purpose::kTensor, {0, 1}, "tensor/0");
  if (!WriteText(descriptor, network->address())) return 1;
  const std::string peer = ReadText(descriptor);
  if (!network->Connect({peer, network->address()}, kLimit).ok()) return 2;
  std::vector<float> data(1 << 20);
  for (;;) {
    if (!(*group)->AllReduce(data.data(), data.size(), SumFloat32()).ok()) return 3;
    WriteText(descriptor, "done");
  }
}

// The parent has no worker when it forks, and the child uses none of the parent's objects.
TEST_P(UcxTest, AKilledPeerLeavesANetworkThatAbortsAndCloses) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(LiveAsRankOne(pair[1], GetParam()));
  ::close(pair[1]);
  {
    auto network =
        MakeNetwork({.rank = 0, .ranks = 2, .hang_limit = milliseconds(200)}, GetParam());
    auto group = network->MakeCommunicator("tensor", Purpose::kTensor, {0, 1}, "tensor/0");
    const std::string peer = ReadText(pair[0]);
    ASSERT_FALSE(peer.empty());
    ASSERT_TRUE(WriteText(pair[0], network->address()));
    const Status connected = network->Connect({network->address(), peer}, kLimit);
    ASSERT_TRUE(connected.ok()) << connected;
    std::vector<float> data(1 << 20);
    ASSERT_TRUE((*group)->AllReduce(data.data(), data.size(), SumFloat32()).ok());
    ASSERT_EQ(ReadText(pair[0]), "done");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    // Data that the child had sent may still complete one operation; later ones must fail.
    Status status;
    for (int i = 0; i < 10 && status.ok(); ++i)
      status = (*group)->AllReduce(data.data(), data.size(), SumFloat32());
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("all_reduce"));
    const MonotonicTime start = std::chrono::steady_clock::now();
    const Status closed = network->Close(std::chrono::seconds(2));
    EXPECT_TRUE(closed.ok()) << closed;
    EXPECT_LT(ToSeconds(std::chrono::steady_clock::now() - start), 2);
  }
  ::close(pair[0]);
}

TEST_P(UcxTest, TheLinkIsTheOneThatMessagesTake) {
  RunGroup(2, GetParam(), [&](CollectiveNetwork& network, Communicator& group) {
    ASSERT_EQ(network.links().size(), 1u);
    const Link& link = network.links().begin()->second;
    EXPECT_EQ(network.links().begin()->first, 1 - group.rank());
    EXPECT_EQ(link.kind, GetParam().empty() ? LinkKind::kSharedMemory : LinkKind::kTcp)
        << ToText(link);
    EXPECT_FALSE(link.device.empty());
  });
}

// The tag without its seal of message 0 of `sender` in the group of RunGroup: everybody who knows
// the names of a job's groups can compute it (CollectiveNetwork::MakeCommunicator,
// ActiveOperation).
uint64_t PublicTag(int sender, int ranks) {
  std::vector<std::string> parts = {"tensor", "tensor/0"};
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(std::to_string(rank));
  uint32_t prefix = 0x811c9dc5u;
  for (const std::string& part : parts) {
    for (const char c : part) prefix = (prefix ^ static_cast<unsigned char>(c)) * 0x01000193u;
    prefix = (prefix ^ 0xFFu) * 0x01000193u;
  }
  return (uint64_t{prefix} << 32) | (static_cast<uint64_t>(sender) << 16);
}

TEST_P(UcxTest, AMessageThatOnlyNamesAnotherRankDoesNotCount) {
  std::promise<void> forged;
  RunGroup(2, GetParam(), [&](CollectiveNetwork& network, Communicator& group) {
    std::thread outsider;
    if (group.rank() == 0) {
      outsider = std::thread([&, address = network.address()] {
        auto transport = MakeUcxTransport({.transports = GetParam()});
        ASSERT_TRUE(transport.ok()) << transport.status();
        ASSERT_TRUE((*transport)->Connect(0, address).ok());
        const float value = 1000;
        Transfer sent;
        (*transport)->Send(0, PublicTag(/*sender=*/1, 2), &value, sizeof value, &sent);
        const MonotonicTime end = std::chrono::steady_clock::now() + kLimit;
        while (!sent.done && std::chrono::steady_clock::now() < end) (*transport)->Progress();
        EXPECT_TRUE(sent.done);
        EXPECT_TRUE((*transport)->Close(/*flush=*/true, kLimit).ok());
        forged.set_value();
      });
    } else {
      // The message of the outsider is the first to arrive.
      ASSERT_EQ(forged.get_future().wait_for(kLimit), std::future_status::ready);
    }
    float value = group.rank() == 0 ? 1 : 2;
    const Status status = group.AllReduce(&value, 1, SumFloat32());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(value, 3);
    if (outsider.joinable()) outsider.join();
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, UcxTest, testing::Values("", "tcp,self"),
                         [](const auto& info) { return info.param.empty() ? "Chosen" : "Tcp"; });

TEST(UcxAddressTest, ADamagedAddressIsRefusedBeforeUcxSeesIt) {
  auto network = MakeNetwork({.rank = 0, .ranks = 2}, "");
  ASSERT_TRUE(network->MakeCommunicator("tensor", Purpose::kTensor, {0, 1}, "tensor/0").ok());
  std::string damaged = network->address();
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  const Status status = network->Connect({network->address(), damaged}, kLimit);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("rank 1: its address"));
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("damaged"));
}

}  // namespace
}  // namespace troupe
