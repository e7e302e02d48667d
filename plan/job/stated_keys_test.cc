#include "plan/job/stated_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/job/key_effects.h"
#include "plan/job/key_path.h"
#include "plan/job/key_schema.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

v1::JobSpec JobStating(const std::vector<std::string>& settings) {
  v1::JobSpec spec;
  for (const std::string& setting : settings) {
    const Status status = ApplyOverride(setting, &spec);
    EXPECT_TRUE(status.ok()) << setting << ": " << status;
  }
  return spec;
}

v1::JobSpec WithItsDefaults(v1::JobSpec spec) {
  ApplyDefaults(&spec);
  return spec;
}

using VisitKey = std::function<void(const std::string& path, const FieldDescriptor& field)>;

// Visits the single keys, without those of the model, which a resumed job keeps.
void ForEachSingleKey(const google::protobuf::Descriptor& message, const std::string& prefix,
                      const VisitKey& visit) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string path = prefix + field.name();
    if (field.is_repeated() || path == "model") continue;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ForEachSingleKey(*field.message_type(), path + ".", visit);
    } else {
      visit(path, field);
    }
  }
}

std::vector<std::string> ValuesToTry(const FieldDescriptor& field) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return {"true", "false"};
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    std::vector<std::string> words = WordsOf(field);
    words.insert(words.end(), {"ZBV", "auto", "false"});
    return words;
  }
  return {"0", "1", "2"};
}

// A key that is added to the schema with such a default fails here until it is listed.
TEST(StatedKeysTest, EveryKeyWhoseDefaultFollowsFromOtherKeysIsListed) {
  std::set<std::string> followed;
  for (const v1::JobSpec& job :
       {JobStating({}), JobStating({"parallelism.data_parallel_shard_degree=2"}),
        JobStating({"training.mixed_precision={reduce: float32}"}),
        JobStating({"lr_schedule.decay_type=linear"})}) {
    const v1::JobSpec before = WithItsDefaults(job);
    const auto compare = [&](const std::string& changed, const v1::JobSpec& after) {
      ForEachSingleKey(*v1::JobSpec::descriptor(), "",
                       [&](const std::string& path, const FieldDescriptor&) {
                         if (path == changed || HasKey(job, path)) return;
                         if (KeyText(before, path) != KeyText(after, path)) followed.insert(path);
                       });
    };
    ForEachSingleKey(*v1::JobSpec::descriptor(), "",
                     [&](const std::string& path, const FieldDescriptor& field) {
                       // An absent mapping is no default of its keys.
                       const std::string mapping = path.substr(0, path.rfind('.'));
                       if (mapping != path && !HasKey(before, mapping)) return;
                       for (const std::string& value : ValuesToTry(field)) {
                         v1::JobSpec with = job;
                         if (!ApplyOverride(path + "=" + value, &with).ok()) continue;
                         compare(path, WithItsDefaults(with));
                       }
                     });
  }
  const std::set<std::string> derived(DerivedKeys().begin(), DerivedKeys().end());
  for (const ConditionalKey& key : ConditionalKeys()) {
    const std::string path(key.path);
    if (key.drops_default && !derived.contains(path)) followed.erase(path);
  }
  EXPECT_THAT(followed, UnorderedElementsAreArray(derived));
}

TEST(StatedKeysTest, EachKeyIsAddedOnceAndOnlyIfItIsStated) {
  v1::StatedKeys keys;
  AddStatedKeys(
      JobStating({"training.steps=5", "lr_schedule={decay_type: cosine, decay_steps: 5}"}), &keys);
  AddStatedKeys(JobStating({"lr_schedule.decay_steps=6", "lr_schedule.decay_ratio=0.5"}), &keys);
  EXPECT_THAT(keys.paths(), ElementsAre("lr_schedule.decay_steps", "lr_schedule.decay_ratio"));
}

TEST(StatedKeysTest, OnlyDefaultsAreClearedOrDropped) {
  const v1::JobSpec stated =
      JobStating({"parallelism={data_parallel_shard_degree: 2, zero_stage: 2}",
                  "lr_schedule={decay_type: wsd, decay_ratio: 0.5}"});
  v1::StatedKeys keys;
  AddStatedKeys(stated, &keys);
  v1::JobSpec spec = WithItsDefaults(stated);
  ASSERT_TRUE(spec.lr_schedule().has_decay_steps());
  ClearDerivedDefaults(keys, &spec);
  EXPECT_EQ(spec.parallelism().zero_stage(), 2);
  EXPECT_FALSE(spec.lr_schedule().has_decay_steps());
  EXPECT_FALSE(spec.parallelism().has_pipeline_parallel_chunks());
  ApplyDefaults(&spec);
  spec.mutable_lr_schedule()->set_decay_type("constant");
  DropDefaults(keys, &spec);
  EXPECT_EQ(spec.lr_schedule().decay_ratio(), 0.5);
  EXPECT_FALSE(spec.lr_schedule().has_decay_steps());
}

}  // namespace
}  // namespace troupe
