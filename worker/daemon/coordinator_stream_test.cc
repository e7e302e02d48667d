// Tests the stream against a server in this process.
#include "worker/daemon/coordinator_stream.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

constexpr auto kEndLimit = std::chrono::seconds(60);
constexpr int kMessages = 3 * StreamCallbacks::kUnhandledMax;
constexpr size_t kMostUnwritten = 8;

// Writes kMessages numbered messages to each worker, then reads to the end of its stream.
class Coordinator final : public v1::WorkerService::Service {
 public:
  // It reads nothing until LetRead.
  void HoldReads() {
    const std::lock_guard lock(mutex_);
    reads_ = false;
  }
  // Streams that begin from now on end at once with `status`.
  void Answer(grpc::Status status) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(status);
  }
  // The connections of its streams, in the order in which these began.
  std::vector<std::string> peers() {
    const std::lock_guard lock(mutex_);
    return peers_;
  }
  void LetRead() {
    const std::lock_guard lock(mutex_);
    reads_ = true;
    changed_.notify_all();
  }

 private:
  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>* stream) override {
    {
      const std::lock_guard lock(mutex_);
      peers_.push_back(context->peer());
      if (!answer_.ok()) return answer_;
    }
    for (int i = 0; i < kMessages; ++i) {
      v1::CoordinatorMessage message;
      message.set_leader_epoch(static_cast<uint64_t>(i));
      stream->Write(message);
    }
    {
      std::unique_lock lock(mutex_);
      EXPECT_TRUE(changed_.wait_for(lock, kEndLimit, [this] { return reads_; }));
    }
    v1::WorkerMessage ignored;
    while (stream->Read(&ignored)) {
    }
    return grpc::Status::OK;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool reads_ = true;
  grpc::Status answer_;
  std::vector<std::string> peers_;
};

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  EXPECT_TRUE(file >> all >> resident);
  return resident * sysconf(_SC_PAGESIZE);
}

v1::WorkerMessage MessageOf(size_t bytes) {
  v1::WorkerMessage message;
  message.mutable_log_lines()->add_lines(std::string(bytes, 'x'));
  return message;
}

class CoordinatorStreamTest : public ::testing::Test {
 protected:
  CoordinatorStreamTest() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&coordinator_);
    server_ = builder.BuildAndStart();
    dialer_ = std::make_unique<CoordinatorDialer>(fmt::format("127.0.0.1:{}", port), std::nullopt,
                                                  kMostUnwritten);
  }
  ~CoordinatorStreamTest() override {
    coordinator_.LetRead();
    {
      const std::lock_guard lock(mutex_);
      turns_are_kept_ = false;
    }
    ReleaseTurns();
    dialer_.reset();  // waits for the ends of the streams, which use the members below
    server_->Shutdown(std::chrono::system_clock::now());
  }

  StreamCallbacks Callbacks() {
    return {.on_message =
                [this](v1::CoordinatorMessage message, std::shared_ptr<void> turn) {
                  const std::lock_guard lock(mutex_);
                  numbers_.push_back(message.leader_epoch());
                  if (turns_are_kept_) turns_.push_back(std::move(turn));
                  changed_.notify_all();
                  return answer_;
                },
            .on_closed =
                [this](StreamEnd end) {
                  const std::lock_guard lock(mutex_);
                  is_closed_ = true;
                  reason_ = std::move(end.reason);
                  access_refused_ = end.access_refused;
                  changed_.notify_all();
                }};
  }
  bool AwaitMessages(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kEndLimit, [&] { return numbers_.size() >= count; });
  }
  bool AwaitClose() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kEndLimit, [&] { return is_closed_; });
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return numbers_.size();
  }
  // Releases them after the lock, because a released turn may bring the next message.
  void ReleaseTurns() {
    std::vector<std::shared_ptr<void>> released;
    const std::lock_guard lock(mutex_);
    released.swap(turns_);
  }

  Coordinator coordinator_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<CoordinatorDialer> dialer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Status answer_;
  std::vector<uint64_t> numbers_;
  std::vector<std::shared_ptr<void>> turns_;
  bool turns_are_kept_ = true;
  bool is_closed_ = false;
  std::string reason_;
  bool access_refused_ = false;
};

TEST_F(CoordinatorStreamTest, IsReadNoFurtherThanItsMessagesAreHandled) {
  auto stream = dialer_->Dial(Callbacks());
  for (size_t read = StreamCallbacks::kUnhandledMax; read <= kMessages;
       read += StreamCallbacks::kUnhandledMax) {
    ASSERT_TRUE(AwaitMessages(read));
    EXPECT_EQ(count(), read);
    ReleaseTurns();
  }
  for (size_t i = 0; i < kMessages; ++i) EXPECT_EQ(numbers_[i], i);
  stream.reset();
  EXPECT_TRUE(AwaitClose());
}

TEST_F(CoordinatorStreamTest, EndsWhileItIsNotRead) {
  auto stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitMessages(StreamCallbacks::kUnhandledMax));
  stream.reset();
  EXPECT_TRUE(AwaitClose());
  ReleaseTurns();
}

// gRPC frees memory twice if one of its own threads releases its last channel.
TEST_F(CoordinatorStreamTest, EndsBeforeItsDialer) {
  auto stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitMessages(1));
  ReleaseTurns();
  stream.reset();
  {
    const std::lock_guard lock(mutex_);
    turns_are_kept_ = false;
  }
  ReleaseTurns();
  dialer_.reset();
  const std::lock_guard lock(mutex_);
  EXPECT_TRUE(is_closed_);
}

TEST_F(CoordinatorStreamTest, EndsForTheReasonForWhichItsDialerReconnects) {
  dialer_->Reconnect("nobody has dialled");
  const auto stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitMessages(1));
  dialer_->Reconnect("a new certificate");
  ASSERT_TRUE(AwaitClose());
  EXPECT_EQ(reason_, "a new certificate");
  dialer_->Reconnect("the stream has ended");
  ReleaseTurns();
}

TEST_F(CoordinatorStreamTest, AConnectionWhoseStreamWasGivenUpIsMadeAnewAndOthersAreKept) {
  turns_are_kept_ = false;
  auto stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitMessages(kMessages));
  stream.reset();  // as the session does when it has heard nothing for the length of a lease
  ASSERT_TRUE(AwaitClose());
  stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitMessages(kMessages + 1));
  ASSERT_EQ(coordinator_.peers().size(), 2u);
  EXPECT_NE(coordinator_.peers()[1], coordinator_.peers()[0]);
}

TEST_F(CoordinatorStreamTest, AStreamThatHasEndedLeavesItsConnectionToTheNextOne) {
  turns_are_kept_ = false;
  answer_ = ResourceExhausted("full");  // ends the stream, without the session
  auto stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitClose());
  {
    const std::lock_guard lock(mutex_);
    answer_ = OkStatus();
    numbers_.clear();
  }
  stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitMessages(1));
  ASSERT_EQ(coordinator_.peers().size(), 2u);
  EXPECT_EQ(coordinator_.peers()[1], coordinator_.peers()[0]);
}

// The certificate of a connection is that of its begin.
TEST_F(CoordinatorStreamTest, AConnectionWhoseAccessIsRefusedIsMadeAnew) {
  turns_are_kept_ = false;
  size_t streams = 0;
  for (const auto code : {grpc::StatusCode::UNAUTHENTICATED, grpc::StatusCode::PERMISSION_DENIED,
                          grpc::StatusCode::UNAVAILABLE}) {
    coordinator_.Answer(grpc::Status(code, "not now"));
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = false;
    }
    auto stream = dialer_->Dial(Callbacks());
    ASSERT_TRUE(AwaitClose());
    EXPECT_EQ(reason_, "not now");
    EXPECT_EQ(access_refused_, code != grpc::StatusCode::UNAVAILABLE);
    ASSERT_EQ(coordinator_.peers().size(), ++streams);
  }
  coordinator_.Answer(grpc::Status::OK);
  auto stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitMessages(1));
  const std::vector<std::string> peers = coordinator_.peers();
  ASSERT_EQ(peers.size(), 4u);
  EXPECT_NE(peers[1], peers[0]);
  EXPECT_NE(peers[2], peers[1]);
  EXPECT_EQ(peers[3], peers[2]) << "a coordinator that is not ready refuses no access";
}

TEST_F(CoordinatorStreamTest, AMessageThatIsRefusedEndsTheStream) {
  answer_ = ResourceExhausted("full");
  const auto stream = dialer_->Dial(Callbacks());
  EXPECT_TRUE(AwaitClose());
}

TEST_F(CoordinatorStreamTest, IsCancelledWhenTooManyMessagesWaitForACoordinatorThatDoesNotRead) {
  constexpr int64_t kBytes = 1 << 20;
  constexpr int64_t kSent = 1000;  // far more than gRPC buffers
  coordinator_.HoldReads();
  turns_are_kept_ = false;
  const auto stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitMessages(kMessages));
  const v1::WorkerMessage message = MessageOf(kBytes);
  const int64_t before = ResidentBytes();
  for (int64_t i = 0; i < kSent; ++i) stream->Send(message);
  EXPECT_LT(ResidentBytes() - before, kSent * kBytes / 2) << "what exceeds the limit is dropped";
  ASSERT_TRUE(AwaitClose());
  EXPECT_EQ(reason_, "the coordinator does not read: 8 messages wait");
}

// No read is in progress that could learn of the end.
TEST_F(CoordinatorStreamTest, IsCancelledForThatAlsoWhileNobodyHandlesItsMessages) {
  constexpr int kSent = 100;
  coordinator_.HoldReads();
  const auto stream = dialer_->Dial(Callbacks());
  ASSERT_TRUE(AwaitMessages(StreamCallbacks::kUnhandledMax));
  const v1::WorkerMessage message = MessageOf(1 << 20);
  for (int i = 0; i < kSent; ++i) stream->Send(message);
  ASSERT_TRUE(AwaitClose());
  EXPECT_EQ(reason_, "the coordinator does not read: 8 messages wait");
  ReleaseTurns();
}

}  // namespace
}  // namespace troupe
