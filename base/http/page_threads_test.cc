// Pages that are made on threads: by these threads alone, and by a server for clients over the
// loopback.
#include "base/http/page_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/http/http_server.h"
#include "base/http/test_http_client.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::seconds kMadeWithin{30};

// Makes pages of which those below /held take until they are released.
class HeldPages {
 public:
  HttpPages pages() {
    return [this](const HttpRequest& request) { return Make(request); };
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  // Waits until this many pages are begun. Returns whether they are.
  bool AwaitBegun(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kMadeWithin, [&] { return begun_.size() >= count; });
  }
  // Return the paths, in the order in which their pages were begun and made.
  std::vector<std::string> begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  std::vector<std::string> made() {
    const std::lock_guard lock(mutex_);
    return made_;
  }

 private:
  HttpPage Make(const HttpRequest& request) {
    std::unique_lock lock(mutex_);
    begun_.push_back(request.path);
    changed_.notify_all();
    if (request.path.starts_with("/held")) {
      EXPECT_TRUE(changed_.wait_for(lock, kMadeWithin, [this] { return released_; }));
    }
    made_.push_back(request.path);
    return {200, "page " + request.path + " of " + request.host};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  std::vector<std::string> begun_;
  std::vector<std::string> made_;
};

TEST(PageThreads, ARequestThatIsDroppedIsNotBegunAndFreesItsPlace) {
  HeldPages held;
  std::promise<void> two_made;
  int made = 0;
  PageThreads threads({.pages = held.pages(), .threads = 1, .most_waiting = 1, .on_made = [&] {
                         if (++made == 2) two_made.set_value();
                       }});
  const auto first = threads.Ask({.path = "/held"});
  ASSERT_NE(first, nullptr);
  ASSERT_TRUE(held.AwaitBegun(1));
  auto second = threads.Ask({.path = "/b"});
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(threads.Ask({.path = "/c"}), nullptr);
  EXPECT_FALSE(threads.Take(first.get()).has_value());
  second.reset();
  const auto fourth = threads.Ask({.path = "/d", .host = "lab"});
  ASSERT_NE(fourth, nullptr);
  held.Release();
  ASSERT_EQ(two_made.get_future().wait_for(kMadeWithin), std::future_status::ready);
  const std::optional<HttpPage> page = threads.Take(fourth.get());
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->body, "page /d of lab");
  EXPECT_FALSE(threads.Take(fourth.get()).has_value());
  EXPECT_THAT(held.begun(), ElementsAre("/held", "/d"));
}

TEST(PageThreads, ARequestForAnIdleThreadDoesNotWait) {
  HeldPages held;
  PageThreads threads({.pages = held.pages(), .threads = 2, .most_waiting = 0, .on_made = [] {}});
  const auto first = threads.Ask({.path = "/held/a"});
  const auto second = threads.Ask({.path = "/held/b"});
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(threads.Ask({.path = "/c"}), nullptr);
  EXPECT_TRUE(held.AwaitBegun(2));
  held.Release();
}

class ServerThreadsTest : public testing::Test {
 protected:
  ~ServerThreadsTest() override { held_.Release(); }

  void Start(HttpServerOptions options) {
    options.listen = "127.0.0.1:0";
    if (!options.handlers.pages) options.handlers.pages = held_.pages();
    auto server = HttpServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }
  std::unique_ptr<TestConnection> Ask(const std::string& path) const {
    auto connection = std::make_unique<TestConnection>(port());
    EXPECT_TRUE(connection->Send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"));
    return connection;
  }
  // Asks for a page whose making is begun when this returns.
  std::unique_ptr<TestConnection> BeginHeld() {
    const size_t begun = held_.begun().size();
    auto connection = Ask("/held");
    EXPECT_TRUE(held_.AwaitBegun(begun + 1));
    return connection;
  }
  // Asks for two pages while all threads are busy and one request may wait. Returns the one that
  // waits, after the other has been refused.
  std::unique_ptr<TestConnection> AskOneThatWaits() const {
    auto first = Ask("/waits");
    auto second = Ask("/waits");
    pollfd ends[] = {{first->descriptor(), POLLIN, 0}, {second->descriptor(), POLLIN, 0}};
    EXPECT_GT(poll(ends, std::size(ends), 20'000), 0);
    if (ends[0].revents != 0) std::swap(first, second);
    EXPECT_THAT(second->ReadAll(), StartsWith("HTTP/1.1 503 "));
    return first;
  }

  HeldPages held_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(ServerThreadsTest, APageThatTakesTimeKeepsNobodyFromAnAnswer) {
  Start({.threads = 2});
  const auto slow = BeginHeld();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(GetPlain(port(), "/a"), EndsWith("\r\n\r\npage /a of a"));
    EXPECT_THAT(GetPlain(port(), "a"), StartsWith("HTTP/1.1 400 "));
  }
  held_.Release();
  EXPECT_THAT(slow->ReadAll(),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\npage /held of a")));
}

TEST_F(ServerThreadsTest, ManyClientsGetThePagesThatTheyAskedFor) {
  constexpr int kClients = 16;
  constexpr int kRequests = 20;
  Start({.threads = 4});
  std::atomic<int> served = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < kRequests; ++i) {
        const std::string path = fmt::format("/{}/{}", client, i);
        served += GetPlain(port(), path).ends_with("\r\n\r\npage " + path + " of a") ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(served, kClients * kRequests);
}

TEST_F(ServerThreadsTest, AnAnswerToHeadHasNoBody) {
  Start({.threads = 1});
  const TestConnection connection(port());
  ASSERT_TRUE(connection.Send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_THAT(connection.ReadAll(),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 12\r\n"),
                    EndsWith("\r\n\r\n")));
}

TEST_F(ServerThreadsTest, WhoeverMayNotWaitIsAskedToComeAgain) {
  Start({.threads = 1, .most_waiting = 0});
  const auto slow = BeginHeld();
  EXPECT_THAT(GetPlain(port(), "/a"), AllOf(StartsWith("HTTP/1.1 503 Service Unavailable\r\n"),
                                            HasSubstr("\r\nRetry-After: 1\r\n")));
  held_.Release();
  EXPECT_THAT(slow->ReadAll(), EndsWith("page /held of a"));
  EXPECT_THAT(GetPlain(port(), "/a"), EndsWith("page /a of a"));
}

TEST_F(ServerThreadsTest, ARequestThatWaitsIsServedOnceAThreadIsIdle) {
  Start({.threads = 1, .most_waiting = 1});
  const auto slow = BeginHeld();
  const auto waits = AskOneThatWaits();
  EXPECT_THAT(held_.begun(), ElementsAre("/held"));
  held_.Release();
  EXPECT_THAT(waits->ReadAll(), EndsWith("page /waits of a"));
  EXPECT_THAT(slow->ReadAll(), EndsWith("page /held of a"));
}

TEST_F(ServerThreadsTest, AClientThatGoesFreesItsPlace) {
  Start({.threads = 1, .most_waiting = 1});
  const auto slow = BeginHeld();
  const auto gone = AskOneThatWaits();
  ASSERT_EQ(shutdown(gone->descriptor(), SHUT_WR), 0);
  EXPECT_TRUE(gone->Ends());
  const auto waits = AskOneThatWaits();
  ASSERT_EQ(shutdown(slow->descriptor(), SHUT_WR), 0);
  EXPECT_TRUE(slow->Ends());  // although its page is not made yet
  held_.Release();
  EXPECT_THAT(waits->ReadAll(), EndsWith("page /waits of a"));
  EXPECT_THAT(held_.begun(), ElementsAre("/held", "/waits"));
}

TEST_F(ServerThreadsTest, WhatAClientSendsWhileItWaitsIsIgnored) {
  Start({.threads = 1});
  const auto slow = BeginHeld();
  ASSERT_TRUE(slow->Send("GET /a HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(GetPlain(port(), "a"), StartsWith("HTTP/1.1 400 "));
  held_.Release();
  EXPECT_THAT(slow->ReadAll(), EndsWith("page /held of a"));
  EXPECT_THAT(held_.begun(), ElementsAre("/held"));
}

TEST_F(ServerThreadsTest, APageThatIsBeingMadeOutlivesManySilentClients) {
  constexpr size_t kMost = 4;
  Start({.most_connections = kMost, .threads = 1});
  const auto slow = BeginHeld();
  std::vector<std::unique_ptr<TestConnection>> silent;
  for (size_t i = 0; i < 2 * kMost; ++i) silent.push_back(std::make_unique<TestConnection>(port()));
  EXPECT_TRUE(silent[kMost]->Ends());
  held_.Release();
  EXPECT_THAT(slow->ReadAll(), EndsWith("page /held of a"));
}

TEST_F(ServerThreadsTest, TheOldestConnectionMakesRoomIfThePagesOfAllAreBeingMade) {
  Start({.most_connections = 2, .threads = 2});
  const auto first = BeginHeld();
  const auto second = BeginHeld();
  const TestConnection third(port());
  EXPECT_TRUE(first->Ends());
  held_.Release();
  EXPECT_THAT(second->ReadAll(), EndsWith("page /held of a"));
  EXPECT_THAT(GetPlain(port(), "/a"), EndsWith("page /a of a"));
}

TEST_F(ServerThreadsTest, APageThatTakesTooLongEndsItsConnection) {
  Start({.limits = {.answer = std::chrono::milliseconds(200)}, .threads = 1});
  const auto slow = BeginHeld();
  EXPECT_EQ(slow->ReadAll(), "");
  EXPECT_THAT(GetPlain(port(), "a"), StartsWith("HTTP/1.1 400 "));
}

TEST_F(ServerThreadsTest, DestructionWaitsForThePageInProgressAndBeginsNoOther) {
  Start({.threads = 1, .most_waiting = 1});
  const auto slow = BeginHeld();
  const auto waits = AskOneThatWaits();
  std::thread destroyer([this] { server_.reset(); });
  EXPECT_TRUE(slow->Ends());
  EXPECT_TRUE(waits->Ends());
  EXPECT_THAT(held_.made(), ElementsAre());
  held_.Release();
  destroyer.join();
  EXPECT_THAT(held_.made(), ElementsAre("/held"));
  EXPECT_THAT(held_.begun(), ElementsAre("/held"));
}

TEST_F(ServerThreadsTest, DestructionEndsWithManyRequestsInProgress) {
  Start({.threads = 4, .most_waiting = 8});
  std::vector<std::unique_ptr<TestConnection>> connections;
  for (int i = 0; i < 40; ++i) connections.push_back(Ask("/a"));
  server_.reset();
  for (const auto& connection : connections) EXPECT_TRUE(connection->Ends());
}

TEST_F(ServerThreadsTest, ThreadsBlockTheSignalsOfTheProcess) {
  HttpServerOptions options{.threads = 1};
  options.handlers.pages = [](const HttpRequest&) -> HttpPage {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    const auto is_blocked = [&](int signal) { return sigismember(&blocked, signal) == 1; };
    const std::vector<int> signals = {SIGTERM, SIGINT, SIGPIPE, SIGCHLD, SIGHUP, SIGUSR1};
    return {200, std::ranges::all_of(signals, is_blocked) ? "blocked" : "open"};
  };
  Start(std::move(options));
  EXPECT_THAT(GetPlain(port(), "/a"), EndsWith("\r\n\r\nblocked"));
}

}  // namespace
}  // namespace troupe
