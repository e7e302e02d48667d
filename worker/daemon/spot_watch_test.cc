#include "worker/daemon/spot_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>

#include "base/http/http_server.h"

namespace troupe {
namespace {

// Accepts connections and answers nothing.
class HangingService {
 public:
  HangingService() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, size), 0);
    EXPECT_EQ(listen(listener_, 64), 0);
    EXPECT_EQ(getsockname(listener_, any, &size), 0);
    url_ = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
  }
  ~HangingService() { close(listener_); }
  // Waits until there is a connection, for 30 s at most.
  bool AwaitConnection() const {
    pollfd waits = {.fd = listener_, .events = POLLIN};
    return poll(&waits, 1, 30'000) == 1;
  }
  const std::string& url() const { return url_; }

 private:
  const int listener_;
  std::string url_;
};

TEST(SpotWatchTest, EveryRequestHasALimit) {
  const HangingService service;
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = AskMetadata(service.url(), {.path = "/x"}, std::chrono::milliseconds(200));
  EXPECT_EQ(answer.status().code(), StatusCode::kDeadlineExceeded) << answer.status();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(SpotWatchTest, EndsAlthoughTheServiceHangs) {
  const HangingService service;
  const auto begin = std::chrono::steady_clock::now();
  {
    const SpotWatch watch(
        {.provider = SpotProvider::kAws, .url = service.url(), .on_notice = [](const SpotNotice&) {
           ADD_FAILURE();
           return OkStatus();
         }});
    EXPECT_TRUE(service.AwaitConnection());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(SpotWatchTest, ReportsTheNoticeUntilItIsAcceptedAndThenNeverAgain) {
  std::atomic<int> requests = 0;
  auto server = HttpServer::Start(
      {.listen = "127.0.0.1:0", .handlers = {.pages = [&](const HttpRequest& request) -> HttpPage {
                                  EXPECT_EQ(request.path, "/computeMetadata/v1/instance/preempted");
                                  return {200, ++requests < 2 ? "FALSE" : "TRUE"};
                                }}});
  ASSERT_TRUE(server.ok()) << server.status();
  std::atomic<int> reports = 0;
  std::promise<SpotNotice> accepted;
  const SpotWatch watch({.provider = SpotProvider::kGcp,
                         .url = fmt::format("http://127.0.0.1:{}", (*server)->port()),
                         .on_notice = [&](const SpotNotice& notice) {
                           if (++reports < 2) return ResourceExhausted("no room");
                           accepted.set_value(notice);  // a second time would throw
                           return OkStatus();
                         }});
  std::future<SpotNotice> notice = accepted.get_future();
  ASSERT_EQ(notice.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_EQ(notice.get().left, std::chrono::seconds(30));
  EXPECT_EQ(reports, 2);
  EXPECT_EQ(requests, 2) << "after a notice nothing is asked";
}

TEST(SpotWatchTest, AnAnswerThatIsTooLargeIsNamed) {
  auto server =
      HttpServer::Start({.listen = "127.0.0.1:0", .handlers = {.pages = [](const HttpRequest&) {
                                                    return HttpPage{200, std::string(70'000, 'x')};
                                                  }}});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto answer = AskMetadata(fmt::format("http://127.0.0.1:{}", (*server)->port()),
                                  {.path = "/x"}, std::chrono::seconds(5));
  EXPECT_NE(Message(answer.status()).find("/x: the answer has more than 65536 bytes"),
            std::string::npos)
      << answer.status();
}

TEST(SpotWatchTest, AServiceThatIsNotThereIsAnError) {
  const auto answer = AskMetadata("http://127.0.0.1:1", {.path = "/x"}, std::chrono::seconds(5));
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable) << answer.status();
  EXPECT_EQ(
      AskMetadata("file:///etc", {.path = "/passwd"}, std::chrono::seconds(5)).status().code(),
      StatusCode::kUnavailable);
}

}  // namespace
}  // namespace troupe
