#include "cli/cluster/process_folder.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <string>

namespace troupe {
namespace {

std::string CommandLineOf(std::initializer_list<std::string> arguments) {
  std::string text;
  for (const std::string& argument : arguments) text += argument + '\0';
  return text;
}

TEST(ProcessFolderTest, ASupervisorIsKnownByItsArguments) {
  EXPECT_EQ(SupervisedFolder(CommandLineOf({"/bin/troupe", "supervise", "--data-dir", "/a b"})),
            "/a b");
  EXPECT_EQ(SupervisedFolder(CommandLineOf({"troupe", "supervise", "--data-dir", "/a"})), "/a");
  EXPECT_EQ(SupervisedFolder(
                CommandLineOf({"troupe", "supervise", "--data-dir", "/a", "--allow-failpoints"})),
            "/a");
  for (const std::string& other : {std::string(), std::string("troupe supervise --data-dir /a"),
                                   CommandLineOf({"vim", "supervise", "--data-dir", "/a"}),
                                   CommandLineOf({"/bin/troupe", "up", "--data-dir", "/a"}),
                                   CommandLineOf({"troupe", "supervise", "--data-dir", "/a", "b"}),
                                   CommandLineOf({"/bin/troupe", "supervise", "--data-dir"})}) {
    EXPECT_EQ(SupervisedFolder(other), std::nullopt) << other;
  }
}

TEST(ProcessFolderTest, ACoordinatorOfALocalClusterIsKnownByItsDataDirectory) {
  EXPECT_EQ(
      CoordinatedFolder(CommandLineOf({"/bin/troupe-coordinator", "--listen", "127.0.0.1:7",
                                       "--data-dir", "/a b/coordinator", "--log-files", "4"})),
      "/a b");
  for (const std::string& other :
       {std::string(), CommandLineOf({"troupe-coordinator", "--data-dir", "/a"}),
        CommandLineOf({"troupe-coordinator", "--data-dir"}),
        CommandLineOf({"vim", "--data-dir", "/a/coordinator"})}) {
    EXPECT_EQ(CoordinatedFolder(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace troupe
