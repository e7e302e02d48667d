// Who may do what to a coordinator with TLS: every line is a call that is made over the loopback.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/file_system.h"
#include "base/security/authority_files.h"
#include "coordinator/access/access.h"
#include "coordinator/service/access_calls_test.h"
#include "coordinator/service/server.h"
#include "coordinator/service/session_service.h"
#include "coordinator/test_requests.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kCancel[] = "/troupe.v1.JobService/CancelJob";
constexpr char kList[] = "/troupe.v1.JobService/ListJobs";
constexpr char kSession[] = "/troupe.v1.WorkerService/Session";
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

class AccessServiceTest : public AccessTest {};

// Each cell of the table is a call: the roles × all RPCs. Each refusal and each permitted change is
// in the audit log, in the order of the calls.
TEST_F(AccessServiceTest, EveryRoleMayCallExactlyWhatTheTableStates) {
  Start();
  std::vector<std::string> expected;
  for (const RoleEntry& entry : kRoles) {
    const auto channel = ChannelOf(entry.role);
    ++clock_.shift_seconds;  // the log limits refusals per second
    for (const AccessRow& row : AccessTable()) {
      const std::string rpc(row.rpc);
      const Outcome outcome = CallAny(channel, rpc);
      const std::string cell = fmt::format("{} {}: {} {}", entry.name, rpc,
                                           static_cast<int>(outcome.status.error_code()),
                                           outcome.status.error_message());
      const std::string caller = fmt::format("spiffe://lab/{}/ann", entry.name);
      if (row.Allows(entry.role)) {
        EXPECT_TRUE(outcome.permitted()) << cell;
        if (row.effect == AccessEffect::kChanges) expected.push_back("ALLOWED " + caller + rpc);
        continue;
      }
      EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << cell;
      EXPECT_THAT(outcome.status.error_message(), HasSubstr(rpc)) << cell;
      EXPECT_THAT(outcome.status.error_message(),
                  HasSubstr(fmt::format("ann has the role {}", entry.name)))
          << cell;
      expected.push_back("DENIED " + caller + rpc);
    }
  }
  std::vector<std::string> recorded;
  for (const auto& record : Records()) {
    recorded.push_back(record.at("outcome").get<std::string>() + " " +
                       record.at("identity").get<std::string>() +
                       record.at("rpc").get<std::string>());
  }
  EXPECT_EQ(recorded, expected);
}

TEST_F(AccessServiceTest, EveryRequestButASessionHasALimitOfItsSize) {
  const std::set<std::string> with_spec = {
      "/troupe.v1.JobService/CreateJob", "/troupe.v1.JobService/ResumeJob",
      "/troupe.v1.PlanService/PlanJob", "/troupe.v1.CheckpointService/RebuildJob"};
  Start();
  const auto nobody = ChannelWith(std::nullopt);
  const auto operators = ChannelOf(Role::kOperator);
  const auto worker = ChannelOf(Role::kWorker);
  for (const AccessRow& row : AccessTable()) {
    const std::string rpc(row.rpc);
    if (rpc == kSession || rpc.starts_with("/grpc.")) continue;
    const size_t most = with_spec.contains(rpc) ? 4 << 20 : 64 << 10;
    google::protobuf::UnknownFieldSet large;
    large.AddLengthDelimited(1000)->assign(most, 'x');
    std::string request;
    ASSERT_TRUE(large.SerializeToString(&request));
    const auto& channel = row.AllowsAnonymous()         ? nobody
                          : row.Allows(Role::kOperator) ? operators
                                                        : worker;
    const size_t records = Records().size();
    const Outcome outcome = CallAny(channel, rpc, request);
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
        << rpc << ": " << outcome.status.error_message();
    const bool is_of_scaler = rpc.starts_with("/externalscaler.") && !rpc.ends_with("/GetMetrics");
    const std::string name =
        is_of_scaler ? "ScaledObjectRef" : rpc.substr(rpc.rfind('/') + 1) + "Request";
    EXPECT_EQ(outcome.status.error_message(),
              fmt::format("{}: the request has {} bytes, above the limit of {}", name,
                          request.size(), most));
    EXPECT_EQ(Records().size(), records) << rpc;
  }
}

// Returns the names of a ServerReflectionResponse, in its field list_services_response.
std::set<std::string> ServicesIn(const std::string& response) {
  std::set<std::string> names;
  google::protobuf::UnknownFieldSet fields, list, service;
  EXPECT_TRUE(fields.ParseFromString(response));
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() != 6) continue;
    EXPECT_TRUE(list.ParseFromString(fields.field(i).length_delimited()));
    for (int j = 0; j < list.field_count(); ++j) {
      EXPECT_TRUE(service.ParseFromString(list.field(j).length_delimited()));
      if (service.field_count() > 0) names.insert(service.field(0).length_delimited());
    }
  }
  return names;
}

TEST_F(AccessServiceTest, EveryServiceOfTheServerIsInTheTable) {
  Start();
  const std::string list_services = {'\x3a', '\x00'};
  const Outcome outcome = CallAny(ChannelOf(Role::kViewer), kReflection, list_services);
  const std::set<std::string> services = ServicesIn(outcome.response);
  EXPECT_GE(services.size(), 8u) << outcome.status.error_message();
  std::set<std::string> in_table;
  for (const AccessRow& row : AccessTable())
    in_table.emplace(row.rpc.substr(1, row.rpc.rfind('/') - 1));
  EXPECT_EQ(services, in_table);
}

TEST_F(AccessServiceTest, AnRpcThatDoesNotExistIsRefused) {
  Start();
  const Outcome outcome = CallAny(ChannelOf(Role::kOperator), "/troupe.v1.JobService/Destroy");
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  ExpectRefusalRecorded("spiffe://lab/operator/ann", "/troupe.v1.JobService/Destroy");
}

TEST_F(AccessServiceTest, AnOutsiderGetsNoConnection) {
  Start();
  const int64_t now = Now();
  const std::string ann = "spiffe://lab/operator/ann";
  ASSERT_TRUE(WriteNewAuthority(Directory("foreign"), "lab", now).ok());
  const std::vector<std::pair<std::string, std::shared_ptr<grpc::Channel>>> outsiders = {
      {"without TLS", grpc::CreateChannel(Address(), grpc::InsecureChannelCredentials())},
      {"of another authority", ChannelWith(Certify({ann}, now - 60, now + 60, "foreign"))},
      {"expired", ChannelWith(Certify({ann}, now - 60, now - 30))},
      {"not yet valid", ChannelWith(Certify({ann}, now + 600, now + 900))},
  };
  for (const auto& [who, channel] : outsiders) {
    const Outcome outcome = CallAny(channel, kList);
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE)
        << who << ": " << outcome.status.error_message();
  }
  // The same client with a good certificate.
  EXPECT_TRUE(CallAny(ChannelWith(Certify({ann}, now - 60, now + 60)), kList).answered);
}

// A caller without a certificate is connected: it may have a token, or be a new worker that joins.
TEST_F(AccessServiceTest, WithoutACertificateOnlyRowsForEverybodyAreServed) {
  Start();
  const auto channel = ChannelWith(std::nullopt);
  std::vector<std::string> refused;
  for (const AccessRow& row : AccessTable()) {
    const std::string rpc(row.rpc);
    const Outcome outcome = CallAny(channel, rpc);
    if (row.AllowsAnonymous()) {
      EXPECT_TRUE(outcome.permitted()) << rpc << ": " << outcome.status.error_message();
      continue;
    }
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << rpc;
    EXPECT_THAT(outcome.status.error_message(), HasSubstr("requires a certificate or a token"));
    refused.push_back(rpc);
  }
  EXPECT_EQ(CallAny(channel, "/troupe.v1.JobService/Destroy").status.error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  refused.emplace_back("/troupe.v1.JobService/Destroy");
  std::vector<std::string> recorded;
  for (const auto& record : Records()) {
    EXPECT_EQ(record.at("identity"), "anonymous");
    EXPECT_EQ(record.at("outcome"), "DENIED");
    recorded.push_back(record.at("rpc"));
  }
  EXPECT_EQ(recorded, refused);
}

TEST_F(AccessServiceTest, ACertificateWithoutAnIdentityOfThisClusterIsRefused) {
  Start();
  const int64_t now = Now();
  for (const std::vector<std::string>& uris : std::vector<std::vector<std::string>>{
           {"spiffe://other/operator/ann"},
           {"spiffe://lab/admin/ann"},
           {"spiffe://lab/operator/ann", "spiffe://lab/viewer/ann"},
           {"https://lab/operator/ann"},
           {"spiffe://lab/operator/ann/"},
           {"spiffe://lab/operator/"},
           {}}) {
    const Outcome outcome = CallAny(ChannelWith(Certify(uris, now - 60, now + 60)), kList);
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAUTHENTICATED)
        << fmt::format("{}: {}", fmt::join(uris, " "), outcome.status.error_message());
    ExpectRefusalRecorded(uris.empty() ? "" : uris[0], kList);
  }
}

TEST_F(AccessServiceTest, AConnectionWhoseCertificateExpiresIsRefusedAtTheNextCall) {
  Start();
  const int64_t now = Now();
  const std::string ann = "spiffe://lab/viewer/ann";
  const auto channel = ChannelWith(Certify({ann}, now - 60, now + 2));
  ASSERT_TRUE(CallAny(channel, kList).answered);
  const auto give_up = std::chrono::steady_clock::now() + kAccessCallLimit;
  Outcome outcome;
  do {
    outcome = CallAny(channel, kList);
  } while (outcome.answered && std::chrono::steady_clock::now() < give_up);
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAUTHENTICATED)
      << outcome.status.error_message();
  EXPECT_THAT(outcome.status.error_message(), HasSubstr("expired"));
  ExpectRefusalRecorded(ann, kList);
}

// A worker's stream.
class Session {
 public:
  explicit Session(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::WorkerService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + kAccessCallLimit);
    stream_ = stub_->Session(&context_);
  }
  ~Session() { Cancel(); }

  void Cancel() { context_.TryCancel(); }

  bool Write(const v1::WorkerMessage& message) { return stream_->Write(message); }
  bool Read(v1::CoordinatorMessage* message) { return stream_->Read(message); }

  // Reads to the end, which the coordinator makes.
  grpc::Status End() {
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
  }

 private:
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
};

TEST_F(AccessServiceTest, AHelloWithTheNameOfAnotherWorkerIsRefused) {
  Start();
  const auto channel = ChannelOf(Role::kWorker, "worker-0");
  Session own(channel);
  own.Write(HelloOf("worker-0"));
  v1::CoordinatorMessage welcome;
  EXPECT_TRUE(own.Read(&welcome));
  EXPECT_TRUE(welcome.has_welcome()) << welcome.ShortDebugString();

  Session other(ChannelOf(Role::kWorker, "worker-1"));
  other.Write(HelloOf("worker-0"));
  const grpc::Status refused = other.End();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(),
              AllOf(HasSubstr("spiffe://lab/worker/worker-1"), HasSubstr("\"worker-0\"")));
  ExpectRefusalRecorded("spiffe://lab/worker/worker-1", kSession);

  // A later Hello on a stream that is open does not help either.
  own.Write(HelloOf("worker-1"));
  EXPECT_EQ(own.End().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  ExpectRefusalRecorded("spiffe://lab/worker/worker-0", kSession);
}

TEST_F(AccessServiceTest, ASecondDaemonWithTheSameCertificateDoesNotReplaceTheFirst) {
  Start();
  // All that the API shows of the first one, and its certificate.
  v1::WorkerMessage hello = HelloOf("worker-0");
  hello.mutable_hello()->set_life_key("secret of the first");
  Session first(ChannelOf(Role::kWorker, "worker-0"));
  first.Write(hello);
  v1::CoordinatorMessage message;
  ASSERT_TRUE(first.Read(&message));
  ASSERT_TRUE(message.has_welcome()) << message.ShortDebugString();

  hello.mutable_hello()->set_life_key("secret of the second");
  Session second(ChannelOf(Role::kWorker, "worker-0"));
  second.Write(hello);
  ASSERT_TRUE(second.Read(&message));
  EXPECT_EQ(message.refused().code(), static_cast<int>(StatusCode::kAlreadyExists))
      << message.ShortDebugString();
  second.End();

  v1::WorkerMessage heartbeat;
  heartbeat.mutable_heartbeat();
  EXPECT_TRUE(first.Write(heartbeat));
  ASSERT_TRUE(first.Read(&message));
  EXPECT_TRUE(message.has_heartbeat_ack()) << message.ShortDebugString();
}

TEST_F(AccessServiceTest, AWorkerHasALimitOfSessions) {
  Start();
  std::mutex mutex;
  std::condition_variable ended;
  std::vector<grpc::StatusCode> ends;
  std::vector<std::unique_ptr<Session>> open;
  std::vector<std::thread> readers;
  for (int i = 0; i <= kMostWorkerSessions; ++i) {
    open.push_back(std::make_unique<Session>(ChannelOf(Role::kWorker, "worker-0")));
    readers.emplace_back([&, session = open.back().get()] {
      const grpc::StatusCode code = session->End().error_code();
      const std::lock_guard lock(mutex);
      ends.push_back(code);
      ended.notify_all();
    });
  }
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(ended.wait_for(lock, kAccessCallLimit, [&] { return !ends.empty(); }));
  }
  ExpectRefusalRecorded("spiffe://lab/worker/worker-0", kSession);
  Session other(ChannelOf(Role::kWorker, "worker-1"));
  other.Write(HelloOf("worker-1"));
  v1::CoordinatorMessage message;
  EXPECT_TRUE(other.Read(&message));
  EXPECT_TRUE(message.has_welcome()) << message.ShortDebugString();
  for (const auto& session : open) session->Cancel();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(ends.front(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(std::count(ends.begin(), ends.end(), grpc::StatusCode::CANCELLED), kMostWorkerSessions);
}

TEST_F(AccessServiceTest, NobodyButAWorkerGetsAJobAndItsKeyByOfferingADevice) {
  Start();
  v1::CreateJobRequest create;
  *create.mutable_job() = PlannableJob("a");
  const Outcome created = CallAny(ChannelOf(Role::kSubmitter), "/troupe.v1.JobService/CreateJob",
                                  create.SerializeAsString());
  ASSERT_NE(created.response, "") << created.status.error_message();
  const std::vector<std::pair<std::shared_ptr<grpc::Channel>, grpc::StatusCode>> callers = {
      {grpc::CreateChannel(Address(), grpc::InsecureChannelCredentials()),
       grpc::StatusCode::UNAVAILABLE},
      {ChannelOf(Role::kViewer), grpc::StatusCode::PERMISSION_DENIED},
      {ChannelOf(Role::kSubmitter), grpc::StatusCode::PERMISSION_DENIED},
      {ChannelOf(Role::kOperator), grpc::StatusCode::PERMISSION_DENIED},
  };
  for (const auto& [channel, code] : callers) {
    Session session(channel);
    session.Write(HelloOf("mine"));
    v1::CoordinatorMessage message;
    EXPECT_FALSE(session.Read(&message)) << message.ShortDebugString();
    EXPECT_EQ(session.End().error_code(), code);
  }
  const auto viewer = ChannelOf(Role::kViewer);
  v1::ListWorkersResponse workers;
  ASSERT_TRUE(
      workers.ParseFromString(CallAny(viewer, "/troupe.v1.ClusterService/ListWorkers").response));
  EXPECT_EQ(workers.workers_size(), 0);
  v1::GetJobRequest get;
  get.set_name("a");
  v1::GetJobResponse job;
  ASSERT_TRUE(job.ParseFromString(
      CallAny(viewer, "/troupe.v1.JobService/GetJob", get.SerializeAsString()).response));
  EXPECT_EQ(job.job().state(), v1::JOB_STATE_QUEUED);
}

TEST_F(AccessServiceTest, ASessionEndsWhenItsCertificateExpires) {
  Start();
  const int64_t now = Now();
  const std::string uri = "spiffe://lab/worker/worker-0";
  Session session(ChannelWith(Certify({uri}, now - 60, now + 2)));
  ASSERT_TRUE(session.Write(HelloOf("worker-0")));
  v1::WorkerMessage heartbeat;
  heartbeat.mutable_heartbeat();
  // A call of another client between two messages limits their rate.
  const auto viewer = ChannelOf(Role::kViewer);
  while (session.Write(heartbeat)) CallAny(viewer, kList);
  const grpc::Status ended = session.End();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAUTHENTICATED) << ended.error_message();
  EXPECT_THAT(ended.error_message(), HasSubstr("expired"));
  ExpectRefusalRecorded(uri, kSession);
}

TEST_F(AccessServiceTest, APathThatOnlyARankRefusesIsRecorded) {
  Start();
  v1::CreateJobRequest create;
  *create.mutable_job() = PlannableJob("a");
  const Outcome created = CallAny(ChannelOf(Role::kSubmitter), "/troupe.v1.JobService/CreateJob",
                                  create.SerializeAsString());
  ASSERT_NE(created.response, "") << created.status.error_message();
  Session session(ChannelOf(Role::kWorker, "worker-0"));
  ASSERT_TRUE(session.Write(HelloOf("worker-0")));
  v1::CoordinatorMessage message;
  while (!message.has_start_ranks()) ASSERT_TRUE(session.Read(&message));
  v1::WorkerMessage failed;
  failed.mutable_rank_failed()->set_job("a");
  failed.mutable_rank_failed()->set_group_epoch(message.start_ranks().group_epoch());
  failed.mutable_rank_failed()->set_code(static_cast<int>(StatusCode::kPermissionDenied));
  failed.mutable_rank_failed()->set_cause("PATH_OUTSIDE_ROOT");
  failed.mutable_rank_failed()->set_message("open /r/x: the path leaves /r");
  ASSERT_TRUE(session.Write(failed));
  while (!message.has_stop_ranks()) ASSERT_TRUE(session.Read(&message));
  ExpectRefusalRecorded("spiffe://lab/worker/worker-0", kSession);
  const auto records = Records();
  EXPECT_EQ(records.back().at("target"), "jobs/a");
  const std::string reason = records.back().at("reason");
  EXPECT_THAT(reason, HasSubstr("open /r/x: the path leaves /r"));
}

TEST_F(AccessServiceTest, AViewerSeesAJobAndCannotCancelIt) {
  Start();
  v1::CreateJobRequest create;
  *create.mutable_job() = PlannableJob("a");
  const Outcome created = CallAny(ChannelOf(Role::kSubmitter), "/troupe.v1.JobService/CreateJob",
                                  create.SerializeAsString());
  ASSERT_NE(created.response, "") << created.status.error_message();
  v1::CancelJobRequest cancel;
  cancel.set_name("a");
  const auto viewer = ChannelOf(Role::kViewer);
  EXPECT_EQ(CallAny(viewer, kCancel, cancel.SerializeAsString()).status.error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  ExpectRefusalRecorded("spiffe://lab/viewer/ann", kCancel);
  v1::GetJobRequest get;
  get.set_name("a");
  v1::GetJobResponse job;
  ASSERT_TRUE(job.ParseFromString(
      CallAny(viewer, "/troupe.v1.JobService/GetJob", get.SerializeAsString()).response));
  EXPECT_EQ(job.job().state(), v1::JOB_STATE_QUEUED);

  v1::CancelJobResponse cancelled;
  ASSERT_TRUE(cancelled.ParseFromString(
      CallAny(ChannelOf(Role::kSubmitter), kCancel, cancel.SerializeAsString()).response));
  EXPECT_EQ(cancelled.job().state(), v1::JOB_STATE_CANCELLED);
  const auto records = Records();
  EXPECT_EQ(records.back().at("outcome"), "ALLOWED");
  EXPECT_EQ(records.back().at("identity"), "spiffe://lab/submitter/ann");
  EXPECT_EQ(records.back().at("target"), "jobs/a");
}

TEST_F(AccessServiceTest, OnlyAnOperatorRebuildsAJob) {
  Start();
  const std::string rebuild = "/troupe.v1.CheckpointService/RebuildJob";
  v1::RebuildJobRequest request;
  *request.mutable_job() = PlannableJob("a");
  for (const Role role : {Role::kViewer, Role::kSubmitter, Role::kWorker, Role::kCoordinator}) {
    const Outcome refused = CallAny(ChannelOf(role), rebuild, request.SerializeAsString());
    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << RoleName(role);
    EXPECT_THAT(refused.status.error_message(), HasSubstr("requires the role operator"));
  }
  const Outcome rebuilt = CallAny(ChannelOf(Role::kOperator), rebuild, request.SerializeAsString());
  EXPECT_TRUE(rebuilt.permitted()) << rebuilt.status.error_message();
}

// Reads the age that /health reports.
double HealthAge(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string request = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(send(descriptor, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char bytes[4096];
  for (ssize_t got = 0; (got = recv(descriptor, bytes, sizeof(bytes), 0)) > 0;)
    answer.append(bytes, static_cast<size_t>(got));
  close(descriptor);
  const size_t value = answer.find("\ntroupe_health_age_seconds ");
  EXPECT_NE(value, std::string::npos) << answer;
  return value == std::string::npos ? -1 : std::stod(answer.substr(answer.find(' ', value)));
}

// Its calls to itself have no certificate.
TEST_F(AccessServiceTest, AServerWithTlsCallsItselfToProveItsHealth) {
  Start("127.0.0.1:0", "127.0.0.1:0");
  const auto give_up = std::chrono::steady_clock::now() + kAccessCallLimit;
  // The age grows until a call is answered.
  double age = HealthAge(server_->metrics_port());
  bool answered = false;
  while (!answered && std::chrono::steady_clock::now() < give_up) {
    const double next = HealthAge(server_->metrics_port());
    answered = next < age;
    age = next;
  }
  EXPECT_TRUE(answered);
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(AccessServiceTest, ReflectionIsOffWhereOthersReachTheServer) {
  Start("0.0.0.0:0");
  const Outcome outcome = CallAny(ChannelOf(Role::kOperator), kReflection, {'\x3a', '\x00'});
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(outcome.status.error_message(), HasSubstr("--insecure"));
  ExpectRefusalRecorded("spiffe://lab/operator/ann", kReflection);
  EXPECT_TRUE(CallAny(ChannelOf(Role::kViewer), kList).answered);
}

TEST_F(AccessServiceTest, AClientRefusesAServerThatIsNotTheCoordinatorOfItsCluster) {
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.data_directory = Directory("catalog");
  options.tls = Issue(Role::kWorker, "impostor");
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << ToString(server.status());
  server_ = *std::move(server);
  EXPECT_EQ(CallAny(ChannelOf(Role::kOperator), kList).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AccessServiceTest, WithoutTlsAChangeIsRecordedUnderTheAddressOfItsCaller) {
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.data_directory = Directory("catalog");
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << ToString(server.status());
  server_ = *std::move(server);
  const auto channel = grpc::CreateChannel(Address(), grpc::InsecureChannelCredentials());
  v1::CancelJobRequest cancel;
  cancel.set_name("a");
  EXPECT_EQ(CallAny(channel, kCancel, cancel.SerializeAsString()).status.error_code(),
            grpc::StatusCode::NOT_FOUND);
  const auto records = Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].at("rpc"), kCancel);
  EXPECT_THAT(records[0].at("identity"), HasSubstr("ipv4:127.0.0.1:"));
}

TEST_F(AccessServiceTest, AServerDoesNotStartOnADamagedAuditLog) {
  ASSERT_TRUE(MakeDirectories(*std::make_unique<PosixFileSystem>(), Directory("catalog")).ok());
  std::ofstream(Directory("catalog/audit.log")) << "no record\n";
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.data_directory = Directory("catalog");
  const auto server = Server::Start(options);
  EXPECT_EQ(server.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToString(server.status()), HasSubstr("audit.log"));
}

}  // namespace
}  // namespace troupe
