#include "coordinator/state/namespaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFile[] = R"(
namespaces:
  - name: lab
    members: [submitter/ann, viewer/*]
    quota: {devices: 8, jobs: 4, queued: 2, submissions_per_minute: 6, priority: 0}
    roots: {data: /data/lab, checkpoints: /checkpoints/lab}
  - name: default
)";

Identity CallerOf(Role role, const std::string& name) { return {"cluster", role, name}; }

TEST(NamespacesTest, AFileStatesMembersQuotaAndRoots) {
  const auto namespaces = Namespaces::Parse(kFile, "n.yaml");
  ASSERT_TRUE(namespaces.ok()) << ToString(namespaces.status());
  const v1::Namespace* const lab = (*namespaces)->Find("lab");
  ASSERT_NE(lab, nullptr);
  EXPECT_EQ(lab->quota().devices(), 8);
  EXPECT_EQ(lab->quota().submissions_per_minute(), 6);
  EXPECT_TRUE(lab->quota().has_priority());
  EXPECT_EQ(lab->roots().data(), "/data/lab");
  EXPECT_EQ((*namespaces)->FindOf("lab.a"), lab);
  EXPECT_EQ((*namespaces)->FindOf("a"), (*namespaces)->Find("default"));
  EXPECT_EQ((*namespaces)->Find("other"), nullptr);
}

TEST(NamespacesTest, JsonIsReadToo) {
  EXPECT_TRUE(
      Namespaces::Parse(R"({"namespaces": [{"name": "lab", "members": ["viewer/a"]}]})", "n.json")
          .ok());
}

TEST(NamespacesTest, MembersSeeTheirJobsAndOperatorsSeeAll) {
  const auto parsed = Namespaces::Parse(kFile, "n.yaml");
  ASSERT_TRUE(parsed.ok());
  const Namespaces& namespaces = **parsed;
  struct Case {
    Role role;
    const char* name;
    const char* job;
    bool sees;
  };
  for (const auto& [role, name, job, sees] : std::vector<Case>{
           {Role::kSubmitter, "ann", "lab.a", true},
           {Role::kSubmitter, "ann", "a", false},
           {Role::kSubmitter, "ann", "other.a", false},
           {Role::kSubmitter, "bob", "lab.a", false},
           {Role::kSubmitter, "annette", "lab.a", false},
           {Role::kSubmitter, "*", "lab.a", false},
           {Role::kViewer, "bob", "lab.a", true},
           {Role::kViewer, "bob", "a", false},
           {Role::kOperator, "bob", "lab.a", true},
           {Role::kOperator, "bob", "other.a", true},
           {Role::kWorker, "ann", "lab.a", false},
           {Role::kCoordinator, "ann", "lab.a", false},
       }) {
    const Identity caller = CallerOf(role, name);
    EXPECT_EQ(namespaces.Sees(caller, job), sees) << ToUri(caller) << " " << job;
    EXPECT_EQ(CheckSees(namespaces, caller, job).ok(), sees);
  }
}

TEST(NamespacesTest, ARefusalNamesJobNamespaceAndCallerAndDoesNotDependOnWhatExists) {
  const auto namespaces = Namespaces::Parse(kFile, "n.yaml");
  ASSERT_TRUE(namespaces.ok());
  const Identity bob = CallerOf(Role::kSubmitter, "bob");
  const Status refused = CheckSees(**namespaces, bob, "lab.a");
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(std::string(Message(refused)),
            "job lab.a is in the namespace lab, of which spiffe://cluster/submitter/bob is no "
            "member");
  EXPECT_EQ(std::string(Message(CheckSees(**namespaces, bob, "ghost.a"))),
            "job ghost.a is in the namespace ghost, of which spiffe://cluster/submitter/bob is no "
            "member");
}

TEST(NamespacesTest, ANamespaceThatTheFileDoesNotListDoesNotExist) {
  const auto namespaces = Namespaces::Parse(kFile, "n.yaml");
  ASSERT_TRUE(namespaces.ok());
  EXPECT_TRUE(CheckExists(**namespaces, "lab.a").ok());
  const Status refused = CheckExists(**namespaces, "ghost.a");
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(refused), HasSubstr("name is \"ghost.a\", in the namespace \"ghost\""));
}

TEST(NamespacesTest, EachErrorOfAFileNamesFieldValueAndRelation) {
  const std::string head = "namespaces: [{name: lab, ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "namespaces is required"},
      {"namespaces: []", "namespaces is required"},
      {"[]", "the file is a list, not a mapping of keys"},
      {"namespaces: [{quota: {jobs: 1}}]", "namespaces[0].name is required"},
      {"namespaces: [{name: Lab}]", "namespaces[0].name is \"Lab\", which does not match"},
      {"namespaces: [{name: a.b}]", "namespaces[0].name is \"a.b\", which does not match"},
      {"namespaces: [{name: a}, {name: a}]",
       "namespaces[1].name is \"a\", which another namespace has too"},
      {head + "quota: {devices: 0}}]",
       "namespaces[0].quota.devices is 0; it must be at least 1; leave the key out for no limit"},
      {head + "quota: {jobs: 0}}]", "namespaces[0].quota.jobs is 0; it must be at least 1"},
      {head + "quota: {queued: -1}}]", "namespaces[0].quota.queued is -1; it must be at least 1"},
      {head + "quota: {submissions_per_minute: 0}}]",
       "namespaces[0].quota.submissions_per_minute is 0; it must be at least 1"},
      {head + "quota: {device: 1}}]", "is an unknown key; the nearest known key is"},
      {head + "quota: {devices: many}}]",
       "namespaces[0].quota.devices is many, not a whole number"},
      {head + "members: [admin/ann]}]", "namespaces[0].members[0] is \"admin/ann\""},
      {head + "members: [worker/w]}]", "only viewers and submitters are members"},
      {head + "members: [operator/ann]}]", "only viewers and submitters are members"},
      {head + "members: [ann]}]", "is \"ann\", which has not the form ROLE/NAME"},
      {head + "members: []}]",
       "namespaces[0].members is an empty list; leave the key out (n.yaml:"},
      {"namespaces: [{name: \"a\\0b\"}]",
       "namespaces[0].name is \"a\\u0000b\", which does not match"},
      {head + "members: [viewer/]}]", "namespaces[0].members[0] is \"viewer/\""},
      {head + "members: [viewer/a/b]}]", "namespaces[0].members[0] is \"viewer/a/b\""},
      {head + "members: [viewer/a*]}]", "namespaces[0].members[0] is \"viewer/a*\""},
      {head + "roots: {data: data}}]", "namespaces[0].roots.data is data, not an absolute path"},
      {head + "roots: {data: \"\"}}]",
       "namespaces[0].roots.data is empty; leave the key out for no root"},
      {head + "roots: {imports: /a/../b}}]",
       "namespaces[0].roots.imports is /a/../b, which contains .."},
      {head + "roots: {home: /a}}]", "is an unknown key"},
      {head, "n.yaml:1"},
  };
  for (const auto& [text, error] : cases) {
    const auto namespaces = Namespaces::Parse(text, "n.yaml");
    EXPECT_EQ(namespaces.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(ToString(namespaces.status()), AllOf(HasSubstr(error), HasSubstr("n.yaml")))
        << text;
  }
}

TEST(NamespacesTest, AllErrorsOfAFileAreReported) {
  const auto namespaces =
      Namespaces::Parse("namespaces: [{name: a, quota: {jobs: 0, queued: 0}}]", "n.yaml");
  EXPECT_THAT(ToString(namespaces.status()),
              AllOf(HasSubstr("quota.jobs"), HasSubstr("quota.queued"), Not(HasSubstr("devices"))));
}

}  // namespace
}  // namespace troupe
