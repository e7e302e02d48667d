#include "base/failpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/check.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class Failpoint : public ::testing::Test {
 protected:
  ~Failpoint() override { TROUPE_CHECK_OK(ArmFailpoints("")); }
};

// Runs `body` in a child process and returns whether SIGKILL ended it.
template <typename Body>
bool DiesByKill(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

TEST_F(Failpoint, PassesWhereUnarmed) {
  EXPECT_TRUE(HitFailpoint("step.begin").ok());
  ASSERT_TRUE(ArmFailpoints("step.after_update=error").ok());
  EXPECT_TRUE(HitFailpoint("step.begin").ok());
}

TEST_F(Failpoint, ReturnsAnErrorAtEveryHitOrAtTheNamedOne) {
  ASSERT_TRUE(ArmFailpoints("step.begin=error;step.after_update=error@2").ok());
  EXPECT_FALSE(HitFailpoint("step.begin").ok());
  EXPECT_FALSE(HitFailpoint("step.begin").ok());
  EXPECT_TRUE(HitFailpoint("step.after_update").ok());
  EXPECT_FALSE(HitFailpoint("step.after_update").ok());
  EXPECT_TRUE(HitFailpoint("step.after_update").ok());
}

TEST_F(Failpoint, KillsTheProcessAtTheNamedHit) {
  ASSERT_TRUE(ArmFailpoints("step.begin=kill@3").ok());
  const auto hit = [](int times) {
    for (int i = 0; i < times; ++i) TROUPE_CHECK_OK(HitFailpoint("step.begin"));
  };
  EXPECT_FALSE(DiesByKill([&] { hit(2); }));
  EXPECT_TRUE(DiesByKill([&] { hit(3); }));
}

TEST_F(Failpoint, KillsOneOfTheProcessesThatShareAOnceDirectory) {
  TemporaryDirectory folder;
  ASSERT_TRUE(ArmFailpoints("step.begin=kill", folder.path()).ok());
  const auto hit = [] { TROUPE_CHECK_OK(HitFailpoint("step.begin")); };
  EXPECT_TRUE(DiesByKill(hit));
  EXPECT_FALSE(DiesByKill(hit));
}

TEST_F(Failpoint, OfTheEnvironmentAreRefusedUnlessTheFlagPermitsThem) {
  ASSERT_EQ(setenv("TROUPE_FAILPOINTS", "step.begin=error", 1), 0);
  const Status refused = ArmFailpointsFromEnvironment(/*allowed=*/false);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("--allow-failpoints"));
  EXPECT_FALSE(AnyFailpointArmed());
  EXPECT_TRUE(ArmFailpointsFromEnvironment(/*allowed=*/true).ok());
  EXPECT_TRUE(AnyFailpointArmed());
  ASSERT_EQ(setenv("TROUPE_FAILPOINTS", "", 1), 0);
  EXPECT_TRUE(ArmFailpointsFromEnvironment(/*allowed=*/false).ok());
  EXPECT_FALSE(AnyFailpointArmed());
  unsetenv("TROUPE_FAILPOINTS");
}

TEST_F(Failpoint, OfTheEnvironmentAreTextsThatMayBeNamesAndPaths) {
  ASSERT_EQ(setenv("TROUPE_FAILPOINTS", "step.begin=error;\x1b[2J", 1), 0);
  EXPECT_THAT(std::string(Message(ArmFailpointsFromEnvironment(/*allowed=*/false))),
              HasSubstr("TROUPE_FAILPOINTS: \"step.begin=error;\\u001b[2J\" has the control"));
  ASSERT_EQ(setenv("TROUPE_FAILPOINTS", "step.begin=error", 1), 0);
  ASSERT_EQ(setenv("TROUPE_FAILPOINTS_ONCE_DIR", "/caf\xe9", 1), 0);
  EXPECT_THAT(std::string(Message(ArmFailpointsFromEnvironment(/*allowed=*/true))),
              HasSubstr("TROUPE_FAILPOINTS_ONCE_DIR: \"/caf\\xe9\" is not UTF-8"));
  EXPECT_FALSE(AnyFailpointArmed());
  unsetenv("TROUPE_FAILPOINTS");
  unsetenv("TROUPE_FAILPOINTS_ONCE_DIR");
}

TEST_F(Failpoint, RefusesUnknownNamesAndActionsAndArmsNothing) {
  EXPECT_THAT(std::string(Message(ArmFailpoints("step.bgin=kill"))),
              HasSubstr("unknown name \"step.bgin\"; there are: checkpoint.snapshot"));
  for (const char* text : {"step.begin", "step.begin=explode", "step.begin=kill@0",
                           "step.begin=delay:x", "step.begin=kill;step.begin=error"}) {
    EXPECT_EQ(ArmFailpoints(text).code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(HitFailpoint("step.begin").ok());
}

}  // namespace
}  // namespace troupe
