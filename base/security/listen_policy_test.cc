#include "base/security/listen_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(ListenPolicy, LoopbackHostsAreKnownByTheirAddress) {
  for (const char* host : {"localhost", "127.0.0.1", "127.0.0.2", "127.255.255.255", "::1", "[::1]",
                           "0:0:0:0:0:0:0:1"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
  for (const char* host : {"", "0.0.0.0", "::", "[::]", "[]", "128.0.0.1", "10.0.0.1",
                           "127.example.org", "127.0.0.1.example.org", "localhost.example.org",
                           "Localhost2", "::2", "::ffff:10.0.0.1", "node-1", "1", "[127.0.0.1"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
}

TEST(ListenPolicy, HostsThatAreAllAddressesAreKnown) {
  for (const char* host : {"", "0.0.0.0", "::", "[::]", "0:0:0:0:0:0:0:0"}) {
    EXPECT_TRUE(IsAnyHost(host)) << host;
  }
  for (const char* host :
       {"127.0.0.1", "::1", "[::1]", "10.0.0.0", "node-1", "0.0.0.0.example.org"})
    EXPECT_FALSE(IsAnyHost(host)) << host;
}

TEST(ListenPolicy, WithoutTlsOnlyTheLoopbackIsListenedOn) {
  for (const char* address : {"127.0.0.1:7070", "localhost:0", "[::1]:7070"}) {
    EXPECT_TRUE(CheckListen("--listen", address, false, false).ok()) << address;
  }
  for (const char* address : {"0.0.0.0:7070", "[::]:7070", ":7070", "10.1.2.3:1", "node-1:7070"}) {
    EXPECT_TRUE(CheckListen("--listen", address, true, false).ok()) << address;
    EXPECT_TRUE(CheckListen("--listen", address, false, true).ok()) << address;
    const Status status = CheckListen("--listen", address, false, false);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << address;
    for (const std::string& word : {std::string("--listen ") + address, std::string("TLS"),
                                    std::string("--tls-dir"), std::string("--insecure")}) {
      EXPECT_THAT(std::string(Message(status)), HasSubstr(word));
    }
  }
}

}  // namespace
}  // namespace troupe
