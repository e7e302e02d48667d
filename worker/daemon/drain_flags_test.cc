#include "worker/daemon/drain_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

using ::testing::HasSubstr;

Status CheckMetadataUrl(const std::string& url) {
  return CheckDrainFlags({.spot = SpotProvider::kAws, .metadata_url = url});
}

TEST(DrainFlags, AnAddressOfAMetadataServiceMayHaveAPortAndAPath) {
  for (const char* const url :
       {"http://169.254.169.254", "https://metadata.google.internal/", "http://127.0.0.1:8080",
        "http://h:65535/latest:1", "http://[fd00:ec2::254]", "http://[::1]:1/a"}) {
    EXPECT_TRUE(CheckMetadataUrl(url).ok()) << CheckMetadataUrl(url);
  }
}

TEST(DrainFlags, APortThatIsNoneIsRefusedWithFlagAndUrl) {
  for (const char* const url :
       {"http://h:0", "http://h:65536", "https://h:99999/latest", "http://h:text",
        "http://h:", "http://h:80x", "http://h:-1", "http://h: 80", "http://[::1]:0",
        "http://[::1]:text", "http://h:80:0", "http://h:1:80", "http://[::1]x:80"}) {
    const Status checked = CheckMetadataUrl(url);
    EXPECT_EQ(checked.code(), StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(std::string(Message(checked)), HasSubstr("--metadata-url is")) << url;
    EXPECT_THAT(std::string(Message(checked)), HasSubstr(url));
  }
  EXPECT_THAT(std::string(Message(CheckMetadataUrl("http://h:99999"))),
              HasSubstr("its port must be a number from 1 to 65535"));
}

TEST(DrainFlags, AUrlWithoutAHostIsRefused) {
  for (const char* const url :
       {"http://", "http:///latest", "http://:80", "http://?a", "http://[::1", "http://#a"})
    EXPECT_THAT(std::string(Message(CheckMetadataUrl(url))),
                HasSubstr("must be a URL such as http://HOST:PORT"))
        << url;
}

}  // namespace
}  // namespace troupe
