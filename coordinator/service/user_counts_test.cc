#include "coordinator/service/user_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

UserLimit LimitOf(int most) {
  return {.most = most, .kind = "open streams", .flag = "--most-user-streams"};
}

TEST(UserCounts, WhatEachUserHasIsLimited) {
  const UserCounts streams(LimitOf(2));
  std::vector<StatusOr<UserTicket>> open;
  for (const char* user : {"ann", "ann", "bob", "bob"}) {
    open.push_back(streams.Add(user));
    EXPECT_TRUE(open.back().ok()) << user;
  }
  const auto refused = streams.Add("ann");
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(ToString(refused.status()),
              AllOf(HasSubstr("ann has 2 open streams"), HasSubstr("a user is 2"),
                    HasSubstr("--most-user-streams")));
  open.erase(open.begin());
  EXPECT_TRUE(streams.Add("ann").ok());
  EXPECT_TRUE(streams.Add("ann").ok()) << "the former ticket ended at once";
}

TEST(UserCounts, ALimitThatNoFlagSetsNamesNone) {
  const UserCounts sessions({.most = 1, .kind = "open sessions", .flag = ""});
  const auto open = sessions.Add("w");
  EXPECT_EQ(Message(sessions.Add("w").status()),
            "w has 1 open sessions, and the limit of a user is 1");
}

TEST(UserCounts, AnUnknownUserIsNotLimited) {
  const UserCounts streams(LimitOf(1));
  const auto first = streams.Add("");
  const auto second = streams.Add("");
  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(second.ok());
}

TEST(UserCounts, ATicketMayOutliveTheCounts) {
  UserTicket ticket;
  {
    const UserCounts streams(LimitOf(1));
    ticket = *streams.Add("ann");
  }
  ticket.reset();
}

}  // namespace
}  // namespace troupe
