#include "plan/job/path_hints.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(PathHintsTest, AnIndexIsNamedByItsPrefix) {
  EXPECT_EQ(DatasetHint("/d/x.idx"), "; state the prefix without the ending, /d/x");
}

TEST(PathHintsTest, ATextIsPreparedFirst) {
  for (const char* path : {"/d/x.txt", "/d/x.jsonl", "/d/x.jsonl.gz"}) {
    EXPECT_EQ(DatasetHint(path), std::string("; `troupe data prepare --output PREFIX ") + path +
                                     "` makes a dataset of a text: state PREFIX here");
  }
}

TEST(PathHintsTest, AnyOtherDatasetIsMadeOfAText) {
  EXPECT_EQ(
      DatasetHint("/d/x"),
      "; `troupe data prepare --output PREFIX FILE` makes a dataset of a text: state PREFIX here");
}

TEST(PathHintsTest, AJobIsDescribedAndNotRead) {
  for (const char* name : {"jobs/tiny", "jobs/lab.tiny"}) {
    EXPECT_EQ(JobFileHint(name), std::string("; `troupe describe ") + name +
                                     "` shows the job, and this command needs a job file");
  }
  EXPECT_EQ(JobFileHint("tiny"),
            ", and this command needs a job file; if tiny is a job: `troupe describe tiny`");
}

TEST(PathHintsTest, AnyOtherPathOfAJobFileGetsNoHint) {
  for (const char* path : {"", "tiny.yaml", "lab.tiny", "jobs/tiny.yaml", "jobs/tiny.yml",
                           "jobs/tiny.json", "./tiny", "/tiny", "a/tiny", "Tiny", "tiny-", "a b"})
    EXPECT_EQ(JobFileHint(path), "") << path;
}

TEST(PathHintsTest, AModelOfTheHubIsDownloadedFirst) {
  EXPECT_EQ(ModelFromHint("meta-llama/Llama-3.2-1B"),
            "; a model of the Hugging Face hub is downloaded first, for instance with `hf download "
            "meta-llama/Llama-3.2-1B --local-dir DIR`: state DIR here");
}

TEST(PathHintsTest, AJobHasCheckpoints) {
  EXPECT_EQ(ModelFromHint("jobs/lab.x"),
            "; to go on from the job lab.x, state a checkpoint of `troupe checkpoints list lab.x` "
            "as checkpoint.initial_load");
}

TEST(PathHintsTest, AnyOtherPathOfAModelGetsNoHint) {
  for (const char* path : {"", "llama", "../llama", "./llama", "a/b/c", "/a", "a/", "a b/c"})
    EXPECT_EQ(ModelFromHint(path), "") << path;
}

}  // namespace
}  // namespace troupe
