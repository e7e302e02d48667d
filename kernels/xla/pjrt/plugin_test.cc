#include "kernels/xla/pjrt/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(Plugin, FindsADevice) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(ErrorOf(TROUPE_IDLE_PLUGIN),
              FailedPrecondition("the plugin of XLA {} makes no client: there is no device",
                                 TROUPE_IDLE_PLUGIN));
  }
}

}  // namespace
}  // namespace troupe::kernels::xla
