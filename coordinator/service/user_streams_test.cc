#include "coordinator/service/user_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(UserStreams, TheStreamsOfEachUserAreLimited) {
  UserStreams streams(2);
  std::vector<StatusOr<StreamTicket>> open;
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

TEST(UserStreams, AnUnknownUserIsNotLimited) {
  UserStreams streams(1);
  const auto first = streams.Add("");
  const auto second = streams.Add("");
  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(second.ok());
}

TEST(UserStreams, ATicketMayOutliveTheCounts) {
  StreamTicket ticket;
  {
    UserStreams streams(1);
    ticket = *streams.Add("ann");
  }
  ticket.reset();
}

}  // namespace
}  // namespace troupe
