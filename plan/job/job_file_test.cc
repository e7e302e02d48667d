#include "plan/job/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "plan/job/job_defaults.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(JobFileTest, ReadsEveryKindOfField) {
  const auto spec = ParseJobFile(R"(
name: a-1
model: {pattern: "(AD)x4", hidden_size: 256, tie_word_embeddings: true, rope_theta: 1e4}
training: {seed: 18446744073709551615, max_norm: 1, steps: +7}
optimizer: {lr: 1.0e-3, eps: .5}
parallelism: {pipeline_parallel_split_points: [1, 3]}
data: {blend: [{path: x, weight: 0.5}, {path: y}]}
checkpoint:
priority: -3
)",
                                 "job.yaml");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name(), "a-1");
  EXPECT_EQ(spec->model().hidden_size(), 256);
  EXPECT_TRUE(spec->model().tie_word_embeddings());
  EXPECT_EQ(spec->model().rope_theta(), 1e4);
  EXPECT_EQ(spec->training().seed(), ~uint64_t{0});
  EXPECT_EQ(spec->training().max_norm(), 1.0);
  EXPECT_EQ(spec->training().steps(), 7);
  EXPECT_EQ(spec->optimizer().lr(), 1e-3);
  EXPECT_EQ(spec->optimizer().eps(), 0.5);
  EXPECT_EQ(spec->parallelism().pipeline_parallel_split_points(1), 3);
  EXPECT_EQ(spec->data().blend(1).path(), "y");
  EXPECT_EQ(spec->priority(), -3);
  EXPECT_FALSE(spec->training().has_global_batch_size());
}

struct BadText {
  const char* text;
  const char* words;
};

TEST(JobFileTest, RefusesEachBadTextNamingFieldValueAndLine) {
  for (const BadText& bad : std::initializer_list<BadText>{
           {"name: a\nmodel:\n  hiden_size: 3\n",
            "model.hiden_size is an unknown key; the nearest known key is model.hidden_size "
            "(job.yaml:3:3)"},
           {"steps: 3\n", "the nearest known key is training.steps (job.yaml:1:1)"},
           {"model: {learning_rate: 1}",
            "model.learning_rate is an unknown key; it is called optimizer.lr here (job.yaml:1:9)"},
           {"model: {zzz: 1}", "model.zzz is an unknown key (job.yaml:1:9)"},
           {"modle: {hidden_size: 3}", "the nearest known key is model (job.yaml:1:1)"},
           {"training: {steps: 15e-1}", "training.steps is 15e-1, not a whole number"},
           {"training: {steps: 1e30}", "training.steps is 1e30, out of the range of int64"},
           {"name: a\nname: b\n", "name is a duplicate key (job.yaml:2:1)"},
           {"training: {steps: 1}\ntraining: {steps: 2}\n", "training is a duplicate key"},
           {"training: {steps: ten}", "training.steps is ten, not a whole number (job.yaml:1:12)"},
           {"training: {steps: 1.5}", "training.steps is 1.5, not a whole number"},
           {"training: {steps: \"10\"}", "is the text \"10\", not a whole number"},
           {"training: {steps: 99999999999999999999}", "out of the range of int64"},
           {"training: {seed: -1}", "training.seed is -1, out of the range of uint64"},
           {"training: {steps: [1]}", "is a list, not a whole number"},
           {"training: {steps: }", "is empty, not a whole number"},
           {"training: 5", "training is 5, not a mapping"},
           {"optimizer: {lr: .nan}", "optimizer.lr is .nan, not a finite number"},
           {"optimizer: {lr: -.inf}", "not a finite number"},
           {"optimizer: {lr: NaN}", "not a finite number"},
           {"optimizer: {lr: 1e999}", "out of the range of double"},
           {"data: {train: /d\xff}",
            "data.train is \"/d\\xff\", which is not UTF-8: its byte 3 is \\xff (job.yaml:1:8)"},
           {"xla: {options: []}", "xla.options is an empty list; leave the key out"},
           {"data: {blend: []}", "data.blend is an empty list; leave the key out (job.yaml:1:8)"},
           {"parallelism: {pipeline_parallel_split_points: []}", "split_points is an empty list"},
           {"optimizer: {lr: fast}", "optimizer.lr is fast, not a number"},
           {"model: {tie_word_embeddings: yes}", "is yes, not true or false"},
           {"parallelism: {pipeline_parallel_split_points: 3}", "is 3, not a list"},
           {"parallelism: {pipeline_parallel_split_points: [1, x]}", "split_points[1] is x"},
           {"- a\n- b\n", "is a list, not a mapping"},
           {"hello", "is hello, not a mapping"},
           {"name: a\n---\n  name: b\n",
            "job.yaml:3:3: has 2 YAML documents, not one; the second begins here"},
           {"data: {train: ~/d/x}",
            "data.train is ~/d/x: write the absolute path; ~ is expanded by a shell only at the "
            "start of a word (job.yaml:1:8)"},
           {"model: {\n  hidden_size: 3\n", "job.yaml:2:17: a { is not closed"},
           {"name: [a", "job.yaml:1:9: a [ is not closed"},
           {"a: &a [*a]", "unknown key"},
           {"", "job.yaml: has no keys; `troupe keys` lists those of a job file"},
           {"# name: a\n---\n", "job.yaml: has no keys"},
           {"training:\n\tsteps: 3\n", "a tab indents this line; YAML is indented by spaces only"},
           {"training:\n  seed: 1\n\tsteps: 3\n", "job.yaml:3:1: a tab indents this line"},
           {"training: {\n\tsteps: 3\n", "job.yaml:2:10: a { is not closed"},
           {"base: &b {steps: 3}\ntraining:\n  <<: *b\n",
            "training.<< is a merge key of YAML, which is not read: state the keys themselves "
            "(job.yaml:3:3)"},
           {"? [x]\n: 1\n", "key that is not a text"}}) {
    const auto spec = ParseJobFile(bad.text, "job.yaml");
    ASSERT_FALSE(spec.ok()) << bad.text;
    EXPECT_EQ(spec.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(spec.status())), HasSubstr(bad.words)) << bad.text;
  }
}

TEST(JobFileTest, ReportsEveryErrorWithBadRequestDetails) {
  const auto spec = ParseJobFile("nmae: a\ntraining: {steps: x}\n", "job.yaml");
  const auto violations = ViolationsOf(spec.status());
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].field, "nmae");
  EXPECT_THAT(violations[0].description, HasSubstr("known key is name"));
  EXPECT_EQ(violations[1].field, "training.steps");
}

TEST(JobFileTest, ManyUnknownKeysAreRefusedSoon) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += fmt::format("training_steps_{}: 1\n", i);
  const auto violations = ViolationsOf(ParseJobFile(text, "job.yaml").status());
  ASSERT_EQ(violations.size(), 20'000u);
  EXPECT_EQ(violations.back().description, "is an unknown key (job.yaml:20000:1)");
}

constexpr const char* kPlaced = R"(name: a
training: {steps: 0,
           seed: 1}
data:
  blend:
    - path: x
      weight: 2
    - {path: y}
parallelism:
  pipeline_parallel_split_points: [1, 3]
)";

TEST(JobFileTest, RecordsWhereEachKeyIsStated) {
  KeyPlaces places;
  ASSERT_TRUE(ParseJobFile(kPlaced, "job.yaml", &places).ok());
  EXPECT_THAT(
      places,
      UnorderedElementsAre(
          Pair("name", "job.yaml:1:1"), Pair("training", "job.yaml:2:1"),
          Pair("training.steps", "job.yaml:2:12"), Pair("training.seed", "job.yaml:3:12"),
          Pair("data", "job.yaml:4:1"), Pair("data.blend", "job.yaml:5:3"),
          Pair("data.blend[0].path", "job.yaml:6:7"), Pair("data.blend[0].weight", "job.yaml:7:7"),
          Pair("data.blend[1].path", "job.yaml:8:8"), Pair("parallelism", "job.yaml:9:1"),
          Pair("parallelism.pipeline_parallel_split_points", "job.yaml:10:3")));
}

TEST(JobFileTest, AnEmptyMappingIsAJobWithoutKeys) {
  EXPECT_TRUE(ParseJobFile("{}", "job.yaml").ok());
}

TEST(JobFileTest, DeepNestingAndLargeFilesAreErrorsNotCrashes) {
  EXPECT_THAT(std::string(Message(
                  ParseJobFile("a: 1\n\n" + std::string(100'000, '['), "job.yaml").status())),
              MatchesRegex("job.yaml:3:[0-9]+: is nested more than 499 levels deep"));
  EXPECT_FALSE(ParseJobFile(std::string(100'000, '{'), "job.yaml").ok());
  EXPECT_FALSE(ParseJobFile(std::string(kMaxJobFileBytes + 1, ' '), "job.yaml").ok());
  std::string bomb = "a: &a [1,1,1,1,1,1,1,1,1]\n";
  for (char c = 'b'; c < 'z'; ++c) {
    bomb += fmt::format("{}: &{} [*{},*{},*{},*{}]\n", c, c, char(c - 1), char(c - 1), char(c - 1),
                        char(c - 1));
  }
  EXPECT_FALSE(ParseJobFile(bomb, "job.yaml").ok());
}

TEST(OverrideTest, SetsAnyKeyParsedAsYaml) {
  v1::JobSpec spec;
  EXPECT_TRUE(ApplyOverride("training.steps=20", &spec).ok());
  EXPECT_TRUE(ApplyOverride("name=x", &spec).ok());
  EXPECT_TRUE(ApplyOverride("parallelism.pipeline_parallel_split_points=[2, 4]", &spec).ok());
  EXPECT_TRUE(ApplyOverride("parallelism.pipeline_parallel_split_points=[3]", &spec).ok());
  EXPECT_TRUE(ApplyOverride("checkpoint={folder: c, interval: 5}", &spec).ok());
  EXPECT_TRUE(ApplyOverride("model.pattern=\"(AD)x2\"", &spec).ok());
  EXPECT_EQ(spec.training().steps(), 20);
  EXPECT_EQ(spec.name(), "x");
  EXPECT_EQ(spec.parallelism().pipeline_parallel_split_points_size(), 1);
  EXPECT_EQ(spec.checkpoint().interval(), 5);
  EXPECT_EQ(spec.model().pattern(), "(AD)x2");
}

TEST(OverrideTest, NoPathBeginsWithATilde) {
  const std::string why =
      "write the absolute path; ~ is expanded by a shell only at the start of a word";
  for (const char* key : {"model.from", "data.train", "data.validation", "checkpoint.folder",
                          "checkpoint.initial_load"}) {
    v1::JobSpec spec;
    EXPECT_EQ(Message(ApplyOverride(fmt::format("{}=~/x", key), &spec)),
              fmt::format("{0} is ~/x: {1} (--set {0})", key, why));
    EXPECT_EQ(Message(ApplyOverride(fmt::format("{}=\"~\"", key), &spec)),
              fmt::format("{0} is ~: {1} (--set {0})", key, why));
    EXPECT_TRUE(ApplyOverride(fmt::format("{}=/~/x", key), &spec).ok());
  }
  v1::JobSpec spec;
  EXPECT_THAT(std::string(Message(ApplyOverride("data.blend=[{path: ~/x}]", &spec))),
              HasSubstr("data.blend[0].path is ~/x: write"));
  EXPECT_TRUE(ApplyOverride("name=~/x", &spec).ok()) << "the coordinator refuses it as a name";
}

TEST(OverrideTest, ReplacesThePlacesOfWhatItSets) {
  KeyPlaces places;
  auto spec = ParseJobFile(kPlaced, "job.yaml", &places);
  ASSERT_TRUE(spec.ok()) << spec.status();
  for (const char* override :
       {"training.steps=7", "data.blend=[{path: z}]", "checkpoint={interval: 3}"}) {
    ASSERT_TRUE(ApplyOverride(override, &*spec, &places).ok()) << override;
  }
  EXPECT_EQ(places.at("training.steps"), "--set training.steps");
  EXPECT_EQ(places.at("training.seed"), "job.yaml:3:12");
  EXPECT_EQ(places.at("data.blend"), "--set data.blend");
  EXPECT_EQ(places.at("data.blend[0].path"), "--set data.blend");
  EXPECT_FALSE(places.contains("data.blend[0].weight"));
  EXPECT_FALSE(places.contains("data.blend[1].path"));
  EXPECT_EQ(places.at("checkpoint.interval"), "--set checkpoint");
}

TEST(OverrideTest, AnEmptyListClearsOneOfTheFileAlone) {
  v1::JobSpec spec;
  spec.mutable_data()->add_blend()->set_path("x");
  EXPECT_TRUE(ApplyOverride("data.blend=[]", &spec).ok());
  EXPECT_EQ(spec.data().blend_size(), 0);
  EXPECT_THAT(std::string(Message(ApplyOverride("data.blend=[]", &spec))),
              HasSubstr("data.blend is an empty list; leave the key out"));
}

TEST(OverrideTest, RefusesWhatItCannotSet) {
  for (const BadText& bad : std::initializer_list<BadText>{
           {"training.steps", "must have the form key=value"},
           {"=3", "must have the form key=value"},
           {"training.stepz=3", "nearest known key is training.steps (--set training.stepz)"},
           {"tp=2",
            "tp is an unknown key; it is called "
            "parallelism.tensor_parallel_degree here (--set tp)"},
           {"training={stepz: 3}", "training.steps (--set training)"},
           {"training.steps.more=3", "unknown key"},
           {"training..steps=3", "unknown key"},
           {"data.blend.path=x", "unknown key"},
           {"training.steps=-", "not a whole number (--set training.steps)"},
           {"training.steps=[", "--set training.steps: a [ is not closed"},
           {"training.steps=", "is empty, not a whole number"}}) {
    v1::JobSpec spec;
    const Status status = ApplyOverride(bad.text, &spec);
    ASSERT_FALSE(status.ok()) << bad.text;
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(status)), HasSubstr(bad.words)) << bad.text;
  }
}

TEST(ReadJobTest, ResolvesPathsAgainstTheGivenFolder) {
  const auto job = ReadJob({"data: {train: d/x}\n", "standard input", "/here"},
                           {"checkpoint.initial_load=c", "training.steps=3"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.data().train(), "/here/d/x");
  EXPECT_EQ(job->spec.checkpoint().initial_load(), "/here/c");
  EXPECT_EQ(job->spec.checkpoint().folder(), "/here/checkpoints");
  EXPECT_EQ(job->folder, "/here");
  EXPECT_EQ(job->places.at("data.train"), "standard input:1:8");
  EXPECT_EQ(job->places.at("training.steps"), "--set training.steps");
  EXPECT_EQ(job->places.at(""), "standard input");
  EXPECT_FALSE(job->places.contains("checkpoint.folder"));
}

TEST(ReadJobTest, NamesItsTextInErrors) {
  EXPECT_EQ(Message(ReadJob({"trainin: {}", "standard input", "/here"}, {}).status()),
            "trainin is an unknown key; the nearest known key is training (standard input:1:1)");
}

TEST(LoadJobFileTest, ResolvesPathsAgainstTheFilesFolder) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "job_file_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "job.yaml") << "data: {train: d/x, validation: /abs/y}\n"
                                        "checkpoint: {folder: ../c}\n";
  const auto job = LoadJobFile((folder / "job.yaml").string(), {"training.steps=3"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.data().train(), (folder / "d/x").string());
  EXPECT_EQ(job->spec.data().validation(), "/abs/y");
  EXPECT_EQ(job->spec.checkpoint().folder(), (folder.parent_path() / "c").string());
  EXPECT_EQ(job->spec.training().steps(), 3);
  EXPECT_EQ(job->folder, folder.string());
  std::ofstream(folder / "bare.yaml") << "name: a\n";
  const auto folder_of = [&](const std::vector<std::string>& overrides) {
    const auto bare = LoadJobFile((folder / "bare.yaml").string(), overrides);
    return bare.ok() ? bare->spec.checkpoint().folder() : ToString(bare.status());
  };
  EXPECT_EQ(folder_of({}), (folder / "checkpoints").string());
  EXPECT_EQ(folder_of({"checkpoint.folder=''"}), "");
  EXPECT_EQ(LoadJobFile((folder / "no.yaml").string(), {}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(LoadJobFile(folder.string(), {}).status().code(), StatusCode::kInvalidArgument);
  const std::string fifo = (folder / "fifo.yaml").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const Status refused = LoadJobFile(fifo, {}).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr(fifo + ": is not a regular file"));
  std::filesystem::remove_all(folder);
}

TEST(LoadJobFileTest, TheNameOfAJobIsNoJobFile) {
  EXPECT_EQ(Message(LoadJobFile("jobs/no-such-job", {}).status()),
            "jobs/no-such-job: there is no such file; `troupe describe jobs/no-such-job` shows the "
            "job, and this command needs a job file");
  EXPECT_EQ(Message(LoadJobFile("no-such-job", {}).status()),
            "no-such-job: there is no such file, and this command needs a job file; if no-such-job "
            "is a job: `troupe describe no-such-job`");
}

TEST(LoadJobFileTest, AMissingFileInAFolderOfJobsIsNotTakenForTheNameOfAJob) {
  for (const std::string path : {"jobs/no-such.yaml", "jobs/no-such.yml", "jobs/no-such.json"}) {
    EXPECT_EQ(Message(LoadJobFile(path, {}).status()),
              "open " + path + ": No such file or directory");
  }
}

TEST(JobDefaultsTest, DefaultsAreIdempotentAndKeepWhatIsGiven) {
  v1::JobSpec spec;
  spec.mutable_model()->set_hidden_size(512);
  ApplyDefaults(&spec);
  EXPECT_EQ(spec.model().hidden_size(), 512);
  EXPECT_EQ(spec.model().num_key_value_heads(), 8);
  EXPECT_EQ(spec.model().head_dim(), 64);
  EXPECT_EQ(spec.model().intermediate_size(), 1408);
  const std::string once = spec.SerializeAsString();
  ApplyDefaults(&spec);
  EXPECT_EQ(spec.SerializeAsString(), once);
}

TEST(JobDefaultsTest, PresetsAreThePublishedShapes) {
  const auto preset = [](const char* name) {
    v1::JobSpec spec;
    spec.mutable_model()->set_preset(name);
    ApplyDefaults(&spec);
    return spec.model();
  };
  EXPECT_EQ(preset("tiny").intermediate_size(), 704);
  EXPECT_EQ(preset("tiny").num_key_value_heads(), 4);
  EXPECT_EQ(preset("llama-124m").vocab_size(), 50304);
  EXPECT_TRUE(preset("llama-124m").tie_word_embeddings());
  EXPECT_EQ(preset("llama-1b").head_dim(), 64);
  EXPECT_EQ(preset("llama-1b").rope_scaling().factor(), 32);
  EXPECT_EQ(preset("llama-8b").head_dim(), 128);
  EXPECT_EQ(preset("llama-8b").rope_scaling().factor(), 8);
  EXPECT_FALSE(preset("llama-9b").has_pattern());
}

}  // namespace
}  // namespace troupe
