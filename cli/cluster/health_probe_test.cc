#include "cli/cluster/health_probe.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cluster/liveness.h"

namespace troupe {
namespace {

using std::chrono::seconds;
using Time = Liveness::Time;

constexpr char kPage[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n# HELP troupe_health_age_seconds Time …\n"
    "# TYPE troupe_health_age_seconds gauge\ntroupe_health_age_seconds 1.5\n";

TEST(LivenessTest, AProcessIsHungOnceItHasNotWorkedForTheLimit) {
  const Time start{seconds(1000)};
  Liveness liveness(start, seconds(10));
  EXPECT_FALSE(liveness.IsHung(start + seconds(100))) << "it may take long to start";
  EXPECT_TRUE(liveness.IsHung(start + seconds(121)));
  liveness.Answered(start + seconds(100), seconds(2));
  EXPECT_FALSE(liveness.IsHung(start + seconds(107)));
  EXPECT_TRUE(liveness.IsHung(start + seconds(109))) << "it last worked at 98";
  // The process answers and reports that it does not work.
  liveness.Answered(start + seconds(109), seconds(11));
  EXPECT_TRUE(liveness.IsHung(start + seconds(109)));
  liveness.Answered(start + seconds(110), seconds(0));
  liveness.Excuse(seconds(50));
  EXPECT_FALSE(liveness.IsHung(start + seconds(169)));
  EXPECT_TRUE(liveness.IsHung(start + seconds(171)));
}

TEST(LivenessTest, TheLimitFollowsTheDetectionTime) {
  EXPECT_EQ(Liveness::Limit(1), seconds(10));
  EXPECT_EQ(Liveness::Limit(3), seconds(15));
  EXPECT_EQ(Liveness::Limit(60), seconds(300));
}

TEST(HealthProbeTest, TheAgeIsReadFromThePage) {
  EXPECT_EQ(HealthAgeIn(kPage), 1.5);
  EXPECT_EQ(HealthAgeIn("HTTP/1.1 404 Not Found\r\n\r\n\ntroupe_health_age_seconds 1"),
            std::nullopt);
  EXPECT_EQ(HealthAgeIn("HTTP/1.1 200 OK\r\n\r\n"), std::nullopt);
  EXPECT_EQ(HealthAgeIn("HTTP/1.1 200 OK\r\n\r\n\ntroupe_health_age_seconds nan\n"), std::nullopt);
  EXPECT_EQ(HealthAgeIn(""), std::nullopt);
}

// A listening socket on a port of 127.0.0.1.
class Listener {
 public:
  Listener() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_, 4), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(socket_); }
  int port() const { return port_; }
  int Accept() const { return accept(socket_, nullptr, nullptr); }

 private:
  int socket_ = -1;
  int port_ = 0;
};

HealthProbe::State Await(HealthProbe* probe) {
  const auto end = std::chrono::steady_clock::now() + seconds(10);
  HealthProbe::State state = HealthProbe::State::kWaiting;
  while (state == HealthProbe::State::kWaiting && std::chrono::steady_clock::now() < end) {
    state = probe->Turn();
    poll(nullptr, 0, 1);
  }
  return state;
}

TEST(HealthProbeTest, AsksAndReadsWithoutWaiting) {
  const Listener listener;
  HealthProbe probe(listener.port());
  const int connection = listener.Accept();
  // The probe has connected and sent its request; it waits as long as nothing arrives.
  for (int turn = 0; turn < 10; ++turn) EXPECT_EQ(probe.Turn(), HealthProbe::State::kWaiting);
  char request[512];
  const ssize_t got = recv(connection, request, sizeof request, 0);
  ASSERT_GT(got, 0);
  EXPECT_TRUE(std::string_view(request, static_cast<size_t>(got)).starts_with("GET /health "));
  ASSERT_EQ(send(connection, kPage, sizeof kPage - 1, 0), static_cast<ssize_t>(sizeof kPage - 1));
  EXPECT_EQ(probe.Turn(), HealthProbe::State::kWaiting) << "there may be more";
  close(connection);
  EXPECT_EQ(Await(&probe), HealthProbe::State::kAnswered);
  EXPECT_EQ(probe.age().count(), 1.5);
}

TEST(HealthProbeTest, AnAnswerThatIsNoneFails) {
  const Listener listener;
  HealthProbe probe(listener.port());
  const int connection = listener.Accept();
  close(connection);
  EXPECT_EQ(Await(&probe), HealthProbe::State::kFailed);
}

TEST(HealthProbeTest, APortWithoutAListenerFails) {
  int port = 0;
  {
    const Listener listener;
    port = listener.port();
  }
  HealthProbe probe(port);
  EXPECT_EQ(Await(&probe), HealthProbe::State::kFailed);
}

}  // namespace
}  // namespace troupe
