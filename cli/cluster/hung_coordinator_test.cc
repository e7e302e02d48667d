// A coordinator that runs but answers no calls, as the supervisor sees it: its engine is blocked,
// while its ports accept connections and /health is served.
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>

#include "base/temporary_directory.h"
#include "cli/cluster/health_probe.h"
#include "cli/cluster/liveness.h"
#include "coordinator/service/server.h"
#include "coordinator/test_requests.h"
#include "coordinator/unplaced_planner.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// A coordinator whose engine blocks once it places a job, until the test releases it.
class HungCoordinatorTest : public testing::Test {
 protected:
  static constexpr seconds kLongestWait{30};

  HungCoordinatorTest() {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.metrics_listen = "127.0.0.1:0";
    options.data_directory = directory_.path() + "/catalog";
    options.detection_seconds = 1;
    options.planner = MakeUnplacedPlanner();
    options.planner.place = [this](const v1::JobSpec&, const v1::Plan&,
                                   const ClusterView&) -> StatusOr<v1::Plan> {
      is_blocked_ = true;
      EXPECT_EQ(released_.wait_for(kLongestWait), std::future_status::ready);
      return FailedPrecondition("there is no device");
    };
    auto server = Server::Start(std::move(options));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    workers_ = v1::WorkerService::NewStub(channel_);
    SetDeadline(&session_context_);
  }
  ~HungCoordinatorTest() override { session_context_.TryCancel(); }

  grpc::Status CreateJob() {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::CreateJobRequest request;
    request.mutable_job()->set_name("a");
    request.mutable_job()->mutable_checkpoint()->set_folder("");
    request.mutable_job()->mutable_data()->set_train("/nowhere/data");
    v1::CreateJobResponse response;
    return v1::JobService::NewStub(channel_)->CreateJob(&context, request, &response);
  }

  // Waits until gRPC's health service reports `serving`.
  bool Reports(bool serving) const {
    // HealthCheckResponse as gRPC defines it: its field 1 is the status, and SERVING is 1.
    grpc::TemplatedGenericStub<google::protobuf::Empty, google::protobuf::UInt32Value> health(
        channel_);
    constexpr uint32_t kServing = 1;
    const auto end = steady_clock::now() + kLongestWait;
    while (steady_clock::now() < end) {
      grpc::ClientContext context;
      SetDeadline(&context);
      google::protobuf::Empty request;
      google::protobuf::UInt32Value response;
      std::promise<grpc::Status> ended;
      health.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request,
                       &response,
                       [&ended](const grpc::Status& status) { ended.set_value(status); });
      const grpc::Status checked = ended.get_future().get();
      if (checked.ok() && (response.value() == kServing) == serving) return true;
      poll(nullptr, 0, 1);
    }
    return false;
  }

  // Connects a worker with a device for the job, and waits until the engine is blocked.
  bool BlockEngine() {
    session_ = workers_->Session(&session_context_);
    session_->Write(HelloOf("worker-0"));
    const auto end = steady_clock::now() + kLongestWait;
    while (!is_blocked_ && steady_clock::now() < end) poll(nullptr, 0, 1);
    return is_blocked_;
  }
  void Release() { release_.set_value(); }

  // Probes the coordinator as the supervisor does, until an answer of /health makes it hung, or not
  // hung.
  bool Answers(bool hung, Liveness* liveness) const {
    const auto end = steady_clock::now() + kLongestWait;
    while (steady_clock::now() < end) {
      HealthProbe probe(server_->metrics_port());
      HealthProbe::State state = HealthProbe::State::kWaiting;
      while (state == HealthProbe::State::kWaiting && steady_clock::now() < end) {
        state = probe.Turn();
        poll(nullptr, 0, 1);
      }
      if (state != HealthProbe::State::kAnswered) continue;
      const auto now = steady_clock::now();
      liveness->Answered(now, std::chrono::duration_cast<Liveness::Duration>(probe.age()));
      if (liveness->IsHung(now) == hung) return true;
    }
    return false;
  }

 private:
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + kLongestWait);
    context->set_wait_for_ready(true);
  }

  TemporaryDirectory directory_;
  std::promise<void> release_;
  const std::shared_future<void> released_ = release_.get_future().share();
  std::atomic<bool> is_blocked_{false};
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
  grpc::ClientContext session_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> session_;
};

TEST_F(HungCoordinatorTest, ItsHealthReportsThatNoCallIsAnsweredAndThatTheyAreAgain) {
  // A call gives up after a second, so it takes longer than that until none was answered for the
  // limit.
  Liveness liveness(steady_clock::now(), seconds(2));
  EXPECT_TRUE(Answers(/*hung=*/false, &liveness));
  const grpc::Status created = CreateJob();
  ASSERT_TRUE(created.ok()) << created.error_message();
  EXPECT_TRUE(BlockEngine());
  EXPECT_TRUE(Answers(/*hung=*/true, &liveness)) << "the engine is blocked";
  EXPECT_TRUE(Reports(/*serving=*/false)) << "the engine is blocked";
  Release();
  EXPECT_TRUE(Answers(/*hung=*/false, &liveness)) << "the engine is no longer blocked";
  EXPECT_TRUE(Reports(/*serving=*/true)) << "the engine is no longer blocked";
}

}  // namespace
}  // namespace troupe
