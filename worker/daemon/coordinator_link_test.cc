#include "worker/daemon/coordinator_link.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "worker/daemon/testing/session_probe.h"

namespace troupe {
namespace {

v1::WorkerMessage Numbered(uint64_t number) {
  v1::WorkerMessage message;
  message.set_leader_epoch(number);
  return message;
}

// The streams that the link has dialled, and what it sent on each.
class FakeDialer {
 public:
  DialStream Dial() {
    return [this](StreamCallbacks callbacks) {
      const std::lock_guard lock(mutex_);
      callbacks_.push_back(std::move(callbacks));
      sent_.emplace_back();
      changed_.notify_all();
      return std::make_unique<Stream>(*this, sent_.size() - 1);
    };
  }
  // Waits until there are that many streams.
  void AwaitStreams(size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(
        changed_.wait_for(lock, EventLog::kLimit, [&] { return callbacks_.size() >= count; }));
  }
  StreamCallbacks callbacks(size_t stream) {
    const std::lock_guard lock(mutex_);
    return callbacks_.at(stream);
  }
  std::vector<uint64_t> sent(size_t stream) {
    const std::lock_guard lock(mutex_);
    return sent_.at(stream);
  }
  int hung_up() {
    const std::lock_guard lock(mutex_);
    return hung_up_;
  }

 private:
  class Stream final : public CoordinatorStream {
   public:
    Stream(FakeDialer& dialer, size_t index) : dialer_(dialer), index_(index) {}
    ~Stream() override {
      const std::lock_guard lock(dialer_.mutex_);
      ++dialer_.hung_up_;
    }
    void Send(v1::WorkerMessage message) override {
      const std::lock_guard lock(dialer_.mutex_);
      dialer_.sent_[index_].push_back(message.leader_epoch());
    }

   private:
    FakeDialer& dialer_;
    const size_t index_;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<StreamCallbacks> callbacks_;
  std::vector<std::vector<uint64_t>> sent_;
  int hung_up_ = 0;
};

class CoordinatorLinkTest : public ::testing::Test {
 protected:
  // Waits until the link has dialled so often and handled everything sent so far.
  void AwaitIdle(size_t streams) {
    dialer_.AwaitStreams(streams);
    ASSERT_TRUE(dialer_.callbacks(streams - 1).on_message({}, nullptr).ok());
    probe_.log().NextOf<session::StreamMessage>();
  }
  void Dial(Address link, uint64_t stream) {
    ASSERT_TRUE(probe_.Send(link, DialCoordinator{stream, Numbered(100 + stream)}).ok());
    ASSERT_TRUE(probe_.Send(link, SendOnStream{stream, {Numbered(1), Numbered(2)}}).ok());
  }

  FakeDialer dialer_;
  // One thread: the link does not run while the probe is held.
  SessionProbe probe_{/*capacity=*/1024, /*threads=*/1};
};

TEST_F(CoordinatorLinkTest, OnlyTheNewestStreamIsSentOn) {
  const Address link = probe_.Own(MakeCoordinatorLink(dialer_.Dial(), probe_.gate()));
  Dial(link, 1);
  Dial(link, 2);
  ASSERT_TRUE(probe_.Send(link, SendOnStream{1, {Numbered(3)}}).ok());
  ASSERT_TRUE(probe_.Send(link, SendOnStream{2, {Numbered(4)}}).ok());
  AwaitIdle(2);
  EXPECT_EQ(dialer_.sent(0), (std::vector<uint64_t>{101, 1, 2}));
  EXPECT_EQ(dialer_.sent(1), (std::vector<uint64_t>{102, 1, 2, 4}));
  EXPECT_EQ(dialer_.hung_up(), 1);
}

TEST_F(CoordinatorLinkTest, AMessageWithoutRoomIsRefusedToItsStream) {
  const Address link = probe_.Own(MakeCoordinatorLink(dialer_.Dial(), probe_.gate()),
                                  /*capacity=*/2);
  Dial(link, 1);
  AwaitIdle(1);
  const StreamCallbacks callbacks = dialer_.callbacks(0);
  probe_.Hold();
  const auto turn = std::make_shared<int>();
  EXPECT_TRUE(callbacks.on_message({}, turn).ok());
  EXPECT_TRUE(callbacks.on_message({}, turn).ok());
  EXPECT_EQ(callbacks.on_message({}, turn).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(turn.use_count(), 3) << "two messages wait";
  probe_.Release();
  {
    const SessionEvent first = probe_.log().Next();
    EXPECT_EQ(std::get<session::StreamMessage>(first.what).stream, 1u);
    probe_.log().Next();
  }
  // Both turns are released with their events, so the stream may be read again.
  EXPECT_EQ(turn.use_count(), 1);
  callbacks.on_closed({"over", /*access_refused=*/true});
  const auto closed = probe_.log().NextOf<session::StreamClosed>();
  EXPECT_EQ(closed.reason, "over");
  EXPECT_TRUE(closed.access_refused);
}

}  // namespace
}  // namespace troupe
