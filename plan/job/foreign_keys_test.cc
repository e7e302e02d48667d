#include "plan/job/foreign_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "troupe/v1/job.pb.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Adds the paths of all keys and sections below `type`.
void CollectPaths(const Descriptor& type, const std::string& prefix, std::set<std::string>* paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    paths->insert(prefix + field.name());
    if (field.message_type() != nullptr)
      CollectPaths(*field.message_type(), prefix + field.name() + ".", paths);
  }
}

std::set<std::string> Paths() {
  std::set<std::string> paths;
  CollectPaths(*v1::JobSpec::descriptor(), "", &paths);
  return paths;
}

TEST(ForeignKeysTest, EveryKeyThatTheTableNamesExists) {
  const std::set<std::string> paths = Paths();
  const std::regex path("[a-z0-9_]+(\\.[a-z0-9_]+)+");
  for (const ForeignKey& row : ForeignKeys()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(!row.key.empty() || !row.note.empty());
    EXPECT_TRUE(row.key.empty() || paths.contains(std::string(row.key))) << row.key;
    const std::string note(row.note);
    for (std::sregex_iterator match(note.begin(), note.end(), path), end; match != end; ++match) {
      const std::string named = match->str();
      EXPECT_TRUE(paths.contains(named) || named.ends_with(".py")) << named;
    }
  }
}

TEST(ForeignKeysTest, NoRowHasTheNameOfAKeyOrOfAnotherRow) {
  // These are keys in one section, and mean something else, or the same, in any other one.
  const std::set<std::string> elsewhere = {"seed", "num_layers"};
  const std::set<std::string> paths = Paths();
  std::set<std::string> words;
  for (const std::string& path : paths) words.insert(path.substr(path.rfind('.') + 1));
  std::set<std::string> names;
  for (const ForeignKey& row : ForeignKeys()) {
    const std::string name(row.name);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(paths.contains(name)) << name;
    EXPECT_EQ(words.contains(name), elsewhere.contains(name)) << name;
  }
}

TEST(ForeignKeysTest, AKeyOfAnotherToolGetsItsNameHere) {
  EXPECT_EQ(ForeignKeyText("model.learning_rate"), "; it is called optimizer.lr here");
  EXPECT_EQ(ForeignKeyText("training.batch_size"),
            "; it is called training.global_batch_size here: samples of a step, over all ranks");
  EXPECT_EQ(ForeignKeyText("n_layers"),
            "; it is called model.pattern here: \"(AD)x4\" has 4 layers");
  EXPECT_EQ(ForeignKeyText("parallelism.tp"),
            "; it is called parallelism.tensor_parallel_degree here");
}

TEST(ForeignKeysTest, AKeyWithoutACounterpartGetsAdvice) {
  EXPECT_EQ(ForeignKeyText("training.epochs"),
            "; state training.steps: an epoch has as many steps as the data have samples / "
            "training.global_batch_size");
}

TEST(ForeignKeysTest, AWholePathPrecedesItsLastWord) {
  EXPECT_EQ(ForeignKeyText("checkpoint.dir"), "; it is called checkpoint.folder here");
  EXPECT_EQ(ForeignKeyText("data.dir"),
            "; it is called data.train here: the prefix of a dataset of `troupe data prepare`");
  EXPECT_EQ(ForeignKeyText("model.dir"),
            "; it is called model.from here: the directory of a Hugging Face model");
  EXPECT_EQ(
      ForeignKeyText("dir"),
      "; it is called checkpoint.folder here: for the checkpoints; data.train names the data");
}

TEST(ForeignKeysTest, InASectionForTheScheduleItsTypeIsMeant) {
  for (const char* path : {"lr_schedule.type", "lr_schedule.scheduler", "lr_schedule.name"})
    EXPECT_EQ(ForeignKeyText(path), "; it is called lr_schedule.decay_type here") << path;
  EXPECT_EQ(ForeignKeyText("training.scheduler"), "; it is called lr_schedule here");
  EXPECT_EQ(ForeignKeyText("adam"),
            "; it is called optimizer here: its name is adamw, and optimizer.weight_decay: 0 makes "
            "it Adam");
  EXPECT_EQ(ForeignKeyText("gpu"), "; it is called devices here: its value is then cuda");
}

TEST(ForeignKeysTest, ANameThatIsMisspeltByALetterIsFound) {
  EXPECT_EQ(NearForeignKeyText("optimizer.learningrate"), "; it is called optimizer.lr here");
  EXPECT_EQ(NearForeignKeyText("learningRate"), "; it is called optimizer.lr here");
  EXPECT_EQ(NearForeignKeyText("training.batchsize"),
            "; it is called training.global_batch_size here: samples of a step, over all ranks");
  EXPECT_EQ(NearForeignKeyText("lr_schedule.tpye"), "; it is called lr_schedule.decay_type here");
  EXPECT_EQ(NearForeignKeyText("training.stepz"), "");
  EXPECT_EQ(NearForeignKeyText("tq"), "") << "a short word is near to too many others";
}

TEST(ForeignKeysTest, CaseAndHyphensDoNotMatter) {
  EXPECT_EQ(ForeignKeyText("training.Learning-Rate"), "; it is called optimizer.lr here");
  EXPECT_EQ(ForeignKeyText("training.stepz"), "");
  EXPECT_EQ(ForeignKeyText(""), "");
}

}  // namespace
}  // namespace troupe
