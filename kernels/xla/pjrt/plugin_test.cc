#include "kernels/xla/pjrt/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_directory.h"
#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {
namespace {

using testing::AllOf;
using testing::HasSubstr;

PJRT_Api ApiOf(int major, int minor) {
  return {.struct_size = PJRT_Api_STRUCT_SIZE,
          .pjrt_api_version = {.struct_size = PJRT_Api_Version_STRUCT_SIZE,
                               .major_version = major,
                               .minor_version = minor}};
}

TEST(Plugin, HasTheVersionOfTheHeaderOrALaterOne) {
  EXPECT_EQ(CheckApi(ApiOf(0, 81)), OkStatus());
  EXPECT_EQ(CheckApi(ApiOf(0, 117)), OkStatus());
  EXPECT_EQ(ToString(CheckApi(ApiOf(0, 80))),
            "FAILED_PRECONDITION: its PJRT API is 0.80; 0.81 or a later version with the same "
            "major number is required");
  EXPECT_EQ(CheckApi(ApiOf(1, 81)).code(), StatusCode::kFailedPrecondition);
  PJRT_Api small = ApiOf(0, 81);
  small.struct_size -= sizeof(void*);
  EXPECT_THAT(ToString(CheckApi(small)), HasSubstr("its table of functions has "));
}

// Returns the error of making a client of the plugin at `path`.
Status ErrorOf(const std::string& path) { return Client::Make(path, 0).status(); }

TEST(Plugin, IsAFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.Child("libtpu.so");
  EXPECT_EQ(ErrorOf(path), NotFound("the plugin of XLA {} does not exist", path));
  const Status folder = ErrorOf(directory.path());
  EXPECT_EQ(folder.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(ToString(folder), HasSubstr(directory.path() + " is no plugin of XLA that can be "));
}

TEST(Plugin, IsALibrary) {
  const TemporaryDirectory directory;
  const std::string path = directory.Child("libtpu.so");
  std::ofstream(path) << "no library";
  const Status status = ErrorOf(path);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(ToString(status),
              AllOf(HasSubstr(path + " is no plugin of XLA that can be used: the library cannot be "
                                     "loaded: "),
                    HasSubstr("file too short")));
}

TEST(Plugin, IsAWholeFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.Child("libtpu.so");
  std::filesystem::copy_file(TROUPE_IDLE_PLUGIN, path);
  const uintmax_t whole = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, whole / 2);
  EXPECT_THAT(
      ToString(ErrorOf(path)),
      HasSubstr(fmt::format("{} is no plugin of XLA that can be used: the file is truncated: "
                            "it has {} bytes, and its ELF header describes at least ",
                            path, whole / 2)));
}

TEST(Plugin, HasTheFunctionOfPlugins) {
  EXPECT_EQ(ErrorOf(TROUPE_NO_PLUGIN),
            FailedPrecondition("{} is no plugin of XLA that can be used: function GetPjrtApi is "
                               "missing",
                               TROUPE_NO_PLUGIN));
}

TEST(Plugin, IsNotOlderThanTheHeader) {
  EXPECT_EQ(ErrorOf(TROUPE_OLD_PLUGIN),
            FailedPrecondition("{} is no plugin of XLA that can be used: its PJRT API is 0.80; "
                               "0.81 or a later version with the same major number is required",
                               TROUPE_OLD_PLUGIN));
}

void OnAbort(int /*signal*/) {}
void OnTerminate(int /*signal*/) {}

TEST(Plugin, HandlesOnlySignalsThatTheProcessLeavesToIt) {
  const auto former_abort = signal(SIGABRT, OnAbort);
  const auto former_segv = signal(SIGSEGV, SIG_IGN);
  struct sigaction terminate {};
  terminate.sa_handler = OnTerminate;
  terminate.sa_flags = SA_RESETHAND | SA_NODEFER;
  struct sigaction former {};
  sigaction(SIGTERM, &terminate, &former);
  EXPECT_EQ(LoadPlugin(TROUPE_SIGNALS_PLUGIN, 0).status(), OkStatus());
  struct sigaction after {};
  sigaction(SIGTERM, &former, &after);
  EXPECT_EQ(after.sa_handler, OnTerminate);
  EXPECT_EQ(after.sa_flags & (SA_RESETHAND | SA_NODEFER), SA_RESETHAND | SA_NODEFER);
  EXPECT_EQ(signal(SIGSEGV, former_segv), SIG_IGN);
  EXPECT_EQ(signal(SIGABRT, former_abort), OnAbort);
  const auto of_timer = signal(SIGPROF, SIG_DFL);
  EXPECT_NE(of_timer, SIG_DFL) << "the plugin's timer would end the process";
}

TEST(Plugin, FindsADevice) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(ErrorOf(TROUPE_IDLE_PLUGIN),
              FailedPrecondition("the plugin of XLA {} makes no client: there is no device",
                                 TROUPE_IDLE_PLUGIN));
  }
}

}  // namespace
}  // namespace troupe::kernels::xla
