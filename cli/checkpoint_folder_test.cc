#include "cli/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::CheckpointRecord Record(int64_t step, v1::CheckpointState state, const std::string& path = "") {
  v1::CheckpointRecord record;
  record.set_step(step);
  record.set_state(state);
  record.set_path(path);
  if (state == v1::CHECKPOINT_STATE_QUARANTINED) record.set_reason("a bit is wrong");
  return record;
}

v1::CheckpointRecord Commit(int64_t step, const std::string& path = "") {
  return Record(step, v1::CHECKPOINT_STATE_COMMITTED, path);
}

v1::CheckpointRecord Quarantined(int64_t step, const std::string& path = "") {
  return Record(step, v1::CHECKPOINT_STATE_QUARANTINED, path);
}

TEST(CheckpointOfJobTest, AJobMayHaveAStep) {
  for (const char* newest : {"a", "jobs/a"}) {
    const auto parsed = ParseCheckpointOfJob(newest);
    ASSERT_TRUE(parsed.ok() && parsed->has_value()) << newest;
    EXPECT_EQ((*parsed)->job, "jobs/a");
    EXPECT_EQ((*parsed)->step, std::nullopt);
  }
  const auto parsed = ParseCheckpointOfJob("jobs/lab.run-1@60");
  ASSERT_TRUE(parsed.ok() && parsed->has_value());
  EXPECT_EQ((*parsed)->job, "jobs/lab.run-1");
  EXPECT_EQ((*parsed)->step, 60);
}

TEST(CheckpointOfJobTest, OtherTextsAreNoneOrAnError) {
  for (const char* path : {"", "./a", "a/b", "/a", "./jobs/a", "A", "a_b", "@6", "a/b@6"}) {
    const auto parsed = ParseCheckpointOfJob(path);
    ASSERT_TRUE(parsed.ok()) << path;
    EXPECT_FALSE(parsed->has_value()) << path;
  }
  for (const char* wrong : {"jobs/", "jobs/a/b", "jobs/A@6", "a@", "a@b", "a@-1", "a@6x", "a@6@7",
                            "jobs/a@99999999999999999999"}) {
    EXPECT_EQ(ParseCheckpointOfJob(wrong).status().code(), StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_EQ(Message(ParseCheckpointOfJob("jobs/a/b").status()),
            "jobs/a/b begins with jobs/, so it names a job, but \"a/b\" is no name of one; "
            "./jobs/a/b is the path");
  EXPECT_THAT(std::string(Message(ParseCheckpointOfJob("a@b").status())),
              HasSubstr("\"b\" is not a step"));
}

TEST(ChooseCheckpointTest, TheNewestCommitThatIsNotQuarantinedIsChosen) {
  const auto chosen =
      ChooseCheckpoint({"jobs/a"}, {Commit(20, "old"), Commit(40, "good"), Quarantined(60)});
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->path(), "good");
}

TEST(ChooseCheckpointTest, AStepIsThatOfACommitOrElseOfAQuarantinedOne) {
  const std::vector<v1::CheckpointRecord> records = {Commit(20, "first"), Commit(20, "second"),
                                                     Quarantined(20, "bad"), Quarantined(40, "q")};
  EXPECT_EQ(ChooseCheckpoint({"jobs/a", 20}, records)->path(), "second");
  EXPECT_EQ(ChooseCheckpoint({"jobs/a", 40}, records)->path(), "q");
}

TEST(ChooseCheckpointTest, WhereThereIsNoneItIsNotFoundAndTheCommitsAreNamed) {
  const auto refusal = [](const CheckpointOfJob& wanted,
                          const std::vector<v1::CheckpointRecord>& records) {
    const Status status = ChooseCheckpoint(wanted, records).status();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kNotFound) << ToString(status);
    return std::string(Message(status));
  };
  EXPECT_EQ(refusal({"jobs/a"}, {}), "jobs/a has no committed checkpoint");
  EXPECT_THAT(refusal({"jobs/a"}, {Quarantined(20)}),
              AllOf(HasSubstr("are quarantined"), HasSubstr("checkpoints list a --all")));
  EXPECT_EQ(refusal({"jobs/a", 20}, {}), "jobs/a has no checkpoint of step 20: it has no commit");
  EXPECT_EQ(refusal({"jobs/a", 7}, {Commit(20), Quarantined(30), Commit(40)}),
            "jobs/a has no checkpoint of step 7: its commits are of step 20, 40");
  std::vector<v1::CheckpointRecord> many;
  for (int64_t step = 1; step <= 20; ++step) many.push_back(Commit(step));
  EXPECT_EQ(refusal({"jobs/a", 30}, many),
            "jobs/a has no checkpoint of step 30: its newest commits are of step 13, 14, 15, 16, "
            "17, 18, 19, 20");
}

// A coordinator that has the checkpoints of the job a, in pages of one.
class ListedCheckpointService final : public v1::CheckpointService::Service {
 public:
  std::vector<v1::CheckpointRecord> records;
  int calls = 0;

 private:
  grpc::Status ListCheckpoints(grpc::ServerContext*, const v1::ListCheckpointsRequest* request,
                               v1::ListCheckpointsResponse* response) override {
    ++calls;
    if (request->job() != "jobs/a")
      return {grpc::StatusCode::NOT_FOUND, "there is no job " + request->job()};
    const size_t at = request->page_token().empty() ? 0 : std::stoul(request->page_token());
    if (at < records.size()) *response->add_checkpoints() = records[at];
    if (at + 1 < records.size()) response->set_next_page_token(std::to_string(at + 1));
    return grpc::Status::OK;
  }
};

class CheckpointFinderTest : public ::testing::Test {
 protected:
  CheckpointFinderTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    for (const char* step : {"step-20", "step-40"}) MakeCheckpoint(directory_.Child(step));
    service_.records = {Commit(20, directory_.Child("step-20")),
                        Commit(40, directory_.Child("step-40")),
                        Quarantined(50, directory_.Child("step-20")), Commit(60, "/no/such/place")};
    former_ = std::filesystem::current_path();
    std::filesystem::current_path(directory_.path());
  }
  ~CheckpointFinderTest() override {
    std::filesystem::current_path(former_);
    server_->Shutdown();
  }

  // Makes a directory with a manifest.
  static void MakeCheckpoint(const std::string& path) {
    std::filesystem::create_directories(path);
    std::ofstream(path + "/manifest.json") << "{}";
  }

  // Returns what `ask` returns for a finder; `shown_` gets its message.
  template <typename Ask>
  auto WithFinder(const Ask& ask) {
    const auto line =
        Command{.name = "show"}.Parse({"--coordinator", fmt::format("127.0.0.1:{}", port_)});
    EXPECT_TRUE(line.ok()) << ToString(line.status());
    PosixFileSystem files;
    CheckpointFinder finder(files, *line);
    testing::internal::CaptureStderr();
    auto found = ask(finder);
    shown_ = testing::internal::GetCapturedStderr();
    return found;
  }
  StatusOr<std::string> Find(const std::string& text) {
    return WithFinder([&](CheckpointFinder& finder) { return finder.Find(text); });
  }
  StatusOr<NamedCheckpoint> Locate(const std::string& text) {
    return WithFinder([&](CheckpointFinder& finder) { return finder.Locate(text); });
  }

  // Returns the path of a checkpoint of jobs/a.
  StatusOr<std::string> PathOfA(const std::string& text) {
    return WithFinder(
        [&](CheckpointFinder& finder) { return finder.PathInCatalog("jobs/a", text); });
  }

  TemporaryDirectory directory_;
  std::filesystem::path former_;
  ListedCheckpointService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::string shown_;
};

TEST_F(CheckpointFinderTest, AnExistingDirectoryIsAPathAndNobodyIsAsked) {
  for (const char* path : {"a", "a@20"}) {
    MakeCheckpoint(path);
    EXPECT_EQ(*Find(path), path);
    EXPECT_EQ(*Find(directory_.Child(path)), directory_.Child(path));
  }
  EXPECT_EQ(service_.calls, 0);
  EXPECT_EQ(shown_, "");
}

TEST_F(CheckpointFinderTest, JobsXIsTheJobAlsoNextToADirectoryOfThatName) {
  MakeCheckpoint("jobs/a");
  service_.records.pop_back();
  EXPECT_EQ(*Find("jobs/a"), directory_.Child("step-40"));
  EXPECT_EQ(*Find("./jobs/a"), "./jobs/a");
  EXPECT_EQ(Find("jobs/b").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(Find("jobs/b").status()), ExitCode::kNotFound);
}

TEST_F(CheckpointFinderTest, AJobIsItsNewestCommitOrTheOneOfAStep) {
  EXPECT_EQ(*Find("a@20"), directory_.Child("step-20"));
  EXPECT_EQ(shown_, "jobs/a, step 20: step-20\n") << "relative to the working directory";
  EXPECT_EQ(*Find("jobs/a@40"), directory_.Child("step-40"));
  EXPECT_EQ(*Find("a@50"), directory_.Child("step-20"));
  EXPECT_THAT(shown_, HasSubstr("which is quarantined: a bit is wrong"));
  service_.records.pop_back();
  EXPECT_EQ(*Find("a"), directory_.Child("step-40"));
  // With a step it can only be meant as a job.
  std::ofstream("a@40") << "x";
  EXPECT_EQ(*Find("a@40"), directory_.Child("step-40"));
  service_.records.clear();
  EXPECT_EQ(ExitCodeOf(Find("a").status()), ExitCode::kNotFound);
}

TEST_F(CheckpointFinderTest, ACheckpointThatIsNotOnThisHostGetsASentence) {
  const Status refused = Find("jobs/a").status();
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUsage);
  EXPECT_THAT(std::string(Message(refused)),
              StartsWith("the checkpoint of step 60 of jobs/a is /no/such/place, which is not on "
                         "this host: "));
}

TEST_F(CheckpointFinderTest, AFolderWithAnotherManifestIsNotTheCheckpoint) {
  const std::string path = directory_.Child("step-40"), manifest = path + "/manifest.json";
  std::ofstream(manifest) << "text";
  PosixFileSystem files;
  const std::string digest = *DigestOfManifest(files, path);
  EXPECT_EQ(digest, "sha256:982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1");
  service_.records[1].set_digest(digest);
  EXPECT_EQ(*Find("a@40"), path);
  std::ofstream(manifest) << "another";
  const Status refused = Find("a@40").status();
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUsage) << ToString(refused);
  EXPECT_THAT(std::string(Message(refused)),
              AllOf(StartsWith(fmt::format("the manifest in {} has the digest sha256:", path)),
                    HasSubstr("not " + digest),
                    HasSubstr("the folder on this host is not the checkpoint a@40")));
  std::filesystem::remove(manifest);
  EXPECT_THAT(std::string(Message(Find("jobs/a@40").status())),
              StartsWith(path + " has no manifest.json: the folder on this host is not the "
                                "checkpoint jobs/a@40"));
  // `verify` reports what is wrong in the folder, and needs the digest for it.
  const StatusOr<NamedCheckpoint> located = Locate("a@40");
  ASSERT_TRUE(located.ok()) << ToString(located.status());
  EXPECT_EQ(located->path, path);
  EXPECT_EQ(located->digest, digest);
  // The coordinator is not asked about a path.
  EXPECT_EQ(Locate(path)->digest, "");
}

TEST_F(CheckpointFinderTest, ADirectoryWithoutAManifestIsNoCheckpoint) {
  std::filesystem::create_directory("empty");
  const Status refused = Find("empty").status();
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUsage) << ToString(refused);
  EXPECT_EQ(Message(refused),
            "empty has no manifest.json: it is not a checkpoint of Troupe, or its write did not "
            "end");
  EXPECT_TRUE(Locate("empty").ok()) << "`verify` reports what is wrong";
}

TEST_F(CheckpointFinderTest, TheCatalogHasThePathOfACheckpointThatIsNotOnThisHost) {
  for (const char* text : {"a@60", "jobs/a@60", "a"})
    EXPECT_EQ(*PathOfA(text), "/no/such/place") << text;
  EXPECT_EQ(*PathOfA("a@40"), directory_.Child("step-40"));
  EXPECT_EQ(shown_, "");
  const Status unknown = PathOfA("a@7").status();
  EXPECT_EQ(ExitCodeOf(unknown), ExitCode::kNotFound);
  EXPECT_EQ(Message(unknown),
            "jobs/a has no checkpoint of step 7: its commits are of step 20, 40, 60");
  EXPECT_EQ(PathOfA("a@x").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(CheckpointFinderTest, APathInTheCatalogIsAbsoluteAndNobodyIsAsked) {
  const std::string here = std::filesystem::current_path().string();
  MakeCheckpoint("a@20");
  EXPECT_EQ(*PathOfA("a@20"), here + "/a@20");
  EXPECT_EQ(*PathOfA("./step-40/"), here + "/step-40");
  EXPECT_EQ(*PathOfA("/no/such/place"), "/no/such/place");
  EXPECT_EQ(Message(PathOfA("b@40").status()),
            "b@40 is not a directory, so it names a checkpoint of jobs/b, not of jobs/a");
  EXPECT_EQ(Message(PathOfA("jobs/b").status()),
            "jobs/b names a checkpoint of jobs/b, not of jobs/a");
  EXPECT_EQ(ExitCodeOf(PathOfA("jobs/b").status()), ExitCode::kUsage);
  EXPECT_EQ(service_.calls, 0);
}

TEST_F(CheckpointFinderTest, APathThatIsMissingIsBadInput) {
  for (const char* path : {"./a", "/no/such/place", "b/c"}) {
    const Status refused = Find(path).status();
    EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUsage) << ToString(refused);
    EXPECT_THAT(std::string(Message(refused)), HasSubstr(path));
  }
  // The second is the id of a job too.
  for (const char* file : {"a_file", "manifest.json"}) {
    std::ofstream(file) << "x";
    const Status refused = Find(file).status();
    EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUsage) << ToString(refused);
    EXPECT_EQ(
        Message(refused),
        fmt::format("{0} is a file: name the folder of the checkpoint, .; jobs/{0} would be a job",
                    file));
  }
  EXPECT_EQ(service_.calls, 0);
  const Status unknown = Find("b").status();
  EXPECT_EQ(ExitCodeOf(unknown), ExitCode::kNotFound);
  EXPECT_EQ(Message(unknown), "b is not a directory, so it names a job: there is no job jobs/b");
}

}  // namespace
}  // namespace troupe
