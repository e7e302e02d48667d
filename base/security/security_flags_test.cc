#include "base/security/security_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <vector>

#include "base/security/test_certificates.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class SecurityFlagsTest : public ::testing::Test {
 protected:
  // Parses and checks the arguments of a worker with these addresses.
  static StatusOr<std::optional<TlsFiles>> Parse(const std::vector<std::string>& arguments,
                                                 const std::vector<FlagAddress>& addresses) {
    FlagParser parser({.name = "worker"});
    SecurityFlags flags;
    AddSecurityFlags(parser, Role::kWorker, &flags);
    TROUPE_RETURN_IF_ERROR(parser.Parse(arguments));
    return CheckSecurityFlags(flags, Role::kWorker, addresses, std::time(nullptr));
  }

  static void ExpectRefused(const std::vector<std::string>& arguments,
                            const std::vector<FlagAddress>& addresses, const std::string& text) {
    const auto parsed = Parse(arguments, addresses);
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(ToString(parsed.status()), HasSubstr(text));
  }

  // Makes the TLS directory of a holder with this role.
  std::string TlsDirectoryOf(Role role) const {
    std::string directory = directory_.Child(std::string(RoleName(role)));
    WriteTlsDirectory(directory, authority_.pem(), authority_.Issue(role, "worker-0"));
    return directory;
  }

  const TemporaryDirectory directory_;
  const TestAuthority authority_;
};

TEST_F(SecurityFlagsTest, WithoutFlagsOnlyTheLoopbackIsPermitted) {
  const auto parsed = Parse({}, {{"--coordinator", "127.0.0.1:7"}, {"--metrics-listen", ""}});
  ASSERT_TRUE(parsed.ok()) << ToString(parsed.status());
  EXPECT_FALSE(parsed->has_value());
  const std::vector<FlagAddress> addresses = {{"--coordinator", "127.0.0.1:7"},
                                              {"--metrics-listen", "0.0.0.0:8"}};
  for (const char* named : {"--metrics-listen 0.0.0.0:8", "TLS", "--tls-dir", "--insecure"})
    ExpectRefused({}, addresses, named);
}

TEST_F(SecurityFlagsTest, InsecurePermitsEveryAddress) {
  const auto parsed = Parse({"--insecure"}, {{"--coordinator", "host:7"}});
  ASSERT_TRUE(parsed.ok()) << ToString(parsed.status());
  EXPECT_FALSE(parsed->has_value());
}

TEST_F(SecurityFlagsTest, ATlsDirectoryOfTheRoleIsReadAndPermitsEveryAddress) {
  const auto parsed =
      Parse({"--tls-dir", TlsDirectoryOf(Role::kWorker)}, {{"--coordinator", "host:7"}});
  ASSERT_TRUE(parsed.ok()) << ToString(parsed.status());
  ASSERT_TRUE(parsed->has_value());
  EXPECT_EQ(ToUri((*parsed)->identity), "spiffe://lab/worker/worker-0");
}

TEST_F(SecurityFlagsTest, AnUnusableTlsDirectoryIsRefusedByName) {
  ExpectRefused({"--tls-dir="}, {}, "--tls-dir is empty");
  ExpectRefused({"--tls-dir", directory_.Child("absent")}, {}, "absent/ca.pem");
  ExpectRefused({"--tls-dir", TlsDirectoryOf(Role::kOperator)}, {},
                "spiffe://lab/operator/worker-0, not of a worker");
}

TEST_F(SecurityFlagsTest, TlsAndInsecureExcludeEachOther) {
  ExpectRefused({"--tls-dir", TlsDirectoryOf(Role::kWorker), "--insecure"}, {},
                "exclude each other");
}

}  // namespace
}  // namespace troupe
