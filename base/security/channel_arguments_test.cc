#include "base/security/channel_arguments.h"

#include <grpc/impl/codegen/grpc_types.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace troupe {
namespace {

TEST(ChannelArguments, ResolveALostCoordinatorsNameTwiceASecond) {
  const grpc::ChannelArguments arguments = CoordinatorChannelArguments();
  const grpc_channel_args set = arguments.c_channel_args();
  std::map<std::string, int> values;
  for (size_t i = 0; i < set.num_args; ++i) {
    if (set.args[i].type == GRPC_ARG_INTEGER) values[set.args[i].key] = set.args[i].value.integer;
  }
  EXPECT_EQ(values["grpc.dns_min_time_between_resolutions_ms"], 500);
  EXPECT_EQ(values["grpc.dns_ares_query_timeout"], 5000);
  ASSERT_TRUE(values.contains("grpc.enable_http_proxy"));
  EXPECT_EQ(values["grpc.enable_http_proxy"], 0);
}

}  // namespace
}  // namespace troupe
