// Tests the input of CreateJob: the error details name each wrong field, and a refused request
// leaves no trace.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <vector>

#include "base/faulty_file_system.h"
#include "base/file_system.h"
#include "base/temporary_directory.h"
#include "coordinator/service/data_check.h"
#include "coordinator/service/server.h"
#include "coordinator/test_requests.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kCallLimit = std::chrono::seconds(10);

TEST(CheckpointFolder, IsRefusedWhereItMustBeHereAndCannotBeMade) {
  PosixFileSystem files;
  const TemporaryDirectory directory;
  v1::JobSpec spec = PlannableJob("a");
  spec.mutable_checkpoint()->set_folder("/proc/foo/bar");
  EXPECT_TRUE(CheckCheckpointFolder(files, spec, false).ok());
  const Status refused = CheckCheckpointFolder(files, spec, true);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused)),
              HasSubstr("checkpoint.folder is /proc/foo/bar, which cannot be made"));
  spec.mutable_checkpoint()->set_folder(directory.Child("new") + "/a");
  EXPECT_TRUE(CheckCheckpointFolder(files, spec, true).ok());
  EXPECT_FALSE(files.Stat(directory.Child("new"), SymbolicLinks::kFollow).ok())
      << "nothing is left";
  spec.mutable_checkpoint()->set_folder(directory.path());
  EXPECT_TRUE(CheckCheckpointFolder(files, spec, true).ok());
}

TEST(CheckpointFolder, IsAcceptedOnADiskThatIsFullOrReadOnlyAtPresent) {
  PosixFileSystem files;
  const TemporaryDirectory directory;
  v1::JobSpec spec = PlannableJob("a");
  spec.mutable_checkpoint()->set_folder(directory.Child("new") + "/a");
  const auto check_with = [&](int error_number) {
    FaultyFileSystem faulty(files);
    faulty.Add({.operation = FileOperation::kMakeDirectory,
                .path_contains = directory.Child("new"),
                .error_number = error_number});
    return CheckCheckpointFolder(faulty, spec, true);
  };
  for (const int error_number : {ENOSPC, EDQUOT, EROFS})
    EXPECT_TRUE(check_with(error_number).ok()) << check_with(error_number);
  for (const int error_number : {EACCES, EPERM, ENOENT, EIO})
    EXPECT_EQ(check_with(error_number).code(), StatusCode::kInvalidArgument) << error_number;
}

TEST(JobFilesCheck, RefusesEachPathThatLeavesItsRootByItsKey) {
  PosixFileSystem files;
  const TemporaryDirectory directory;
  const std::string root = directory.Child("root");
  ASSERT_TRUE(files.MakeDirectory(root).ok());
  ASSERT_EQ(symlink("..", (root + "/link").c_str()), 0);
  v1::PathRoots roots;
  roots.set_data(root);
  roots.set_checkpoints(root);
  roots.set_imports(root);
  const auto job = [&root] {
    v1::JobSpec spec = PlannableJob("a");
    spec.mutable_model()->set_vocab_size(259);
    spec.mutable_data()->set_train(root + "/elsewhere/data");  // may be on the workers
    spec.mutable_checkpoint()->set_folder(root + "/ck");
    return spec;
  };
  EXPECT_TRUE(CheckJobFiles(job(), roots, false).ok()) << CheckJobFiles(job(), roots, false);
  for (const std::string& path : {root + "/link/x", root + "/../x", directory.Child("x")}) {
    const auto expect_refused = [&](const v1::JobSpec& spec, const std::string& key) {
      for (const bool must_be_here : {false, true}) {
        const Status refused = CheckJobFiles(spec, roots, must_be_here);
        EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << key << " " << path;
        EXPECT_THAT(std::string(Message(refused)), HasSubstr(key + " is " + path));
        EXPECT_THAT(std::string(Message(refused)), HasSubstr("the path leaves " + root));
        if (key != "data.train") break;  // the data, which are missing here, are checked first
      }
    };
    v1::JobSpec spec = job();
    spec.mutable_data()->set_train(path);
    expect_refused(spec, "data.train");
    spec = job();
    spec.mutable_model()->set_from(path);
    expect_refused(spec, "model.from");
    spec = job();
    spec.mutable_checkpoint()->set_initial_load(path);
    expect_refused(spec, "checkpoint.initial_load");
    spec = job();
    spec.mutable_checkpoint()->set_folder(path);
    expect_refused(spec, "checkpoint.folder");
  }
}

class CreateJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.data_directory = directory_.path() + "/catalog";
    options.detection_seconds = 1;
    options.checkpoint_root = root_;
    ASSERT_TRUE(files_.MakeDirectory(root_).ok());
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
    jobs_ = v1::JobService::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  grpc::Status Create(const v1::JobSpec& spec) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::CreateJobRequest request;
    *request.mutable_job() = spec;
    v1::CreateJobResponse response;
    return jobs_->CreateJob(&context, request, &response);
  }

  // Returns -1 if the jobs cannot be listed.
  int Jobs() {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::ListJobsResponse listed;
    return jobs_->ListJobs(&context, {}, &listed).ok() ? listed.jobs_size() : -1;
  }

  PosixFileSystem files_;
  TemporaryDirectory directory_;
  const std::string root_ = directory_.Child("root");

 private:
  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + kCallLimit);
    context->set_wait_for_ready(true);
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
};

// A defect of a job, the field named for it, and words of the violated relation.
struct WrongJob {
  const char* what;
  void (*spoil)(v1::JobSpec& spec);
  const char* field;
  std::vector<const char*> words;
};

const WrongJob kWrongJobs[] = {
    {"name", [](v1::JobSpec& spec) { spec.set_name("Not A Name"); }, "name", {"Not A Name"}},
    {"negative steps",
     [](v1::JobSpec& spec) { spec.mutable_training()->set_steps(-1); },
     "training.steps",
     {"-1"}},
    {"negative batch",
     [](v1::JobSpec& spec) { spec.mutable_training()->set_global_batch_size(-8); },
     "training.global_batch_size",
     {"-8"}},
    {"batch not divisible",
     [](v1::JobSpec& spec) { spec.mutable_training()->set_micro_batch_size(3); },
     "training.global_batch_size",
     {"2", "micro_batch_size", "3"}},
    {"NaN",
     [](v1::JobSpec& spec) { spec.mutable_optimizer()->set_lr(std::nan("")); },
     "optimizer.lr",
     {"nan"}},
    {"infinity",
     [](v1::JobSpec& spec) { spec.mutable_optimizer()->set_lr(HUGE_VAL); },
     "optimizer.lr",
     {"inf"}},
    {"negative learning rate",
     [](v1::JobSpec& spec) { spec.mutable_optimizer()->set_lr(-1); },
     "optimizer.lr",
     {"-1"}},
    {"heads not divisible",
     [](v1::JobSpec& spec) { spec.mutable_parallelism()->set_tensor_parallel_degree(3); },
     "parallelism.tensor_parallel_degree",
     {"3", "heads"}},
    {"fewer blocks than stages",
     [](v1::JobSpec& spec) { spec.mutable_parallelism()->set_pipeline_parallel_degree(16); },
     "parallelism.pipeline_parallel_degree",
     {"16", "8"}},
    {"negative degree",
     [](v1::JobSpec& spec) { spec.mutable_parallelism()->set_data_parallel_replicate_degree(-2); },
     "parallelism.data_parallel_replicate_degree",
     {"-2"}},
    {"unknown schedule",
     [](v1::JobSpec& spec) { spec.mutable_parallelism()->set_pipeline_parallel_schedule("1F2B"); },
     "parallelism.pipeline_parallel_schedule",
     {"1F2B", "1F1B"}},
    {"unknown preset",
     [](v1::JobSpec& spec) { spec.mutable_model()->set_preset("tinny"); },
     "model.preset",
     {"tinny", "tiny"}},
    {"bad pattern",
     [](v1::JobSpec& spec) { spec.mutable_model()->set_pattern("(AD"); },
     "model.pattern",
     {"(AD"}},
    {"unknown dtype",
     [](v1::JobSpec& spec) { spec.mutable_training()->set_compute_dtype("float17"); },
     "training.compute_dtype",
     {"float17", "bfloat16"}},
    {"unknown policy",
     [](v1::JobSpec& spec) { spec.mutable_training()->set_on_nonfinite("shrug"); },
     "training.on_nonfinite",
     {"shrug", "skip_step"}},
    {"no data", [](v1::JobSpec& spec) { spec.mutable_data()->clear_train(); }, "data.train", {}},
    {"negative budget",
     [](v1::JobSpec& spec) { spec.mutable_fault_tolerance()->set_max_restarts(-1); },
     "fault_tolerance.max_restarts",
     {"-1"}},
};

TEST_F(CreateJobTest, EachWrongFieldIsNamedInTheStatusDetailsAndNoJobIsMade) {
  for (const WrongJob& wrong : kWrongJobs) {
    SCOPED_TRACE(wrong.what);
    v1::JobSpec spec = PlannableJob("a");
    wrong.spoil(spec);
    const grpc::Status status = Create(spec);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    for (const char* const word : wrong.words) {
      EXPECT_THAT(status.error_message(), HasSubstr(word));
    }
    google::rpc::Status details;
    ASSERT_TRUE(details.ParseFromString(status.error_details()));
    EXPECT_EQ(details.code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
    google::rpc::BadRequest bad_request;
    ASSERT_EQ(details.details_size(), 1) << status.error_message();
    ASSERT_TRUE(details.details(0).UnpackTo(&bad_request));
    ASSERT_GE(bad_request.field_violations_size(), 1);
    for (const auto& violation : bad_request.field_violations()) {
      EXPECT_EQ(violation.field(), wrong.field);
      EXPECT_FALSE(violation.description().empty());
    }
  }
  EXPECT_EQ(Jobs(), 0);
  EXPECT_TRUE(Create(PlannableJob("a")).ok()) << "the table spoils a good job";
}

TEST_F(CreateJobTest, AJobInACheckpointRootThatHasVanishedIsRefused) {
  ASSERT_TRUE(files_.Rename(root_, root_ + "-unmounted").ok());
  for (const std::string& folder : {root_, root_ + "/below"}) {
    v1::JobSpec spec = PlannableJob("a");
    spec.mutable_checkpoint()->set_folder(folder);
    const grpc::Status refused = Create(spec);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(refused.error_message(), HasSubstr("--checkpoint-root " + root_ + " is no"));
  }
  v1::JobSpec unstated = PlannableJob("a");
  unstated.mutable_checkpoint()->clear_folder();
  EXPECT_EQ(Create(unstated).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Jobs(), 0);
  EXPECT_FALSE(files_.Stat(root_, SymbolicLinks::kFollow).ok()) << "it was created";
  v1::JobSpec elsewhere = PlannableJob("elsewhere");
  elsewhere.mutable_checkpoint()->set_folder(root_ + "-other");
  EXPECT_TRUE(Create(elsewhere).ok());

  // An empty directory, as an unmounted volume leaves it, is another folder.
  ASSERT_TRUE(files_.MakeDirectory(root_).ok());
  const grpc::Status other = Create(unstated);
  EXPECT_EQ(other.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(other.error_message(), HasSubstr("--checkpoint-root has changed"));
  EXPECT_THAT(other.error_message(), HasSubstr(root_));
  ASSERT_TRUE(files_.RemoveDirectory(root_).ok());
  ASSERT_TRUE(files_.Rename(root_ + "-unmounted", root_).ok());
  EXPECT_TRUE(Create(unstated).ok());
}

TEST_F(CreateJobTest, AnOversizedMessageIsRefusedAndTheServiceGoesOn) {
  v1::JobSpec large = PlannableJob("large");
  large.mutable_data()->set_train("/" + std::string(5 << 20, 'x'));
  const grpc::Status refused = Create(large);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << refused.error_message();
  EXPECT_EQ(Jobs(), 0);
  EXPECT_TRUE(Create(PlannableJob("a")).ok());  // on the same channel
  EXPECT_EQ(Jobs(), 1);
}

}  // namespace
}  // namespace troupe
