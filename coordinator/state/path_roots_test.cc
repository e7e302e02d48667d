#include "coordinator/state/path_roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "coordinator/test_paths.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::Namespace ConfinedSpace() {
  v1::Namespace space;
  space.set_name("lab");
  space.mutable_roots()->set_data("/data/lab");
  space.mutable_roots()->set_checkpoints("/checkpoints/lab/");
  space.mutable_roots()->set_imports("/imports/lab");
  return space;
}

std::string RootOf(const PathKey& key) {
  const v1::PathRoots roots = ConfinedSpace().roots();
  const auto* const field = v1::PathRoots::descriptor()->FindFieldByName(key.root);
  return field == nullptr ? "" : roots.GetReflection()->GetString(roots, field);
}

Status CheckedWith(const PathKey& key, const std::string& path) {
  v1::JobSpec spec;
  key.Set(path, &spec);
  return CheckPaths(spec, ConfinedSpace());
}

TEST(PathRoots, EveryPathOfAJobHasARoot) {
  const std::vector<PathKey> keys = PathKeys();
  EXPECT_GE(keys.size(), 6u);
  for (const PathKey& key : keys) EXPECT_NE(RootOf(key), "") << key.name;
}

TEST(PathRoots, EveryPathOfAJobIsConfinedToItsRoot) {
  for (const PathKey& key : PathKeys()) {
    const std::string root = RootOf(key);
    for (const std::string& path :
         {root + "/a", root + "/a/b", root + "//a/./b", root + "/a..b", std::string()}) {
      EXPECT_TRUE(CheckedWith(key, path).ok()) << key.name << " " << path;
    }
    for (const std::string& path :
         {std::string("a"), std::string("./a"), std::string("../a"), std::string("/elsewhere/a"),
          std::string("/"), root + "/../a", root + "/a/..", root + "/a/../b",
          root.substr(0, 6) + "/other/a", "/elsewhere" + root,
          root + "/a" + std::string(1, '\0')}) {
      const Status refused = CheckedWith(key, path);
      EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << key.name << " " << path;
      const std::vector<Violation> violations = ViolationsOf(refused);
      ASSERT_EQ(violations.size(), 1u) << key.name << " " << path;
      EXPECT_EQ(violations[0].field, key.name);
      EXPECT_THAT(violations[0].description, HasSubstr("beneath " + root)) << path;
    }
  }
}

TEST(PathRoots, ASiblingWithTheSameBeginIsNotBeneath) {
  v1::JobSpec spec;
  spec.mutable_checkpoint()->set_folder("/checkpoints/laboratory");
  EXPECT_FALSE(CheckPaths(spec, ConfinedSpace()).ok());
  spec.mutable_checkpoint()->set_folder("/checkpoints/lab");
  EXPECT_TRUE(CheckPaths(spec, ConfinedSpace()).ok());
}

// The files /data/lab.bin and /data/lab.idx are not beneath /data/lab.
TEST(PathRoots, TheRootItselfIsNoDataset) {
  v1::JobSpec spec;
  for (const char* prefix : {"/data/lab", "/data/lab/", "/data/lab/."}) {
    spec.mutable_data()->set_train(prefix);
    EXPECT_FALSE(CheckPaths(spec, ConfinedSpace()).ok()) << prefix;
  }
}

TEST(PathRoots, AllErrorsAreReported) {
  v1::JobSpec spec;
  spec.mutable_data()->set_train("/a");
  spec.mutable_checkpoint()->set_folder("/b");
  EXPECT_THAT(ToString(CheckPaths(spec, ConfinedSpace())),
              AllOf(HasSubstr("data.train is /a, not beneath /data/lab, the root roots.data of the "
                              "namespace lab"),
                    HasSubstr("checkpoint.folder is /b")));
}

TEST(PathRoots, AKindWithoutARootIsNotConfined) {
  v1::Namespace space = ConfinedSpace();
  space.mutable_roots()->clear_data();
  v1::JobSpec spec;
  spec.mutable_data()->set_train("/anywhere");
  EXPECT_TRUE(CheckPaths(spec, space).ok());
  spec.mutable_model()->set_from("/anywhere");
  EXPECT_FALSE(CheckPaths(spec, space).ok());
}

TEST(PathRoots, CheckpointsOfARebuiltJobAreConfined) {
  v1::RebuildJobRequest request;
  request.add_checkpoints()->set_path("/checkpoints/lab/a/step-1");
  EXPECT_TRUE(CheckPaths(request, ConfinedSpace()).ok());
  request.add_checkpoints()->set_path("/checkpoints/other/a/step-1");
  EXPECT_THAT(ToString(CheckPaths(request, ConfinedSpace())),
              HasSubstr("checkpoints[1].path is /checkpoints/other/a/step-1"));
}

}  // namespace
}  // namespace troupe
