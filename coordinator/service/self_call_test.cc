#include "coordinator/service/self_call.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "actor/sim/system.h"

namespace troupe {
namespace {

using std::chrono::seconds;

// Holds its calls until the test lets them go.
class HeldService final : public v1::ClusterService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const std::lock_guard lock(mutex_);
    ++calls_;
    held_ = reactor;
    changed_.notify_all();
    return reactor;
  }

  int WaitForCalls(int calls) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(30), [&] { return calls_ >= calls; });
    return calls_;
  }
  void LetGo(const grpc::Status& answer = grpc::Status::OK) {
    const std::lock_guard lock(mutex_);
    if (held_ != nullptr) held_->Finish(answer);
    held_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;
  grpc::ServerUnaryReactor* held_ = nullptr;
};

// The intervals pass in virtual time, the calls in real time.
class SelfCallTest : public testing::Test {
 protected:
  SelfCallTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
    channel_ = server_->InProcessChannel(grpc::ChannelArguments());
    const NodeId node = system_.AddNode("coordinator", [this](NodeContext& context) {
      context.Spawn("self call",
                    std::make_unique<SelfCall>(channel_, seconds(1), record_, kReadyLimit,
                                               [this](bool ready) { ready_ = ready; }));
    });
    system_.Start(node);
  }
  ~SelfCallTest() override {
    service_.LetGo();
    EXPECT_TRUE(record_->calls.Wait(seconds(30)));
    server_->Shutdown();
  }

  // Waits until the call in flight has ended; it has a deadline.
  void AwaitEnd() const {
    while (record_->in_flight) std::this_thread::yield();
  }

  static constexpr std::chrono::duration<double> kReadyLimit{0.05};

  HeldService service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  const std::shared_ptr<SelfCallRecord> record_ = std::make_shared<SelfCallRecord>();
  bool ready_ = false;
  SimulatedSystem system_{SimulationOptions{}};
};

TEST_F(SelfCallTest, MakesOneCallAtATimeHoweverLongItTakes) {
  system_.RunFor(seconds(20));
  EXPECT_EQ(service_.WaitForCalls(1), 1);
  EXPECT_TRUE(record_->in_flight);
  service_.LetGo();
  AwaitEnd();
  system_.RunFor(seconds(2));
  EXPECT_EQ(service_.WaitForCalls(2), 2);
  EXPECT_FALSE(record_->calls.Wait(Duration::zero()));
}

TEST_F(SelfCallTest, TheServerIsReadyWhileCallsAreAnsweredAndAgainAfterThat) {
  while (record_->answered.Age() <= kReadyLimit) std::this_thread::yield();
  system_.RunFor(seconds(1));
  EXPECT_FALSE(ready_) << "no call was answered within the limit";
  // A machine may be too slow for the limit, so that several answers are needed.
  for (int calls = 1; calls <= 10 && !ready_; ++calls) {
    EXPECT_EQ(service_.WaitForCalls(calls), calls);
    service_.LetGo();
    AwaitEnd();
    system_.RunFor(seconds(1));
  }
  EXPECT_TRUE(ready_);
}

TEST_F(SelfCallTest, OnlyAnAnswerIsASignThatTheServerWorks) {
  const auto begin = LastSign::Clock::now();
  system_.RunFor(seconds(2));
  EXPECT_EQ(service_.WaitForCalls(1), 1);
  service_.LetGo(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the engine has ended"));
  AwaitEnd();
  EXPECT_TRUE(record_->complained);
  const auto silence = LastSign::Clock::now() - begin;
  EXPECT_GE(record_->answered.Age(), silence) << "there was no answer since the record was made";
  const auto refused = LastSign::Clock::now();
  // A call that the machine is too slow for is repeated at the next interval.
  for (int calls = 2; calls <= 10 && record_->complained; ++calls) {
    system_.RunFor(seconds(2));
    EXPECT_EQ(service_.WaitForCalls(calls), calls);
    service_.LetGo();
    AwaitEnd();
  }
  EXPECT_FALSE(record_->complained);
  const auto age = record_->answered.Age();
  EXPECT_LE(age, LastSign::Clock::now() - refused);
}

}  // namespace
}  // namespace troupe
