// The coordinator as its clients see it: a real server on a real catalog, with a worker's stream
// played by the test.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/file_system.h"
#include "base/temporary_directory.h"
#include "coordinator/service/server.h"
#include "coordinator/test_requests.h"
#include "data/prepare.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kLimit = std::chrono::seconds(10);

v1::JobSpec Spec(const std::string& name, int64_t steps) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.mutable_model()->set_preset("tiny");
  spec.mutable_data()->set_train("/nowhere/data");
  spec.mutable_training()->set_steps(steps);
  spec.mutable_training()->set_sequence_length(64);
  spec.mutable_training()->set_global_batch_size(2);
  spec.mutable_checkpoint()->set_folder("");
  return spec;
}

// The first field that the details of `status` blame; empty if there is none.
std::string BlamedField(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::BadRequest bad_request;
  if (!details.ParseFromString(status.error_details()) || details.details_size() != 1 ||
      !details.details(0).UnpackTo(&bad_request) || bad_request.field_violations_size() == 0) {
    return "";
  }
  return bad_request.field_violations(0).field();
}

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override { StartServer("127.0.0.1:0"); }

  void StartServer(const std::string& listen) {
    ServerOptions options;
    options.listen = listen;
    options.data_directory = directory_.path() + "/catalog";
    options.detection_seconds = 1;
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    jobs_ = v1::JobService::NewStub(channel_);
    cluster_ = v1::ClusterService::NewStub(channel_);
    workers_ = v1::WorkerService::NewStub(channel_);
  }

  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + kLimit);
    context->set_wait_for_ready(true);
  }

  grpc::Status Create(const v1::JobSpec& spec, const std::string& request_id,
                      v1::CreateJobResponse* response) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::CreateJobRequest request;
    *request.mutable_job() = spec;
    request.set_request_id(request_id);
    return jobs_->CreateJob(&context, request, response);
  }

  v1::JobState StateOf(const std::string& name) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::GetJobRequest request;
    request.set_name(name);
    v1::GetJobResponse response;
    EXPECT_TRUE(jobs_->GetJob(&context, request, &response).ok());
    return response.job().state();
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::ClusterService::Stub> cluster_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
};

// One worker with one device: a stream that runs at once whatever it is asked to.
class Worker {
 public:
  Worker(v1::WorkerService::Stub& stub, const std::string& name, int protocol_version = 2) {
    context_.set_deadline(std::chrono::system_clock::now() + kLimit);
    context_.set_wait_for_ready(true);
    stream_ = stub.Session(&context_);
    stream_->Write(HelloOf(name, protocol_version));
  }

  ~Worker() { context_.TryCancel(); }

  void Write(const v1::WorkerMessage& message) { stream_->Write(message); }

  // False at the end of the stream.
  bool Read(v1::CoordinatorMessage* message) { return stream_->Read(message); }

  // Reads until a message of that kind arrives.
  v1::CoordinatorMessage Await(v1::CoordinatorMessage::MessageCase kind) {
    v1::CoordinatorMessage message;
    while (Read(&message)) {
      if (message.message_case() == kind) return message;
    }
    ADD_FAILURE() << "the stream ended before message " << kind;
    return {};
  }

  // Brings the only rank of the job to its first ticket.
  void StartRank(const v1::StartRanks& start) {
    v1::WorkerMessage address;
    address.mutable_rank_address()->set_job(start.job());
    address.mutable_rank_address()->set_group_epoch(start.group_epoch());
    address.mutable_rank_address()->set_address("x");
    stream_->Write(address);
    Await(v1::CoordinatorMessage::kAddressBook);
    v1::WorkerMessage ready;
    ready.mutable_rank_ready()->set_job(start.job());
    ready.mutable_rank_ready()->set_group_epoch(start.group_epoch());
    stream_->Write(ready);
    Await(v1::CoordinatorMessage::kTicket);
  }

  void Report(const v1::StartRanks& start, int64_t step) {
    v1::WorkerMessage message;
    v1::StepReport* const report = message.mutable_step_report();
    report->set_job(start.job());
    report->set_group_epoch(start.group_epoch());
    report->set_step(step);
    report->mutable_event()->set_loss(1.0 / static_cast<double>(step));
    report->set_step_seconds(0.01);
    stream_->Write(message);
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
};

TEST_F(ServiceTest, ANewDataDirectoryIsForItsOwnerAndAnOlderOneKeepsItsMode) {
  const std::string path = directory_.path() + "/catalog";
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0700u);
  ASSERT_EQ(chmod(path.c_str(), 0750), 0);
  server_.reset();
  StartServer("127.0.0.1:0");
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0750u);
}

TEST_F(ServiceTest, ALongListOfViolationsIsCutAndKeepsItsCode) {
  v1::PlanJobRequest request;
  *request.mutable_job() = Spec("a", 3);
  for (int i = 0; i < 1000; ++i) {
    request.mutable_job()->mutable_optimizer()->add_no_weight_decay("[bad × " + std::to_string(i));
  }
  v1::PlanJobResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  const grpc::Status status =
      v1::PlanService::NewStub(channel_)->PlanJob(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("more bytes)"));
  EXPECT_THAT(BlamedField(status), HasSubstr("optimizer.no_weight_decay"));
}

TEST_F(ServiceTest, AJobRunsOnAWorkersStreamAndAWatcherSeesItAll) {
  v1::CreateJobResponse created;
  ASSERT_TRUE(Create(Spec("a", 3), "", &created).ok());
  EXPECT_EQ(created.job().name(), "jobs/a");
  EXPECT_EQ(created.job().state(), v1::JOB_STATE_QUEUED);
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::WatchJobRequest request;
  request.set_name("a");
  const auto watch = jobs_->WatchJob(&context, request);
  Worker worker(*workers_, "worker-0");
  const v1::StartRanks start = worker.Await(v1::CoordinatorMessage::kStartRanks).start_ranks();
  EXPECT_EQ(start.group_key().size(), 32u);
  worker.StartRank(start);
  for (int64_t step = 1; step <= 3; ++step) worker.Report(start, step);
  std::vector<int64_t> steps;
  std::vector<std::string> events;
  v1::WatchJobResponse update;
  while (watch->Read(&update)) {
    if (update.has_step()) steps.push_back(update.step().step());
    if (update.has_event()) events.push_back(update.event().event());
  }
  EXPECT_TRUE(watch->Finish().ok());
  EXPECT_EQ(update.end(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));
  EXPECT_THAT(events, ElementsAre("QUEUED", "WAITING_FOR_CAPACITY", "STARTED", "SUCCEEDED"));
  EXPECT_TRUE(worker.Await(v1::CoordinatorMessage::kStopRanks).stop_ranks().finished());

  // History stays readable after the end and after a restart on the same port.
  const std::string address = server_->address();
  server_.reset();
  StartServer(address);
  grpc::ClientContext later;
  SetDeadline(&later);
  request.set_from_step(2);
  const auto again = jobs_->WatchJob(&later, request);
  steps.clear();
  while (again->Read(&update)) {
    if (update.has_step()) steps.push_back(update.step().step());
  }
  EXPECT_TRUE(again->Finish().ok());
  EXPECT_THAT(steps, ElementsAre(2, 3));
  EXPECT_EQ(update.end(), v1::JOB_STATE_SUCCEEDED);
}

// The vote of a rank with many tensors lists them all.
TEST_F(ServiceTest, AKnownWorkerMaySendMoreAtOnceThanAnybodyElse) {
  constexpr size_t kBytes = 6 << 20;
  v1::JobSpec large = Spec("large", 3);
  large.mutable_data()->set_train(std::string(kBytes, 'x'));
  v1::CreateJobResponse created;
  const grpc::Status refused = Create(large, "", &created);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(),
              ContainsRegex("the request has [0-9]+ bytes, above the limit of"));
  Worker stranger(*workers_, std::string(kBytes, 'x'));
  v1::CoordinatorMessage message;
  EXPECT_FALSE(stranger.Read(&message));

  ASSERT_TRUE(Create(Spec("a", 3), "", &created).ok());
  Worker worker(*workers_, "worker-0");
  const v1::StartRanks start = worker.Await(v1::CoordinatorMessage::kStartRanks).start_ranks();
  worker.StartRank(start);
  v1::WorkerMessage vote;
  vote.mutable_shard_done()->set_job("a");
  vote.mutable_shard_done()->set_group_epoch(start.group_epoch());
  vote.mutable_shard_done()->set_write_method(std::string(kBytes, 'x'));
  worker.Write(vote);
  for (int64_t step = 1; step <= 3; ++step) worker.Report(start, step);
  EXPECT_TRUE(worker.Await(v1::CoordinatorMessage::kStopRanks).stop_ranks().finished());
}

TEST_F(ServiceTest, AWrongFieldIsNamedInTheStatusDetails) {
  v1::JobSpec spec = Spec("a", 3);
  spec.mutable_parallelism()->set_tensor_parallel_degree(3);
  v1::CreateJobResponse response;
  const grpc::Status status = Create(spec, "", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(BlamedField(status), HasSubstr("tensor_parallel_degree"));
}

TEST_F(ServiceTest, DataThatCannotBeTrainedOnIsRefusedByTheKeyToBlame) {
  v1::CreateJobResponse response;
  v1::JobSpec spec = Spec("a", 3);
  spec.mutable_data()->set_train(directory_.path() + "/data");
  grpc::Status status = Create(spec, "", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BlamedField(status), "data.train");
  EXPECT_THAT(status.error_message(), HasSubstr("data.idx"));

  PosixFileSystem files;
  const std::string text = directory_.path() + "/text";
  ASSERT_TRUE(WriteFileDurably(files, text, AsBytes(std::string(300, 'x'))).ok());
  ASSERT_TRUE(PrepareDataset(files, {.output_prefix = directory_.path() + "/data",
                                     .tokenizer = "bytes",
                                     .paths = {text}})
                  .ok());
  spec.mutable_training()->set_sequence_length(1000);
  status = Create(spec, "", &response);
  EXPECT_EQ(BlamedField(status), "training.sequence_length");
  spec.mutable_training()->set_sequence_length(64);
  spec.mutable_data()->set_validation(directory_.path() + "/other");
  status = Create(spec, "", &response);
  EXPECT_EQ(BlamedField(status), "data.validation");
  spec.mutable_data()->clear_validation();
  EXPECT_TRUE(Create(spec, "r", &response).ok());

  // A repeated request returns the first one's job even if its data is gone, but a different
  // content is refused. Data in a folder that is not on this host may be on the workers' hosts.
  ASSERT_TRUE(files.Remove(directory_.path() + "/data.idx").ok());
  EXPECT_TRUE(Create(spec, "r", &response).ok());
  spec.mutable_data()->set_train(directory_.path() + "/gone");
  status = Create(spec, "r", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(BlamedField(status), "request_id");
  EXPECT_TRUE(Create(Spec("b", 3), "", &response).ok());
}

TEST_F(ServiceTest, ACheckpointThatDoesNotExistIsRefusedWithTheCommandThatListsThem) {
  v1::JobSpec spec = Spec("a", 3);
  spec.mutable_checkpoint()->set_initial_load(directory_.path() + "/b");
  v1::CreateJobResponse response;
  const grpc::Status status = Create(spec, "", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BlamedField(status), "checkpoint.initial_load");
  EXPECT_THAT(status.error_message(), HasSubstr("; `troupe checkpoints list JOB` lists the paths"));
}

TEST_F(ServiceTest, ACheckpointThatNeedsAChannelOfALaterBuildIsRefusedByTheChannelsName) {
  PosixFileSystem files;
  const std::string folder = directory_.path() + "/later";
  TROUPE_CHECK_OK(files.MakeDirectory(folder));
  const std::string manifest =
      R"({"format_version": 2,
          "samples": {"version": 2, "channels": [{"name": "region", "type": "f32",
                      "extent": "token", "lanes": "64"}]},
          "shards": [{"name": "a", "bytes": "8", "digest": "xxh128:)" +
      std::string(32, 'a') + R"(", "block_crc32c": [1]}]})";
  TROUPE_CHECK_OK(WriteFileDurably(files, folder + "/manifest.json", AsBytes(manifest)));
  v1::JobSpec spec = Spec("a", 3);
  spec.mutable_checkpoint()->set_initial_load(folder);
  v1::CreateJobResponse response;
  const grpc::Status status = Create(spec, "", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(BlamedField(status), "checkpoint.initial_load");
  EXPECT_THAT(status.error_message(),
              HasSubstr("it needs channel region f32[64] a token of sample schema 2"));
}

TEST_F(ServiceTest, APlanThatCannotBePlacedStatesWhy) {
  const auto plans = v1::PlanService::NewStub(channel_);
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PlanJobRequest request;
  request.mutable_job()->mutable_parallelism()->set_tensor_parallel_degree(2);
  v1::PlanJobResponse response;
  const grpc::Status status = plans->PlanJob(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.plan().ranks_size(), 2);
  EXPECT_TRUE(response.plan().ranks(0).worker().empty());
  ASSERT_GE(response.plan().warnings_size(), 1);
  EXPECT_THAT(response.plan().warnings(response.plan().warnings_size() - 1),
              HasSubstr("not placed on this cluster"));
}

TEST_F(ServiceTest, ARepeatedRequestIsOneJobAndASecondOfTheNameIsRefused) {
  v1::CreateJobResponse response;
  EXPECT_TRUE(Create(Spec("a", 3), "r", &response).ok());
  EXPECT_TRUE(Create(Spec("a", 3), "r", &response).ok());
  const grpc::Status taken = Create(Spec("a", 3), "", &response);
  EXPECT_EQ(taken.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BlamedField(taken), "name");
  server_.reset();
  StartServer("127.0.0.1:0");
  EXPECT_TRUE(Create(Spec("a", 3), "r", &response).ok());
  EXPECT_EQ(StateOf("jobs/a"), v1::JOB_STATE_QUEUED);
}

TEST_F(ServiceTest, AnUnknownJobIsNotFoundOnEveryCall) {
  grpc::ClientContext get;
  v1::GetJobRequest get_request;
  get_request.set_name("x");
  v1::GetJobResponse get_response;
  const grpc::Status unknown = jobs_->GetJob(&get, get_request, &get_response);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(BlamedField(unknown), "name");
  grpc::ClientContext watch;
  v1::WatchJobRequest watch_request;
  watch_request.set_name("x");
  EXPECT_EQ(jobs_->WatchJob(&watch, watch_request)->Finish().error_code(),
            grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext logs;
  v1::ReadJobLogsRequest logs_request;
  logs_request.set_name("x");
  EXPECT_EQ(jobs_->ReadJobLogs(&logs, logs_request)->Finish().error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServiceTest, AWorkerOfAnotherProtocolVersionIsRefusedForGood) {
  Worker worker(*workers_, "worker-0", 3);
  const v1::CoordinatorMessage refused = worker.Await(v1::CoordinatorMessage::kRefused);
  EXPECT_FALSE(refused.refused().retry());
  EXPECT_THAT(refused.refused().message(), HasSubstr("protocol_version"));
  v1::CoordinatorMessage next;
  EXPECT_FALSE(worker.Read(&next));
}

TEST_F(ServiceTest, AnOversizedMessageEndsItsStreamAloneAndIsLogged) {
  testing::internal::CaptureStderr();
  {
    Worker worker(*workers_, "worker-0");
    worker.Await(v1::CoordinatorMessage::kWelcome);
    v1::WorkerMessage message;
    message.mutable_shard_failed()->set_reason(std::string(65 << 20, 'x'));
    worker.Write(message);
    v1::CoordinatorMessage next;
    while (worker.Read(&next)) {
    }
  }
  v1::CreateJobResponse response;
  EXPECT_TRUE(Create(Spec("a", 3), "", &response).ok());
  server_.reset();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              ContainsRegex("session 1 of ipv.* above the limit of 67108864 bytes"));
}

TEST_F(ServiceTest, GarbageOnThePortDisturbsNobody) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(descriptor, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server_->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string garbage(10000, '\xa5');
  EXPECT_GT(send(descriptor, garbage.data(), garbage.size(), MSG_NOSIGNAL), 0);
  v1::CreateJobResponse response;
  EXPECT_TRUE(Create(Spec("a", 3), "", &response).ok());
  close(descriptor);
}

TEST_F(ServiceTest, ASecondCoordinatorOnTheSameDirectoryOrPortIsRefused) {
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.data_directory = directory_.path() + "/catalog";
  EXPECT_EQ(Server::Start(options).status().code(), StatusCode::kFailedPrecondition);
  options.data_directory = directory_.path() + "/other";
  options.listen = server_->address();
  EXPECT_EQ(Server::Start(options).status().code(), StatusCode::kUnavailable);
}

TEST_F(ServiceTest, AWatcherThatGoesAwayAndACallWhoseDeadlinePassesLeaveNothingBehind) {
  v1::JobSpec spec = Spec("a", 1000);
  spec.mutable_checkpoint()->set_folder(directory_.path());
  v1::CreateJobResponse created;
  ASSERT_TRUE(Create(spec, "", &created).ok());
  Worker worker(*workers_, "worker-0");
  const v1::StartRanks start = worker.Await(v1::CoordinatorMessage::kStartRanks).start_ranks();
  worker.StartRank(start);
  auto watching = std::make_unique<grpc::ClientContext>();
  v1::WatchJobRequest request;
  request.set_name("a");
  auto watch = jobs_->WatchJob(watching.get(), request);
  v1::WatchJobResponse update;
  ASSERT_TRUE(watch->Read(&update));
  watching->TryCancel();
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // Nobody makes the checkpoint: the caller's deadline ends the call, but the cancel remains in
  // effect.
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  v1::CancelJobRequest cancel;
  cancel.set_name("a");
  cancel.set_checkpoint(true);
  v1::CancelJobResponse cancelled;
  EXPECT_EQ(jobs_->CancelJob(&context, cancel, &cancelled).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(StateOf("a"), v1::JOB_STATE_CHECKPOINTING);
  worker.Report(start, 1);
  worker.Await(v1::CoordinatorMessage::kReportsDurable);
}

TEST_F(ServiceTest, AWatcherThatDoesNotReadIsDroppedAndMayResume) {
  constexpr int64_t kReports = 20000;
  v1::CreateJobResponse created;
  ASSERT_TRUE(Create(Spec("a", 100000), "", &created).ok());
  Worker worker(*workers_, "worker-0");
  const v1::StartRanks start = worker.Await(v1::CoordinatorMessage::kStartRanks).start_ranks();
  worker.StartRank(start);
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::WatchJobRequest request;
  request.set_name("a");
  // A separate connection that buffers little ahead of its reader.
  grpc::ChannelArguments small;
  small.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  small.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65536);
  const auto stub = v1::JobService::NewStub(
      grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), small));
  const auto watch = stub->WatchJob(&context, request);
  v1::WatchJobResponse update;
  ASSERT_TRUE(watch->Read(&update));
  for (int64_t step = 1; step <= kReports; ++step) worker.Report(start, step);
  while (worker.Await(v1::CoordinatorMessage::kReportsDurable).reports_durable().step() <
         kReports) {
  }
  int64_t last = 0;
  while (watch->Read(&update)) {
    if (update.has_step()) last = update.step().step();
  }
  const grpc::Status status = watch->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("from_step"));
  EXPECT_LT(last, kReports);
  // No other client was affected, and the remaining steps can be read.
  grpc::ClientContext again;
  SetDeadline(&again);
  request.set_from_step(last + 1);
  const auto resumed = jobs_->WatchJob(&again, request);
  int64_t next = 0;
  while (next < kReports && resumed->Read(&update)) {
    if (!update.has_step()) continue;
    EXPECT_EQ(update.step().step(), next == 0 ? last + 1 : next + 1);
    next = update.step().step();
  }
  EXPECT_EQ(next, kReports);
  again.TryCancel();
}

}  // namespace
}  // namespace troupe
