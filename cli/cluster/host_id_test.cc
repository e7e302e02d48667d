#include "cli/cluster/host_id.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(HostIdTest, AnotherHostIsElsewhere) {
  EXPECT_TRUE(IsElsewhere({"a", "1"}, {"b", "2"}));
  EXPECT_TRUE(IsElsewhere({"a", ""}, {"b", ""}));
  EXPECT_TRUE(IsElsewhere({"a", ""}, {"b", "2"}));
  EXPECT_TRUE(IsElsewhere({"a", "1"}, {"b", ""}));
}

TEST(HostIdTest, AHostThatWasStartedAgainAndAContainerAreNot) {
  EXPECT_FALSE(IsElsewhere({"a", "1"}, {"a", "1"}));
  EXPECT_FALSE(IsElsewhere({"a", "1"}, {"a", "2"}));
  EXPECT_FALSE(IsElsewhere({"a", "1"}, {"b", "1"}));
  EXPECT_FALSE(IsElsewhere({}, {"b", "2"})) << "files of earlier versions state no host";
}

TEST(HostIdTest, ANameIsAPartOfAFileName) {
  EXPECT_EQ(PlainHostName("node-7.lab_2.example"), "node-7.lab_2.example");
  EXPECT_EQ(PlainHostName("a/b c\x1b\xe9"), "a_b_c__");
}

TEST(HostIdTest, ThisHostHasANameAndStaysTheSame) {
  const HostId first = ThisHost(), second = ThisHost();
  EXPECT_FALSE(first.name.empty());
  EXPECT_EQ(first.name, PlainHostName(first.name));
  EXPECT_EQ(first.name, second.name);
  EXPECT_EQ(first.boot_id.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace troupe
