// Tests the stream against a server in this process.
#include "worker/daemon/coordinator_stream.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

constexpr auto kLimit = std::chrono::seconds(60);
constexpr int kMessages = 3 * StreamCallbacks::kUnhandledMax;

// Writes kMessages numbered messages to each worker, then waits for the end of its stream.
class Coordinator final : public v1::WorkerService::Service {
  grpc::Status Session(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>* stream) override {
    for (int i = 0; i < kMessages; ++i) {
      v1::CoordinatorMessage message;
      message.set_leader_epoch(static_cast<uint64_t>(i));
      stream->Write(message);
    }
    v1::WorkerMessage ignored;
    while (stream->Read(&ignored)) {
    }
    return grpc::Status::OK;
  }
};

class CoordinatorStreamTest : public ::testing::Test {
 protected:
  CoordinatorStreamTest() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&coordinator_);
    server_ = builder.BuildAndStart();
    dialer_ = std::make_unique<CoordinatorDialer>(fmt::format("127.0.0.1:{}", port));
  }
  ~CoordinatorStreamTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

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
                [this](std::string) {
                  const std::lock_guard lock(mutex_);
                  is_closed_ = true;
                  changed_.notify_all();
                }};
  }
  bool AwaitMessages(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLimit, [&] { return numbers_.size() >= count; });
  }
  bool AwaitClose() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLimit, [&] { return is_closed_; });
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

TEST_F(CoordinatorStreamTest, AMessageThatIsRefusedEndsTheStream) {
  answer_ = ResourceExhausted("full");
  const auto stream = dialer_->Dial(Callbacks());
  EXPECT_TRUE(AwaitClose());
}

}  // namespace
}  // namespace troupe
