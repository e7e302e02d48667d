// Tests the client with a server that answers what a test wants.
#include "coordinator/kubernetes/api_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <thread>

namespace troupe {
namespace {

// Takes one connection, answers its first request with the text, and keeps it open until it ends.
class OneAnswer {
 public:
  explicit OneAnswer(std::string_view answer) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, any, bytes), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, any, &bytes), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer] {
      const int connection = accept(socket_, nullptr, nullptr);
      char request[4096];
      if (recv(connection, request, sizeof(request), 0) > 0) {
        send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
        while (recv(connection, request, sizeof(request), 0) > 0) {
        }
      }
      close(connection);
    });
  }
  ~OneAnswer() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }

 private:
  int socket_;
  int port_ = 0;
  std::thread thread_;
};

TEST(ApiClientTest, ARefusedWatchThatStaysOpenIsWaitedForAndNotAskedInALoop) {
  const OneAnswer server(
      "HTTP/1.1 500 Broken\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nbroken!\n\r\n");
  const SystemClock clock;
  ApiClient client({.url = server.url()}, clock);
  client.OpenWatch("/watch");
  const MonotonicTime begin = clock.Now();
  int reads = 0;
  for (; clock.Now() - begin < std::chrono::milliseconds(300); ++reads) {
    const WatchRead read = client.ReadWatch(std::chrono::milliseconds(50));
    EXPECT_TRUE(read.lines.empty());
    EXPECT_FALSE(read.ended);
  }
  EXPECT_LE(reads, 12);
}

// The controller logs an error again if its text differs.
TEST(ApiClientTest, AnErrorHasTheSameTextHoweverLongItTook) {
  const SystemClock clock;
  ApiClient client({.url = "http://127.0.0.1:1"}, clock);
  EXPECT_EQ(client.Call({.path = "/list"}).error, "Couldn't connect to server");
}

}  // namespace
}  // namespace troupe
