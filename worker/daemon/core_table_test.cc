#include "worker/daemon/core_table.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

v1::CoreClaims ClaimsOf(const std::string& job) {
  v1::CoreClaims claims;
  claims.add_allowed(0);
  claims.add_claims()->set_job(job);
  return claims;
}

std::vector<std::string> Jobs(CoreTable& table) {
  const auto others = table.Others();
  EXPECT_TRUE(others.ok()) << ToString(others.status());
  std::vector<std::string> jobs;
  for (const v1::CoreClaims& claims : *others) {
    for (const v1::CoreClaim& claim : claims.claims()) jobs.push_back(claim.job());
  }
  return jobs;
}

using Names = std::vector<std::string>;

TEST(CoreTableTest, EachDaemonSeesWhatTheOthersClaimNowAndNothingOfItsOwn) {
  const TemporaryDirectory folder;
  const std::string path = folder.Child("cores");
  const auto first = CoreTable::Open(path);
  ASSERT_TRUE(first.ok()) << ToString(first.status());
  ASSERT_TRUE((*first)->Publish(ClaimsOf("a")).ok());
  EXPECT_EQ(Jobs(**first), Names{});
  {
    const auto second = CoreTable::Open(path);
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(Jobs(**second), Names{"a"});
    ASSERT_TRUE((*second)->Publish(ClaimsOf("b")).ok());
    EXPECT_EQ(Jobs(**first), Names{"b"});
    ASSERT_TRUE((*second)->Publish(ClaimsOf("c")).ok());
    EXPECT_EQ(Jobs(**first), Names{"c"});
  }
  EXPECT_EQ(Jobs(**first), Names{});
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 01777u);
}

TEST(CoreTableTest, ADaemonThatIsKilledClaimsNothingAndLeavesNothingBehind) {
  const TemporaryDirectory folder;
  const std::string path = folder.Child("cores");
  const auto table = CoreTable::Open(path);
  ASSERT_TRUE(table.ok());
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto other = CoreTable::Open(path);
    const bool published = other.ok() && (*other)->Publish(ClaimsOf("b")).ok();
    (void)!write(ready[1], published ? "y" : "n", 1);
    while (true) pause();
  }
  char published = 'n';
  ASSERT_EQ(read(ready[0], &published, 1), 1);
  EXPECT_EQ(published, 'y');
  EXPECT_EQ(Jobs(**table), Names{"b"});
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(Jobs(**table), Names{});
  const auto left = std::distance(std::filesystem::directory_iterator(path),
                                  std::filesystem::directory_iterator());
  EXPECT_EQ(left, 2) << "this daemon's own two files";
  close(ready[0]);
  close(ready[1]);
}

TEST(CoreTableTest, ADirectoryThatCannotBeMadeIsNamed) {
  const auto table = CoreTable::Open("/proc/no-such-place");
  EXPECT_FALSE(table.ok());
  EXPECT_NE(ToString(table.status()).find("/proc/no-such-place"), std::string::npos);
}

}  // namespace
}  // namespace troupe
