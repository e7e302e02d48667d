// Users with tokens on a coordinator with namespaces: they are the same members as with
// certificates. Every line is a call that is made over the loopback.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "coordinator/service/access_calls_test.h"
#include "coordinator/service/namespaces_watch.h"
#include "coordinator/test_paths.h"
#include "coordinator/test_requests.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr char kNamespacesOfTokens[] = R"(
namespaces:
  - name: lab
    members: [submitter/ann]
    roots: {data: /data/lab, checkpoints: /checkpoints/lab, imports: /imports/lab}
)";
constexpr char kCreateJobRpc[] = "/troupe.v1.JobService/CreateJob";
constexpr char kGetJobRpc[] = "/troupe.v1.JobService/GetJob";
constexpr char kListJobsRpc[] = "/troupe.v1.JobService/ListJobs";
constexpr char kWatchJobRpc[] = "/troupe.v1.JobService/WatchJob";

class TokenNamespacesTest : public AccessTest {
 protected:
  // Starts a coordinator on which each user may have this many streams.
  void StartWith(int most_streams) {
    std::ofstream(Directory("namespaces.yaml")) << kNamespacesOfTokens;
    auto file = ReadNamespacesFile(Directory("namespaces.yaml"));
    ASSERT_TRUE(file.ok()) << ToString(file.status());
    ServerOptions options;
    options.data_directory = Directory("catalog");
    options.detection_seconds = 1;
    options.tls = Issue(Role::kCoordinator, "main");
    options.namespaces = *std::move(file);
    options.user_limits.streams = most_streams;
    options.clock = &clock_;
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }

  // Returns the channel of a submitter who has a new token; its id goes to `id`.
  std::shared_ptr<grpc::Channel> SubmitterWithToken(const std::string& name, std::string* id) {
    v1::CreateUserTokenRequest request;
    request.set_name(name);
    request.set_role("submitter");
    request.set_lifetime_seconds(3600);
    const Outcome outcome =
        CallAny(ChannelOf(Role::kOperator), "/troupe.v1.AccessService/CreateUserToken",
                request.SerializeAsString());
    v1::CreateUserTokenResponse created;
    EXPECT_TRUE(outcome.answered && created.ParseFromString(outcome.response))
        << outcome.status.error_message();
    *id = created.token().id();
    return ChannelWith(std::nullopt, grpc::AccessTokenCredentials(created.text()));
  }

  static std::string RequestOfLab() {
    v1::CreateJobRequest request;
    *request.mutable_job() = PlannableJob("lab.a");
    request.mutable_job()->mutable_data()->set_train("/data/lab/a");
    return request.SerializeAsString();
  }
  template <typename Request>
  static std::string Named(const std::string& job) {
    Request request;
    request.set_name(job);
    return request.SerializeAsString();
  }

  std::string id_;
};

TEST_F(TokenNamespacesTest, AMemberWithATokenIsTheSameUserAsWithACertificate) {
  StartWith(64);
  const auto token = SubmitterWithToken("ann", &id_);
  const Outcome created = CallAny(token, kCreateJobRpc, RequestOfLab());
  ASSERT_TRUE(created.answered) << created.status.error_message();
  for (const auto& channel : {token, ChannelOf(Role::kSubmitter, "ann")}) {
    const Outcome got = CallAny(channel, kGetJobRpc, Named<v1::GetJobRequest>("lab.a"));
    v1::GetJobResponse job;
    ASSERT_TRUE(got.answered && job.ParseFromString(got.response)) << got.status.error_message();
    EXPECT_EQ(job.job().creator(), "spiffe://lab/submitter/ann");
    const Outcome listed = CallAny(channel, kListJobsRpc);
    v1::ListJobsResponse jobs;
    ASSERT_TRUE(listed.answered && jobs.ParseFromString(listed.response));
    EXPECT_EQ(jobs.jobs_size(), 1);
  }
}

TEST_F(TokenNamespacesTest, ANonMemberWithATokenIsRefusedAndRecordedByTheToken) {
  StartWith(64);
  ASSERT_TRUE(CallAny(ChannelOf(Role::kSubmitter, "ann"), kCreateJobRpc, RequestOfLab()).answered);
  const auto bob = SubmitterWithToken("bob", &id_);
  for (const std::string job : {"lab.a", "lab.missing"}) {
    for (const std::string rpc : {kGetJobRpc, kWatchJobRpc}) {
      const Outcome refused = CallAny(bob, rpc, Named<v1::GetJobRequest>(job));
      EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << rpc << job;
      EXPECT_THAT(refused.status.error_message(), HasSubstr("spiffe://lab/submitter/bob"));
      ExpectRefusalRecorded("token:" + id_ + " bob", rpc);
    }
  }
  EXPECT_EQ(CallAny(bob, kCreateJobRpc, RequestOfLab()).status.error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  const Outcome listed = CallAny(bob, kListJobsRpc);
  EXPECT_TRUE(listed.answered) << listed.status.error_message();
  EXPECT_EQ(listed.response, "");
}

TEST_F(TokenNamespacesTest, StreamsWithTokenAndCertificateOfOneUserCountTogether) {
  StartWith(1);
  const auto token = SubmitterWithToken("ann", &id_);
  ASSERT_TRUE(CallAny(token, kCreateJobRpc, RequestOfLab()).answered);
  const auto stub = v1::JobService::NewStub(token);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAccessCallLimit);
  v1::WatchJobRequest request;
  request.set_name("lab.a");
  const auto watch = stub->WatchJob(&context, request);
  v1::WatchJobResponse update;
  ASSERT_TRUE(watch->Read(&update));
  const Outcome second = CallAny(ChannelOf(Role::kSubmitter, "ann"), kWatchJobRpc,
                                 Named<v1::WatchJobRequest>("lab.a"));
  EXPECT_EQ(second.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << second.status.error_message();
  context.TryCancel();
}

}  // namespace
}  // namespace troupe
