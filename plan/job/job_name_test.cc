#include "plan/job/job_name.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

TEST(JobNameTest, HasTwoForms) {
  EXPECT_EQ(JobName("x"), "jobs/x");
  EXPECT_EQ(JobName("jobs/x"), "jobs/x");
  EXPECT_EQ(JobId("jobs/x"), "x");
  EXPECT_EQ(JobId("x"), "x");
}

TEST(JobNameTest, AnIdIsANameOrTwoWithADotBetween) {
  const std::string longest = "a" + std::string(62, '-') + "b";
  for (const std::string& id : {std::string("a"), std::string("run-1"), std::string("lab.run-1"),
                                longest, longest + "." + longest}) {
    EXPECT_TRUE(IsJobId(id)) << id;
  }
  for (const std::string& id :
       {std::string(), std::string("."), std::string("a."), std::string(".a"), std::string("a..b"),
        std::string("a.b.c"), std::string("-a.b"), std::string("a.-b"), std::string("A.b"),
        std::string("a/b"), std::string("a.b\0", 4), longest + "c", "a." + longest + "c"}) {
    EXPECT_FALSE(IsJobId(id)) << id;
  }
}

TEST(JobNameTest, TheNamespaceIsThePartBeforeTheDot) {
  EXPECT_EQ(NamespaceOf("lab.run1"), "lab");
  EXPECT_EQ(NamespaceOf("run1"), "default");
  EXPECT_EQ(NamespaceOf(""), "default");
  EXPECT_EQ(NamespaceOf(".run1"), "");
}

}  // namespace
}  // namespace troupe
