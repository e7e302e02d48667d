#include "coordinator/access/open_streams.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

OpenStream OpenStreamOf(const std::string& name, int64_t expires) {
  return {{.identity = Identity{.cluster = "lab", .role = Role::kViewer, .name = name},
           .token_id = "1",
           .expires = expires},
          "/troupe.v1.JobService/WatchJob",
          nullptr};
}

TEST(OpenStreams, TheEarliestExpiryIsNoticed) {
  OpenStreams streams;
  EXPECT_FALSE(streams.HasExpired(1000));
  streams.Add(OpenStreamOf("ann", 20));
  const uint64_t first = streams.Add(OpenStreamOf("bob", 10));
  streams.Add(OpenStreamOf("cid", 10));
  EXPECT_FALSE(streams.HasExpired(9));
  EXPECT_TRUE(streams.HasExpired(10));
  streams.Remove(first);
  EXPECT_TRUE(streams.HasExpired(10));
  streams.Remove(first);  // it is gone
  EXPECT_EQ(streams.size(), 2u);
}

TEST(OpenStreams, ThoseWhoseCallersAreRefusedAreRemoved) {
  OpenStreams streams;
  streams.Add(OpenStreamOf("ann", 20));
  const uint64_t bob = streams.Add(OpenStreamOf("bob", 10));
  const auto check = [](const Caller& caller) {
    return caller.identity->name == "bob" ? Unauthenticated("no") : OkStatus();
  };
  const auto refused = streams.RemoveRefused(check);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].stream.caller.identity->name, "bob");
  EXPECT_EQ(refused[0].reason.code(), StatusCode::kUnauthenticated);
  EXPECT_TRUE(streams.RemoveRefused(check).empty());
  EXPECT_FALSE(streams.HasExpired(19));
  streams.Remove(bob);
  EXPECT_EQ(streams.size(), 1u);
}

}  // namespace
}  // namespace troupe
