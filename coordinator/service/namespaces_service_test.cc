// Namespaces of a coordinator with TLS: every line is a call that is made over the loopback.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/security/authority_files.h"
#include "base/security/credentials.h"
#include "base/temporary_directory.h"
#include "coordinator/access/access.h"
#include "coordinator/service/namespaces_watch.h"
#include "coordinator/service/server.h"
#include "coordinator/test_paths.h"
#include "coordinator/test_requests.h"
#include "plan/job/job_name.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ProtoMessage = google::protobuf::Message;

constexpr auto kGuardedCallLimit = std::chrono::seconds(10);

// Submitter ann is a member of lab, submitter bob of none; viewers are members of default.
constexpr char kNamespaces[] = R"(
namespaces:
  - name: lab
    members: [submitter/ann, viewer/ann]
    quota: {devices: 2, jobs: 2}
    roots: {data: /data/lab, checkpoints: /checkpoints/lab, imports: /imports/lab}
  - name: default
    members: [viewer/*]
)";

v1::JobSpec JobOfLab(const std::string& name) {
  v1::JobSpec spec = PlannableJob("lab." + name);
  spec.mutable_data()->set_train("/data/lab/a");
  return spec;
}

class NamespacesServiceTest : public ::testing::Test {
 protected:
  NamespacesServiceTest() {
    EXPECT_TRUE(WriteNewAuthority(directory_.Child("authority"), "lab", Seconds()).ok());
  }

  static int64_t Seconds() { return WallSeconds(SystemClock()); }

  TlsFiles FilesOf(Role role, const std::string& name) const {
    const std::string output = directory_.Child(fmt::format("{}-{}", RoleName(role), name));
    const auto issued = IssueTlsDirectory(
        directory_.Child("authority"), {.role = role, .name = name, .days = 1}, output, Seconds());
    EXPECT_TRUE(issued.ok()) << ToString(issued.status());
    const auto files = CheckTlsDirectory(output, Seconds());
    EXPECT_TRUE(files.ok()) << ToString(files.status());
    return *files;
  }

  void WriteFile(const std::string& text) const {
    std::ofstream(directory_.Child("namespaces.yaml")) << text;
  }

  // `namespaces`: the text of the file; empty: there is none.
  void Start(const std::string& namespaces = kNamespaces, int most_jobs = 1000,
             int most_streams = 64) {
    ServerOptions options;
    options.data_directory = directory_.Child("catalog");
    options.detection_seconds = 1;
    options.tls = FilesOf(Role::kCoordinator, "main");
    options.most_user_jobs = most_jobs;
    options.user_limits.streams = most_streams;
    if (!namespaces.empty()) {
      WriteFile(namespaces);
      auto file = ReadNamespacesFile(directory_.Child("namespaces.yaml"));
      ASSERT_TRUE(file.ok()) << ToString(file.status());
      options.namespaces = *std::move(file);
    }
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }

  std::shared_ptr<grpc::Channel> ChannelTo(Role role, const std::string& name) const {
    return grpc::CreateChannel(server_->address(), TlsChannelCredentialsOf(FilesOf(role, name)));
  }

  // Calls any method; a stream has to end after at most one message.
  static grpc::Status CallMethod(const std::shared_ptr<grpc::Channel>& channel,
                                 const std::string& rpc, const ProtoMessage& request,
                                 ProtoMessage* response = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kGuardedCallLimit);
    const grpc::Slice slice(request.SerializeAsString());
    const grpc::ByteBuffer sent(&slice, 1);
    grpc::ByteBuffer received;
    std::promise<grpc::Status> ended;
    grpc::GenericStub(channel).UnaryCall(
        &context, rpc, grpc::StubOptions(), &sent, &received,
        [&ended](const grpc::Status& status) { ended.set_value(status); });
    grpc::Status status = ended.get_future().get();
    grpc::Slice all;
    if (status.ok() && response != nullptr) {
      EXPECT_TRUE(received.DumpToSingleSlice(&all).ok());
      EXPECT_TRUE(response->ParseFromArray(all.begin(), static_cast<int>(all.size())));
    }
    return status;
  }

  static grpc::Status Create(const std::shared_ptr<grpc::Channel>& channel,
                             const v1::JobSpec& spec) {
    v1::CreateJobRequest request;
    *request.mutable_job() = spec;
    return CallMethod(channel, "/troupe.v1.JobService/CreateJob", request);
  }

  static std::vector<std::string> Listed(const std::shared_ptr<grpc::Channel>& channel) {
    v1::ListJobsResponse response;
    EXPECT_TRUE(
        CallMethod(channel, "/troupe.v1.JobService/ListJobs", v1::ListJobsRequest(), &response)
            .ok());
    std::vector<std::string> names;
    for (const v1::Job& job : response.jobs()) names.push_back(job.name());
    return names;
  }

  static StatusOr<v1::Job> Described(const std::shared_ptr<grpc::Channel>& channel,
                                     const std::string& name) {
    v1::GetJobRequest request;
    request.set_name(name);
    v1::GetJobResponse response;
    const grpc::Status status =
        CallMethod(channel, "/troupe.v1.JobService/GetJob", request, &response);
    if (!status.ok())
      return MakeStatus(static_cast<StatusCode>(status.error_code()), status.error_message());
    return response.job();
  }

  // The newest refusal in the audit log.
  nlohmann::json LastRefusal() const {
    nlohmann::json last;
    std::ifstream lines(directory_.Child("catalog/audit.log"));
    for (std::string line; std::getline(lines, line);) {
      auto record = nlohmann::json::parse(line);
      if (record.at("outcome") == "DENIED") last = std::move(record);
    }
    return last;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Server> server_;
};

// Names the job in the field of the request that does so. Returns false if it has none.
bool NameJob(const std::string& job, ProtoMessage* request) {
  for (const char* name : {"name", "job"}) {
    const auto* const field = request->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) continue;
    if (field->message_type() == nullptr) {
      request->GetReflection()->SetString(request, field, job);
    } else {
      v1::JobSpec spec;
      spec.set_name(job);
      request->GetReflection()->MutableMessage(request, field)->CopyFrom(spec);
    }
    return true;
  }
  return false;
}

const std::set<std::string> kServicesOfJobs = {"troupe.v1.JobService", "troupe.v1.PlanService",
                                               "troupe.v1.CheckpointService"};

// Each method of the API that names a job, and that a submitter may call, is called for a job that
// exists and for one that does not.
TEST_F(NamespacesServiceTest, ANonMemberLearnsNothingOfAForeignNamespaceByAnyRpc) {
  Start();
  ASSERT_TRUE(Create(ChannelTo(Role::kSubmitter, "ann"), JobOfLab("a")).ok());
  const auto bob = ChannelTo(Role::kSubmitter, "bob");
  std::set<std::string> without_job;
  for (const AccessRow& row : AccessTable()) {
    const std::string rpc(row.rpc);
    const std::string service = rpc.substr(1, rpc.rfind('/') - 1);
    const auto* const described =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    if (described == nullptr || !kServicesOfJobs.contains(service) || !row.Allows(Role::kSubmitter))
      continue;
    const auto* const method = described->FindMethodByName(rpc.substr(rpc.rfind('/') + 1));
    ASSERT_NE(method, nullptr) << rpc;
    for (const std::string name :
         {"lab.a", "lab.missing", "ghost.a", "jobs/lab.a", "jobs/lab.missing"}) {
      const std::unique_ptr<ProtoMessage> request(
          google::protobuf::MessageFactory::generated_factory()
              ->GetPrototype(method->input_type())
              ->New());
      if (!NameJob(name, request.get())) {
        without_job.insert(std::string(method->name()));
        continue;
      }
      const std::string job = JobId(name);
      const grpc::Status status = CallMethod(bob, rpc, *request);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << rpc << " " << name;
      EXPECT_EQ(status.error_message(),
                fmt::format("job {} is in the namespace {}, of which spiffe://lab/submitter/bob is "
                            "no member",
                            job, job.substr(0, job.find('.'))))
          << rpc;
      EXPECT_EQ(LastRefusal().at("rpc"), rpc);
      EXPECT_EQ(LastRefusal().at("reason"), status.error_message());
    }
  }
  EXPECT_THAT(without_job, ElementsAre("ListJobs"));
}

TEST_F(NamespacesServiceTest, ListsHaveTheJobsThatTheCallerMaySee) {
  Start();
  const auto ann = ChannelTo(Role::kSubmitter, "ann");
  const auto operators = ChannelTo(Role::kOperator, "root");
  ASSERT_TRUE(Create(ann, JobOfLab("a")).ok());
  ASSERT_TRUE(Create(operators, PlannableJob("b")).ok());
  EXPECT_THAT(Listed(ann), ElementsAre("jobs/lab.a"));
  EXPECT_THAT(Listed(ChannelTo(Role::kViewer, "ann")), ElementsAre("jobs/lab.a", "jobs/b"));
  EXPECT_THAT(Listed(ChannelTo(Role::kViewer, "eve")), ElementsAre("jobs/b"));
  EXPECT_THAT(Listed(ChannelTo(Role::kSubmitter, "bob")), IsEmpty());
  EXPECT_THAT(Listed(operators), ElementsAre("jobs/lab.a", "jobs/b"));
}

TEST_F(NamespacesServiceTest, MembersAndOperatorsUseAJobAndItsCreatorIsShown) {
  Start();
  const auto ann = ChannelTo(Role::kSubmitter, "ann");
  ASSERT_TRUE(Create(ann, JobOfLab("a")).ok());
  for (const auto& channel :
       {ann, ChannelTo(Role::kViewer, "ann"), ChannelTo(Role::kOperator, "root")}) {
    const auto job = Described(channel, "jobs/lab.a");
    ASSERT_TRUE(job.ok()) << ToString(job.status());
    EXPECT_EQ(job->creator(), "spiffe://lab/submitter/ann");
  }
  EXPECT_EQ(Described(ann, "lab.missing").status().code(), StatusCode::kNotFound);
  v1::CancelJobRequest cancel;
  cancel.set_name("lab.a");
  EXPECT_TRUE(CallMethod(ann, "/troupe.v1.JobService/CancelJob", cancel).ok());
}

TEST_F(NamespacesServiceTest, ANamespaceThatTheFileDoesNotListGetsNoJob) {
  Start();
  const grpc::Status refused = Create(ChannelTo(Role::kOperator, "root"), PlannableJob("ghost.a"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("in the namespace \"ghost\""));
  EXPECT_EQ(LastRefusal().at("reason"), refused.error_message());
}

TEST_F(NamespacesServiceTest, QuotasAreOfTheNamespaceWhoeverSubmits) {
  Start();
  const auto ann = ChannelTo(Role::kSubmitter, "ann");
  ASSERT_TRUE(Create(ann, JobOfLab("a")).ok());
  ASSERT_TRUE(Create(ChannelTo(Role::kOperator, "root"), JobOfLab("b")).ok());
  const grpc::Status refused = Create(ann, JobOfLab("c"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("lab has 2 jobs that have not ended, and its quota.jobs is 2"));
  v1::JobSpec large = JobOfLab("c");
  large.mutable_parallelism()->set_data_parallel_replicate_degree(4);
  large.mutable_training()->set_global_batch_size(8);
  v1::CancelJobRequest cancel;
  cancel.set_name("lab.b");
  ASSERT_TRUE(CallMethod(ann, "/troupe.v1.JobService/CancelJob", cancel).ok());
  const grpc::Status too_large = Create(ann, large);
  EXPECT_EQ(too_large.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(too_large.error_message(), HasSubstr("needs 4 devices, above quota.devices = 2"));
}

// Each path of a job × each escape, in the requests that state it. The audit log records at most
// 100 refusals in a second, which these are fewer than.
TEST_F(NamespacesServiceTest, APathOutsideItsRootIsRefusedByNameAndRecorded) {
  Start();
  const auto ann = ChannelTo(Role::kSubmitter, "ann");
  ASSERT_TRUE(Create(ann, JobOfLab("a")).ok());
  const auto root = ChannelTo(Role::kOperator, "root");
  const auto expect_refused = [&](const grpc::Status& status, const std::string& key,
                                  const std::string& path) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << key << " " << path;
    EXPECT_THAT(status.error_message(),
                AllOf(HasSubstr(key + " is " + path), HasSubstr("beneath")));
    EXPECT_EQ(LastRefusal().at("reason"), status.error_message()) << key << " " << path;
  };
  for (const PathKey& key : PathKeys()) {
    for (const std::string path :
         {"relative", "../a", "/etc/passwd", "/data/lab/../a", "/data/laboratory/a"}) {
      v1::CreateJobRequest create;
      *create.mutable_job() = JobOfLab("b");
      key.Set(path, create.mutable_job());
      expect_refused(CallMethod(ann, "/troupe.v1.JobService/CreateJob", create), key.name, path);
      v1::ResumeJobRequest resume;
      resume.set_name("lab.a");
      key.Set(path, resume.mutable_overrides());
      expect_refused(CallMethod(ann, "/troupe.v1.JobService/ResumeJob", resume), key.name, path);
    }
    v1::RebuildJobRequest rebuild;
    *rebuild.mutable_job() = JobOfLab("b");
    key.Set("/etc/passwd", rebuild.mutable_job());
    expect_refused(CallMethod(root, "/troupe.v1.CheckpointService/RebuildJob", rebuild), key.name,
                   "/etc/passwd");
  }
  EXPECT_THAT(Listed(ann), ElementsAre("jobs/lab.a"));
}

TEST_F(NamespacesServiceTest, WhatIsRefusedAfterItsCallWasAdmittedIsRecordedToo) {
  const std::string root = directory_.Child("data");
  ASSERT_TRUE(PosixFileSystem().MakeDirectory(root).ok());
  ASSERT_EQ(symlink("..", (root + "/link").c_str()), 0);
  Start("namespaces: [{name: lab, members: [submitter/ann], quota: {jobs: 1}, roots: {data: " +
        root + "}}]");
  const auto ann = ChannelTo(Role::kSubmitter, "ann");
  v1::JobSpec job = JobOfLab("a");
  job.mutable_data()->set_train(root + "/link/x");
  const grpc::Status escape = Create(ann, job);
  EXPECT_EQ(escape.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << escape.error_message();
  EXPECT_EQ(LastRefusal().at("reason"), escape.error_message());
  job.mutable_data()->set_train(root + "/elsewhere/x");  // may be on the workers
  ASSERT_TRUE(Create(ann, job).ok());
  job.set_name("lab.b");
  const grpc::Status second = Create(ann, job);
  EXPECT_EQ(second.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(LastRefusal().at("reason"), second.error_message());
  EXPECT_EQ(LastRefusal().at("identity"), "spiffe://lab/submitter/ann");
}

TEST_F(NamespacesServiceTest, AResumptionThatAQuotaRefusesIsRecorded) {
  Start("namespaces: [{name: lab, members: [submitter/ann], quota: {jobs: 1}}]");
  const auto ann = ChannelTo(Role::kSubmitter, "ann");
  ASSERT_TRUE(Create(ann, JobOfLab("a")).ok());
  v1::CancelJobRequest cancel;
  cancel.set_name("lab.a");
  ASSERT_TRUE(CallMethod(ann, "/troupe.v1.JobService/CancelJob", cancel).ok());
  ASSERT_TRUE(Create(ann, JobOfLab("b")).ok());
  v1::ResumeJobRequest resume;
  resume.set_name("lab.a");
  const grpc::Status refused = CallMethod(ann, "/troupe.v1.JobService/ResumeJob", resume);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  EXPECT_EQ(LastRefusal().at("reason"), refused.error_message());
  EXPECT_EQ(LastRefusal().at("rpc"), "/troupe.v1.JobService/ResumeJob");
  EXPECT_EQ(LastRefusal().at("identity"), "spiffe://lab/submitter/ann");
}

TEST_F(NamespacesServiceTest, AChangedFileAppliesWithoutARestart) {
  Start();
  const auto bob = ChannelTo(Role::kSubmitter, "bob");
  ASSERT_FALSE(Create(bob, JobOfLab("a")).ok());
  WriteFile("namespaces: [{name: lab, members: [submitter/bob]}]");
  const auto give_up = std::chrono::steady_clock::now() + kGuardedCallLimit;
  grpc::Status status;
  do {
    status = Create(bob, JobOfLab("a"));
  } while (!status.ok() && std::chrono::steady_clock::now() < give_up);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(NamespacesServiceTest, WithoutTheFileEveryoneMayUseEveryJob) {
  Start("");
  ASSERT_TRUE(Create(ChannelTo(Role::kSubmitter, "ann"), PlannableJob("any.a")).ok());
  EXPECT_TRUE(Described(ChannelTo(Role::kViewer, "eve"), "any.a").ok());
}

TEST_F(NamespacesServiceTest, AUserHasALimitOfJobsAndOfStreams) {
  Start("", 1, 1);
  const auto ann = ChannelTo(Role::kSubmitter, "ann");
  ASSERT_TRUE(Create(ann, PlannableJob("a")).ok());
  const grpc::Status refused = Create(ann, PlannableJob("b"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("spiffe://lab/submitter/ann has 1 job that"));
  EXPECT_TRUE(Create(ChannelTo(Role::kSubmitter, "bob"), PlannableJob("b")).ok());

  const auto jobs = v1::JobService::NewStub(ann);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kGuardedCallLimit);
  v1::WatchJobRequest watch;
  watch.set_name("a");
  const auto stream = jobs->WatchJob(&context, watch);
  v1::WatchJobResponse update;
  ASSERT_TRUE(stream->Read(&update));
  const grpc::Status second = CallMethod(ann, "/troupe.v1.JobService/WatchJob", watch);
  EXPECT_EQ(second.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(second.error_message(), HasSubstr("has 1 open streams"));
  context.TryCancel();
  stream->Finish().IgnoreError();
  // The server hears of the end a little later than the client.
  const auto give_up = std::chrono::steady_clock::now() + kGuardedCallLimit;
  v1::ReadJobLogsRequest logs;
  logs.set_name("a");
  grpc::Status again;
  do {
    again = CallMethod(ann, "/troupe.v1.JobService/ReadJobLogs", logs);
  } while (again.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
           std::chrono::steady_clock::now() < give_up);
  EXPECT_NE(again.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << again.error_message();
}

}  // namespace
}  // namespace troupe
