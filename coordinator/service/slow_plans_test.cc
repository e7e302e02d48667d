// Plans are made outside the engine's actor: few at a time, while the engine keeps answering.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "coordinator/service/server.h"
#include "coordinator/unplaced_planner.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using std::chrono::seconds;

// A gate that is opened once; waiters give up after a time that no test takes.
class Gate {
 public:
  void Open() { opened_.set_value(); }
  bool Wait() const { return future_.wait_for(seconds(30)) == std::future_status::ready; }

 private:
  std::promise<void> opened_;
  const std::shared_future<void> future_ = opened_.get_future().share();
};

// A server that makes plans only once the test lets it.
class SlowPlans : public testing::Test {
 protected:
  SlowPlans() {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.data_directory = directory_.path() + "/catalog";
    options.planner = MakeUnplacedPlanner([this] {
      ++begun_;
      EXPECT_TRUE(!slow_ || gate_.Wait());
    });
    auto server = Server::Start(options);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  }

  grpc::Status Plan() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(30));
    v1::PlanJobResponse response;
    return v1::PlanService::NewStub(channel_)->PlanJob(&context, {}, &response);
  }
  grpc::Status Create(const std::string& name) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(30));
    v1::CreateJobRequest request;
    request.mutable_job()->set_name(name);
    request.mutable_job()->mutable_checkpoint()->set_folder("");
    // A path that only workers could see.
    request.mutable_job()->mutable_data()->set_train("/nowhere/data");
    v1::CreateJobResponse response;
    return v1::JobService::NewStub(channel_)->CreateJob(&context, request, &response);
  }
  grpc::Status Cancel(const std::string& name) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(30));
    v1::CancelJobRequest request;
    request.set_name(name);
    v1::CancelJobResponse response;
    return v1::JobService::NewStub(channel_)->CancelJob(&context, request, &response);
  }
  grpc::Status Resume(const std::string& name) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(30));
    v1::ResumeJobRequest request;
    request.set_name(name);
    v1::ResumeJobResponse response;
    return v1::JobService::NewStub(channel_)->ResumeJob(&context, request, &response);
  }
  grpc::Status Rebuild(const std::string& name) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(30));
    v1::RebuildJobRequest request;
    request.mutable_job()->set_name(name);
    request.mutable_job()->mutable_checkpoint()->set_folder("/folder");
    v1::CheckpointRecord& found = *request.add_checkpoints();
    found.set_job(name);
    found.set_attempt(4);
    found.set_group_epoch(3);
    found.set_step(20);
    found.set_path("/folder/" + name + "/" + AttemptName(20, 3, 4, 5));
    found.set_digest("sha256:" + std::string(64, 'a'));
    found.set_state(v1::CHECKPOINT_STATE_COMMITTED);
    v1::RebuildJobResponse response;
    return v1::CheckpointService::NewStub(channel_)->RebuildJob(&context, request, &response);
  }
  bool EngineAnswers() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(10));
    v1::ListJobsResponse response;
    return v1::JobService::NewStub(channel_)->ListJobs(&context, {}, &response).ok();
  }

  TemporaryDirectory directory_;
  Gate gate_;
  std::atomic<bool> slow_{true};
  std::atomic<int> begun_{0};
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(SlowPlans, DoNotHoldUpTheEngine) {
  auto planned = std::async(std::launch::async, [this] { return Plan(); });
  auto created = std::async(std::launch::async, [this] { return Create("a"); });
  const auto end = std::chrono::steady_clock::now() + seconds(20);
  while (begun_ < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(begun_, 2) << "both are being planned";
  EXPECT_TRUE(EngineAnswers());
  gate_.Open();
  EXPECT_TRUE(planned.get().ok());
  const grpc::Status status = created.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(SlowPlans, OfJobsThatAreResumedOrRebuiltDoNotHoldUpTheEngineEither) {
  slow_ = false;
  ASSERT_TRUE(Create("a").ok());
  ASSERT_TRUE(Cancel("a").ok());
  slow_ = true;
  begun_ = 0;
  auto resumed = std::async(std::launch::async, [this] { return Resume("a"); });
  auto rebuilt = std::async(std::launch::async, [this] { return Rebuild("b"); });
  const auto end = std::chrono::steady_clock::now() + seconds(20);
  while (begun_ < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(begun_, 2) << "both are being planned";
  EXPECT_TRUE(EngineAnswers());
  gate_.Open();
  for (auto* const call : {&resumed, &rebuilt}) {
    const grpc::Status status = call->get();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(begun_, 2) << "the machine took what was planned";
}

}  // namespace
}  // namespace troupe
