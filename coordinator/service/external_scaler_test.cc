#include "coordinator/service/external_scaler.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/temporary_directory.h"
#include "coordinator/service/server.h"
#include "coordinator/test_requests.h"
#include "coordinator/unplaced_planner.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using externalscaler::ScaledObjectRef;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kScalerLimit{20};

ScaledObjectRef ScaledObjectWith(const std::string& devices_per_worker) {
  ScaledObjectRef object;
  object.set_name("pool");
  object.set_namespace_("lab");
  (*object.mutable_scalermetadata())["devicesPerWorker"] = devices_per_worker;
  return object;
}

TEST(DevicesPerWorkerTest, IsAWholeNumberFromOneOn) {
  EXPECT_EQ(DevicesPerWorker(ScaledObjectWith("8")).value(), 8);
  for (const char* const text : {"", "0", "-1", "1.5", "8 ", "eight", "1025", "99999999999999"}) {
    const auto devices = DevicesPerWorker(ScaledObjectWith(text));
    EXPECT_EQ(devices.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(Message(devices.status())), HasSubstr("must be a whole number"));
  }
  ScaledObjectRef object = ScaledObjectWith("8");
  object.clear_scalermetadata();
  EXPECT_EQ(Message(DevicesPerWorker(object).status()),
            "the trigger of ScaledObject lab/pool has no metadata.devicesPerWorker");
}

class ExternalScalerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.data_directory = directory_.path() + "/catalog";
    options.detection_seconds = 1;
    options.planner = MakeUnplacedPlanner();
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    jobs_ = v1::JobService::NewStub(channel_);
    scaler_ = externalscaler::ExternalScaler::NewStub(channel_);
  }

  static void SetLimit(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + kScalerLimit);
    context->set_wait_for_ready(true);
  }

  // Creates a job, which waits for a worker.
  void CreateJob(const std::string& name) {
    grpc::ClientContext context;
    SetLimit(&context);
    v1::CreateJobRequest request;
    *request.mutable_job() = PlannableJob(name);
    v1::CreateJobResponse response;
    const grpc::Status status = jobs_->CreateJob(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  void CancelJob(const std::string& name) {
    grpc::ClientContext context;
    SetLimit(&context);
    v1::CancelJobRequest request;
    request.set_name("jobs/" + name);
    v1::CancelJobResponse response;
    const grpc::Status status = jobs_->CancelJob(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  double DevicesWanted() {
    grpc::ClientContext context;
    SetLimit(&context);
    externalscaler::GetMetricsResponse response;
    const grpc::Status status = scaler_->GetMetrics(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.metricvalues_size(), 1);
    return response.metricvalues_size() == 1 ? response.metricvalues(0).metricvaluefloat() : -1;
  }

  bool IsActive() {
    grpc::ClientContext context;
    SetLimit(&context);
    externalscaler::IsActiveResponse response;
    EXPECT_TRUE(scaler_->IsActive(&context, ScaledObjectWith("1"), &response).ok());
    return response.result();
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<externalscaler::ExternalScaler::Stub> scaler_;
};

TEST_F(ExternalScalerTest, TheMetricIsTheNumberOfDevicesThatJobsWant) {
  EXPECT_FALSE(IsActive());
  EXPECT_EQ(DevicesWanted(), 0);
  CreateJob("one");
  CreateJob("two");
  EXPECT_TRUE(IsActive());
  EXPECT_EQ(DevicesWanted(), 2);
  CancelJob("two");
  EXPECT_EQ(DevicesWanted(), 1);
}

TEST_F(ExternalScalerTest, TheTargetIsTheNumberOfDevicesOfAWorker) {
  grpc::ClientContext context;
  SetLimit(&context);
  externalscaler::GetMetricSpecResponse response;
  ASSERT_TRUE(scaler_->GetMetricSpec(&context, ScaledObjectWith("8"), &response).ok());
  ASSERT_EQ(response.metricspecs_size(), 1);
  EXPECT_EQ(response.metricspecs(0).metricname(), "troupe-devices-wanted");
  EXPECT_EQ(response.metricspecs(0).targetsizefloat(), 8);
  grpc::ClientContext refused;
  SetLimit(&refused);
  EXPECT_EQ(scaler_->GetMetricSpec(&refused, ScaledObjectWith("0"), &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ExternalScalerTest, AStreamHasTheStateAndItsChanges) {
  grpc::ClientContext context;
  SetLimit(&context);
  const auto stream = scaler_->StreamIsActive(&context, ScaledObjectWith("1"));
  externalscaler::IsActiveResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_FALSE(response.result());
  CreateJob("one");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_TRUE(response.result());
  CancelJob("one");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_FALSE(response.result());
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ExternalScalerTest, AStreamEndsWithTheServer) {
  grpc::ClientContext context;
  SetLimit(&context);
  const auto stream = scaler_->StreamIsActive(&context, ScaledObjectWith("1"));
  externalscaler::IsActiveResponse response;
  ASSERT_TRUE(stream->Read(&response));
  server_->Stop();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_NE(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace troupe
