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
  void LetGo() {
    const std::lock_guard lock(mutex_);
    if (held_ != nullptr) held_->Finish(grpc::Status::OK);
    held_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;
  grpc::ServerUnaryReactor* held_ = nullptr;
};

TEST(SelfCallTest, MakesOneCallAtATimeHoweverLongItTakes) {
  HeldService service;
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const std::shared_ptr<grpc::Channel> channel = server->InProcessChannel(grpc::ChannelArguments());
  const auto record = std::make_shared<SelfCallRecord>();
  {
    // The intervals pass in virtual time, the calls in real time.
    SimulatedSystem system({});
    const NodeId node = system.AddNode("coordinator", [&](NodeContext& context) {
      context.Spawn("self call", std::make_unique<SelfCall>(channel, seconds(1), record));
    });
    system.Start(node);
    system.RunFor(seconds(20));
    EXPECT_EQ(service.WaitForCalls(1), 1);
    EXPECT_TRUE(record->in_flight);
    service.LetGo();
    while (record->in_flight) std::this_thread::yield();  // the call has a deadline
    system.RunFor(seconds(2));
    EXPECT_EQ(service.WaitForCalls(2), 2);
    EXPECT_FALSE(record->calls.Wait(Duration::zero()));
    service.LetGo();
  }
  EXPECT_TRUE(record->calls.Wait(seconds(30)));
  server->Shutdown();
}

}  // namespace
}  // namespace troupe
