#include "base/host_port.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(HostPortTest, AnAddressHasAHostAndAPort) {
  for (const char* good : {"127.0.0.1:7000", "host.example:65535", "[::1]:1", ":80"}) {
    EXPECT_TRUE(CheckHostPort("--listen", good, 1).ok()) << good;
  }
  for (const char* bad :
       {"", "nonsense", "host", "host:", "host:x", "host:80x", "host:-1", "host:65536", "host:0"}) {
    const Status refused = CheckHostPort("--listen", bad, 1);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(Message(refused),
              fmt::format("--listen {} is not HOST:PORT, with a port from 1 to 65535", bad));
  }
  EXPECT_TRUE(CheckHostPort("--listen", "127.0.0.1:0", 0).ok());
}

}  // namespace
}  // namespace troupe
