// Tests how commands read a job, from a file and from standard input.
#include "cli/job_input.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_directory.h"
#include "cli/commands.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class JobInputTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.Child(name)) << text;
    return directory_.Child(name);
  }

  static StatusOr<LoadedJob> Load(const std::vector<std::string>& arguments) {
    const Command command = {.name = "read",
                             .positionals = "JOB.yaml",
                             .least_positionals = 1,
                             .most_positionals = 1,
                             .flags = {&kSetFlag},
                             .cluster = ClusterUse::kNone};
    const auto line = command.Parse(arguments);
    if (!line.ok()) return line.status();
    return LoadJob(*line);
  }

  // Loads the job `text` from standard input.
  StatusOr<LoadedJob> LoadInput(const std::string& text, std::vector<std::string> flags = {}) {
    const int file = open(Write("input", text).c_str(), O_RDONLY);
    const int before = dup(STDIN_FILENO);
    EXPECT_GE(dup2(file, STDIN_FILENO), 0);
    close(file);
    flags.insert(flags.begin(), "-");
    auto job = Load(flags);
    dup2(before, STDIN_FILENO);
    close(before);
    return job;
  }

  TemporaryDirectory directory_;
};

TEST_F(JobInputTest, AMinusReadsStandardInputRelativeToTheWorkingDirectory) {
  const auto job = LoadInput("name: a\ndata: {train: d/x}\n", {"--set", "training.steps=3"});
  ASSERT_TRUE(job.ok()) << job.status();
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(job->spec.name(), "a");
  EXPECT_EQ(job->spec.training().steps(), 3);
  EXPECT_EQ(job->spec.data().train(), (std::filesystem::path(here) / "d/x").string());
  EXPECT_EQ(job->places.at("data.train"), "standard input:2:8");
}

TEST_F(JobInputTest, StandardInputHasTheLimitsOfAFile) {
  EXPECT_THAT(std::string(Message(LoadInput(std::string(kMaxJobFileBytes + 1, '#')).status())),
              StartsWith("standard input: has "));
  EXPECT_THAT(std::string(Message(LoadInput("# none\n").status())),
              StartsWith("standard input: has no keys"));
  EXPECT_THAT(std::string(Message(LoadInput("").status())),
              StartsWith("standard input: is empty or closed, and - reads the job file from it; "));
}

TEST_F(JobInputTest, AModelOfTheHubIsRefusedWithItsPlaceAndAnAdvice) {
  const std::string path = Write("job.yaml", "name: a\nmodel:\n  from: meta-llama/Llama-3.2-1B\n");
  const Status refused = Load({path}).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(refused),
            fmt::format("model.from is {}: there is no such directory; a model of the Hugging Face "
                        "hub is downloaded first, for instance with `hf download "
                        "meta-llama/Llama-3.2-1B --local-dir DIR`: state DIR here ({}:3:3)",
                        directory_.Child("meta-llama/Llama-3.2-1B"), path));
}

TEST_F(JobInputTest, AModelThatCannotBeReadIsRefusedWithItsPlace) {
  std::filesystem::create_directory(directory_.Child("model"));
  const std::string path = Write("job.yaml", "model: {from: model}\n");
  const Status refused = Load({path}).status();
  ASSERT_EQ(ViolationsOf(refused).size(), 1u) << refused;
  EXPECT_EQ(ViolationsOf(refused)[0].field, "model.from");
  EXPECT_THAT(ViolationsOf(refused)[0].description,
              StartsWith("is " + directory_.Child("model") + ": "));
  EXPECT_THAT(ViolationsOf(refused)[0].description, HasSubstr(" (" + path + ":1:9)"));
}

// Returns what `troupe plan` with these arguments prints on standard output and standard error.
std::pair<std::string, std::string> Planned(const std::vector<std::string>& arguments) {
  const Command command = PlanCommands().front();
  const auto line = command.Parse(arguments);
  EXPECT_TRUE(line.ok()) << line.status();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto code = command.run(*line);
  std::string out = testing::internal::GetCapturedStdout();
  std::string err = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(code.ok() && *code == ExitCode::kDone) << code.status();
  return {out, err};
}

TEST_F(JobInputTest, APlanWarnsOfDataThatSubmitRefuses) {
  const std::string training = "training: {global_batch_size: 8, sequence_length: 32}\n";
  const std::string path =
      Write("job.yaml", "model: {preset: tiny}\ndata: {train: none}\n" + training);
  const auto [out, err] = Planned({path});
  EXPECT_THAT(out, HasSubstr("mesh: 1 rank"));
  EXPECT_THAT(err, StartsWith("warning: data.train is " + directory_.Child("none") + ": "));
  EXPECT_THAT(err, HasSubstr(" (" + path + ":2:8); `troupe submit` on this host would refuse"));
  // A folder is no dataset either.
  std::filesystem::create_directory(directory_.Child("none"));
  EXPECT_THAT(Planned({path, "-o", "json"}).second, StartsWith("warning: data.train is "));
  EXPECT_EQ(Planned({Write("bare.yaml", "model: {preset: tiny}\n" + training)}).second, "")
      << "a plan needs no data";
}

}  // namespace
}  // namespace troupe
