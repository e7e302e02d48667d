// The service under overload, through its own calls: what exceeds a limit is refused by the name of
// the limit, nothing else waits, and all is served again once there is room.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actor/system.h"
#include "base/store/memory_store.h"
#include "base/temporary_directory.h"
#include "coordinator/access/access_control.h"
#include "coordinator/access/audit_log.h"
#include "coordinator/engine/engine.h"
#include "coordinator/service/api_service.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/call_guard.h"
#include "coordinator/service/cluster_service.h"
#include "coordinator/service/enrollment_service.h"
#include "coordinator/service/service_pools.h"
#include "coordinator/service/session_service.h"
#include "coordinator/unplaced_planner.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// The longest wait for something that happens soon.
constexpr auto kLongestWait = seconds(60);

// Holds up who passes while it is closed.
class WorkGate {
 public:
  void Close() {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLongestWait, [this] { return is_open_; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
};

// A MemoryStore that is read through a gate.
class GatedStore final : public Store {
 public:
  explicit GatedStore(WorkGate& gate) : gate_(gate) {}
  StatusOr<std::string> Get(std::string_view key) const override { return store_.Get(key); }
  Status Scan(std::string_view begin, std::string_view end,
              const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override {
    gate_.Pass();
    return store_.Scan(begin, end, visit);
  }
  Status Write(const WriteBatch& batch, Durability durability) override {
    return store_.Write(batch, durability);
  }

 private:
  WorkGate& gate_;
  MemoryStore store_;
};

// Calls that are made at the same time, and the ends of those that have ended.
class Calls {
 public:
  using Call = std::function<grpc::Status()>;

  void Begin(const Call& call) {
    running_.push_back(std::async(std::launch::async, [this, call] {
      const grpc::Status end = call();
      const std::lock_guard lock(mutex_);
      ends_.push_back(end);
      changed_.notify_all();
    }));
  }
  // Waits until `ended` calls have ended, and returns the ends of all that have.
  std::vector<grpc::Status> WaitFor(size_t ended) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLongestWait, [&] { return ends_.size() >= ended; }));
    return ends_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<grpc::Status> ends_;
  std::vector<std::future<void>> running_;  // destroyed first: each waits for its call
};

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + kLongestWait);
  context->set_wait_for_ready(true);
}

// The coordinator's services on an engine of their own.
class OverloadTest : public testing::Test {
 protected:
  ~OverloadTest() override {
    for (WorkGate* const gate : {&plans_, &checks_, &store_reads_, &joins_}) gate->Open();
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
    actors_.reset();
  }

  void StartServer(const MostWaiting& most_waiting,
                   size_t most_waiting_messages = kMostWaitingMessages) {
    actors_ = std::make_unique<ActorSystem>(
        clock_, ActorSystemOptions{.threads = 1 + kPoolWorkers + 1, .max_actors = 24});
    const StatusOr<ServicePools> pools = SpawnServicePools(*actors_, most_waiting);
    ASSERT_TRUE(pools.ok()) << pools.status();
    EngineOptions options{.system = actors_.get(), .store = &store_, .clock = &clock_};
    options.machine.limits = MakeTimeLimits(ToSeconds(kLongestWait));
    options.machine.planner = MakeUnplacedPlanner([this] { plans_.Pass(); });
    auto engine = Engine::Start(std::move(options));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    OpenAccess();
    jobs_service_ = std::make_unique<JobServiceShell>(
        *engine_, store_, *pools,
        [this](const v1::JobSpec&, const v1::PathRoots&, bool) {
          checks_.Pass();
          return OkStatus();
        },
        *call_audit_, *guard_);
    plans_service_ = std::make_unique<PlanServiceShell>(*engine_, pools->plans, *guard_);
    cluster_service_ = std::make_unique<ClusterServiceShell>(*engine_, *call_audit_, *guard_);
    sessions_service_ =
        std::make_unique<SessionService>(*engine_, most_waiting_messages, *call_audit_);
    StartEnrollment(*pools);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(jobs_service_.get());
    builder.RegisterService(plans_service_.get());
    builder.RegisterService(cluster_service_.get());
    builder.RegisterService(sessions_service_.get());
    builder.RegisterService(enrollment_service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = fmt::format("127.0.0.1:{}", port);
    const auto channel = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
    jobs_ = v1::JobService::NewStub(channel);
    planner_ = v1::PlanService::NewStub(channel);
    cluster_ = v1::ClusterService::NewStub(channel);
    enrollment_ = v1::EnrollmentService::NewStub(channel);
  }
  // Callers have no certificates.
  void OpenAccess() {
    auto audit = AuditLog::Open(directory_.Child("audit.log"), clock_);
    ASSERT_TRUE(audit.ok()) << audit.status();
    audit_ = *std::move(audit);
    auto access = AccessControl::Open("", store_, clock_, *audit_);
    ASSERT_TRUE(access.ok()) << access.status();
    access_ = *std::move(access);
    call_audit_.emplace(CallAudit{*audit_, *access_});
    guard_ = std::make_unique<CallGuard>(nullptr, UserLimits(), *call_audit_);
  }

  // The authority's directory does not exist.
  void StartEnrollment(const ServicePools& pools) {
    pools_.emplace(pools);
    enrollment_service_ = std::make_unique<EnrollmentService>(
        EnrollmentOptions{.authority = directory_.Child("nowhere")}, Authority(), pools, store_,
        clock_, *call_audit_);
  }

  // Occupies the worker of the joins until their gate is opened.
  void HoldUpJoins() {
    joins_.Close();
    const auto begun = std::make_shared<std::promise<void>>();
    pools_->joins.Run([this, begun](const Status&) {
      begun->set_value();
      joins_.Pass();
    });
    EXPECT_EQ(begun->get_future().wait_for(kLongestWait), std::future_status::ready);
  }
  grpc::Status Join() {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::JoinResponse response;
    return enrollment_->Join(&context, {}, &response);
  }
  grpc::Status Renew() {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::RenewResponse response;
    return enrollment_->Renew(&context, {}, &response);
  }
  grpc::Status CreateJoinToken() {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::CreateJoinTokenResponse response;
    return enrollment_->CreateJoinToken(&context, {}, &response);
  }

  grpc::Status Plan() {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::PlanJobResponse response;
    return planner_->PlanJob(&context, {}, &response);
  }
  grpc::Status Create(const std::string& name) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::CreateJobRequest request;
    request.mutable_job()->set_name(name);
    request.mutable_job()->mutable_checkpoint()->set_folder("");
    v1::CreateJobResponse response;
    return jobs_->CreateJob(&context, request, &response);
  }
  // Watches job a until the first update arrives.
  grpc::Status Watch() {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::WatchJobRequest request;
    request.set_name("a");
    const auto watch = jobs_->WatchJob(&context, request);
    v1::WatchJobResponse update;
    if (!watch->Read(&update)) return watch->Finish();
    context.TryCancel();
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
    return grpc::Status::OK;
  }
  // Returns -1 if the jobs cannot be listed.
  int Jobs() {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::ListJobsResponse listed;
    return jobs_->ListJobs(&context, {}, &listed).ok() ? listed.jobs_size() : -1;
  }

  // The state of the worker; empty if it is unknown.
  std::string StateOf(const std::string& worker) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::ListWorkersResponse listed;
    EXPECT_TRUE(cluster_->ListWorkers(&context, {}, &listed).ok());
    for (const v1::WorkerStatus& status : listed.workers()) {
      if (status.name() == worker) return status.state();
    }
    return "";
  }
  const std::string& address() const { return address_; }

  // Begins two more calls than a blocked pool admits, and waits until two are refused. The others
  // stay in the pool.
  void Fill(size_t admitted, const std::string& refusal,
            const std::function<Calls::Call(int)>& make) {
    for (size_t i = 0; i < admitted + 2; ++i) calls_.Begin(make(static_cast<int>(i)));
    ExpectRefusals(calls_.WaitFor(2), 2, refusal);
  }
  // Waits for the end of all calls that Fill began: those in the pool succeed.
  void Drain(size_t admitted, const std::string& refusal) {
    ExpectRefusals(calls_.WaitFor(admitted + 2), 2, refusal);
  }
  static void ExpectRefused(const grpc::Status& end, const std::string& refusal) {
    EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << end.error_message();
    EXPECT_THAT(end.error_message(), HasSubstr(refusal));
  }
  static void ExpectRefusals(const std::vector<grpc::Status>& ends, size_t refusals,
                             const std::string& refusal) {
    size_t refused = 0;
    for (const grpc::Status& end : ends) {
      if (end.ok()) continue;
      ++refused;
      ExpectRefused(end, refusal);
    }
    EXPECT_EQ(refused, refusals) << "of " << ends.size();
  }

  WorkGate plans_, checks_, store_reads_, joins_;

 private:
  SystemClock clock_;
  GatedStore store_{store_reads_};
  const TemporaryDirectory directory_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<AccessControl> access_;
  std::optional<CallAudit> call_audit_;
  std::unique_ptr<CallGuard> guard_;
  std::unique_ptr<ActorSystem> actors_;
  std::optional<ServicePools> pools_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<JobServiceShell> jobs_service_;
  std::unique_ptr<PlanServiceShell> plans_service_;
  std::unique_ptr<ClusterServiceShell> cluster_service_;
  std::unique_ptr<SessionService> sessions_service_;
  std::unique_ptr<EnrollmentService> enrollment_service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::PlanService::Stub> planner_;
  std::unique_ptr<v1::ClusterService::Stub> cluster_;
  std::unique_ptr<v1::EnrollmentService::Stub> enrollment_;
  Calls calls_;
};

TEST_F(OverloadTest, PlansBeyondTheirLimitAreRefusedAndNothingElseWaits) {
  constexpr size_t kAdmitted = kPlanWorkers + 3;
  const std::string refusal = "plans wait, at most 3 may";
  StartServer({.plans = 3});
  ASSERT_TRUE(Create("a").ok());
  plans_.Close();
  Fill(kAdmitted, refusal, [this](int) { return [this] { return Plan(); }; });
  // A new job needs a plan, too.
  ExpectRefused(Create("b"), refusal);
  EXPECT_TRUE(Watch().ok());
  EXPECT_EQ(Jobs(), 1);
  plans_.Open();
  Drain(kAdmitted, refusal);
  EXPECT_TRUE(Plan().ok());
  EXPECT_TRUE(Create("b").ok());
}

TEST_F(OverloadTest, NewJobsWhoseDataWaitForACheckBeyondTheLimitAreRefusedAndNothingElseWaits) {
  constexpr size_t kAdmitted = kDataCheckWorkers + 3;
  const std::string refusal = "data checks wait, at most 3 may";
  StartServer({.data_checks = 3});
  ASSERT_TRUE(Create("a").ok());
  checks_.Close();
  Fill(kAdmitted, refusal,
       [this](int i) { return [this, i] { return Create(fmt::format("job-{}", i)); }; });
  ExpectRefused(Create("b"), refusal);
  EXPECT_TRUE(Plan().ok());
  EXPECT_TRUE(Watch().ok());
  EXPECT_EQ(Jobs(), 1);
  checks_.Open();
  Drain(kAdmitted, refusal);
  EXPECT_EQ(Jobs(), 1 + static_cast<int>(kAdmitted)) << "a refused job leaves nothing";
  EXPECT_TRUE(Create("b").ok());
}

TEST_F(OverloadTest, NewWatchersBeyondTheirLimitAreRefusedAndNothingElseWaits) {
  constexpr size_t kAdmitted = kHistoryWorkers + 3;
  const std::string refusal = "new watchers wait, at most 3 may";
  StartServer({.new_watchers = 3});
  ASSERT_TRUE(Create("a").ok());
  store_reads_.Close();
  Fill(kAdmitted, refusal, [this](int) { return [this] { return Watch(); }; });
  ExpectRefused(Watch(), refusal);
  EXPECT_TRUE(Plan().ok());
  EXPECT_TRUE(Create("b").ok());
  EXPECT_EQ(Jobs(), 2);
  store_reads_.Open();
  Drain(kAdmitted, refusal);
  EXPECT_TRUE(Watch().ok());
}

TEST_F(OverloadTest, JoinsBeyondTheirLimitAreRefusedAndNeitherRenewalsNorNewTokensWait) {
  constexpr size_t kAdmitted = 3;
  StartServer({.joins = kAdmitted});
  HoldUpJoins();
  Calls calls;
  for (size_t i = 0; i < kAdmitted + 2; ++i) calls.Begin([this] { return Join(); });
  ExpectRefusals(calls.WaitFor(2), 2, "joins wait, at most 3 may");
  // Their work has its turn: there is no certificate, and no authority.
  EXPECT_EQ(Renew().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(CreateJoinToken().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  joins_.Open();
  for (const grpc::Status& end : calls.WaitFor(kAdmitted + 2)) {
    EXPECT_TRUE(end.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
                end.error_code() == grpc::StatusCode::INVALID_ARGUMENT)
        << end.error_message();
  }
  EXPECT_EQ(Join().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "it has no token";
}

// A worker's stream, on a connection of its own that buffers little ahead of its reader.
class ConnectedWorker {
 public:
  ConnectedWorker(const std::string& address, const std::string& name) {
    grpc::ChannelArguments small;
    small.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    small.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65536);
    small.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::WorkerService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), small));
    SetDeadline(&context_);
    stream_ = stub_->Session(&context_);
    v1::WorkerMessage message;
    message.mutable_hello()->set_protocol_version(2);
    message.mutable_hello()->set_name(name);
    message.mutable_hello()->set_incarnation(1);
    stream_->Write(message);
    v1::CoordinatorMessage welcome;
    EXPECT_TRUE(stream_->Read(&welcome) && welcome.has_welcome()) << welcome.ShortDebugString();
  }
  ~ConnectedWorker() { context_.TryCancel(); }

  // Each heartbeat is answered.
  void WriteHeartbeats(int count) {
    v1::WorkerMessage message;
    message.mutable_heartbeat();
    for (int i = 0; i < count; ++i) stream_->Write(message);
  }
  void ReadAnswers(int count) {
    v1::CoordinatorMessage message;
    for (int i = 0; i < count; ++i) ASSERT_TRUE(stream_->Read(&message)) << i;
  }
  // Reads to the end of the stream and returns the number of messages.
  int ReadAll() {
    v1::CoordinatorMessage message;
    int read = 0;
    while (stream_->Read(&message)) ++read;
    return read;
  }
  grpc::Status Finish() { return stream_->Finish(); }

 private:
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
};

TEST_F(OverloadTest, AWorkerThatDoesNotReadLosesItsSessionAndStreamAlone) {
  constexpr int kTogether = 128;
  constexpr int kMostWritten = 1 << 16;  // far more than connection and queue hold
  StartServer({}, /*most_waiting_messages=*/4 * kTogether);
  ConnectedWorker deaf(address(), "deaf");
  ConnectedWorker other(address(), "other");
  ASSERT_EQ(StateOf("deaf"), "READY");
  int written = 0;
  for (; written < kMostWritten && StateOf("deaf") == "READY"; written += kTogether) {
    deaf.WriteHeartbeats(kTogether);
    other.WriteHeartbeats(kTogether);
    other.ReadAnswers(kTogether);
  }
  // It has read nothing yet, and the others are served.
  EXPECT_EQ(StateOf("deaf"), "LOST");
  EXPECT_EQ(StateOf("other"), "READY");
  EXPECT_TRUE(Create("a").ok());
  // It gets what its connection holds; the answers that waited were dropped with the session.
  EXPECT_LT(deaf.ReadAll(), written - 2 * kTogether);
  const grpc::Status end = deaf.Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(end.error_message(), "512 messages wait for this worker");
  const ConnectedWorker again(address(), "deaf");
  EXPECT_EQ(StateOf("deaf"), "READY");
}

}  // namespace
}  // namespace troupe
