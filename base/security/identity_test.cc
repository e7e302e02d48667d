#include "base/security/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(Identity, TheUriOfEachRoleIsParsedToTheSameIdentity) {
  for (const RoleEntry& entry : kRoles) {
    const Identity identity{"lab.example_1-a", entry.role, "worker-0"};
    const std::string uri = ToUri(identity);
    EXPECT_EQ(uri, "spiffe://lab.example_1-a/" + std::string(entry.name) + "/worker-0");
    const auto parsed = ParseIdentity(uri);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, identity);
    EXPECT_EQ(RoleName(entry.role), entry.name);
    EXPECT_EQ(*ParseRole(entry.name), entry.role);
  }
}

TEST(Identity, RolesAreListedInTheOrderOfTheirNumbers) {
  for (size_t i = 0; i < kRoles.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(kRoles[i].role), i);
  }
}

TEST(Identity, AnUnknownRoleIsRefusedWithTheListOfRoles) {
  const auto role = ParseRole("root");
  EXPECT_EQ(role.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(role.status()),
            "\"root\" is not a role: the roles are viewer, submitter, operator, worker, "
            "coordinator");
  EXPECT_FALSE(ParseRole("").ok());
  EXPECT_FALSE(ParseRole("Viewer").ok());
}

TEST(Identity, OtherUrisAreRefusedWithTheReason) {
  const std::string longest(63, 'n');
  EXPECT_TRUE(ParseIdentity("spiffe://lab/viewer/" + longest).ok());
  const struct {
    std::string uri, reason;
  } kCases[] = {
      {"", "does not begin with spiffe://"},
      {"https://lab/viewer/ann", "does not begin with spiffe://"},
      {"SPIFFE://lab/viewer/ann", "does not begin with spiffe://"},
      {"spiffe://", "does not have three parts"},
      {"spiffe://lab", "does not have three parts"},
      {"spiffe://lab/viewer", "does not have three parts"},
      {"spiffe:///viewer/ann", "CLUSTER is \"\""},
      {"spiffe://lab/viewer/", "NAME is \"\""},
      {"spiffe://lab/viewer/ann/more", "NAME is \"ann/more\""},
      {"spiffe://lab/viewer/ann?x", "NAME is \"ann?x\""},
      {"spiffe://lab:80/viewer/ann", "CLUSTER is \"lab:80\""},
      {"spiffe://lab/viewer/a n", "NAME is \"a n\""},
      {"spiffe://lab/viewer/%61", "NAME is \"%61\""},
      {std::string("spiffe://lab/viewer/ann\0b", 25), "NAME is"},
      {"spiffe://lab/viewer/ann\n", "NAME is"},
      {"spiffe://lab/viewer/änn", "NAME is"},
      {"spiffe://lab/viewer/n" + longest, "1 to 63"},
      {"spiffe://lab/viewer/..", "NAME is \"..\", which is a path"},
      {"spiffe://./viewer/ann", "CLUSTER is \".\", which is a path"},
      {"spiffe://lab/admin/ann", "\"admin\" is not a role"},
      {"spiffe://lab//ann", "\"\" is not a role"},
  };
  for (const auto& [uri, reason] : kCases) {
    const auto identity = ParseIdentity(uri);
    EXPECT_EQ(identity.status().code(), StatusCode::kInvalidArgument) << uri;
    EXPECT_THAT(std::string(Message(identity.status())), HasSubstr(reason)) << uri;
  }
}

TEST(Identity, ACertificateHasExactlyOne) {
  EXPECT_EQ(ParseSoleIdentity(std::vector<std::string>{"spiffe://lab/worker/w"})->role,
            Role::kWorker);
  EXPECT_THAT(std::string(Message(ParseSoleIdentity({}).status())), HasSubstr("has no identity"));
  const std::vector<std::string> two = {"spiffe://lab/worker/w", "spiffe://lab/operator/o"};
  EXPECT_THAT(std::string(Message(ParseSoleIdentity(two).status())),
              HasSubstr("has 2 identities and may have one: spiffe://lab/worker/w, spiffe://lab/"
                        "operator/o"));
  // A second URI counts even if it is no identity.
  const std::vector<std::string> other = {"spiffe://lab/worker/w", "https://example.org"};
  EXPECT_FALSE(ParseSoleIdentity(other).ok());
}

}  // namespace
}  // namespace troupe
