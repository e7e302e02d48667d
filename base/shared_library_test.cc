#include "base/shared_library.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

TEST(SharedLibrary, FindsTheFunctionsThatItHas) {
  auto library = SharedLibrary::Open("mathematics", "libm.so.6");
  ASSERT_TRUE(library.ok()) << ToString(library.status());
  double (*cube_root)(double) = nullptr;
  ASSERT_TRUE((*library)->Find("cbrt", &cube_root).ok());
  EXPECT_DOUBLE_EQ(cube_root(27.0), 3.0);
  const Status lacking = (*library)->Find("cbrt_of_nobody", &cube_root);
  EXPECT_EQ(lacking.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(lacking.message(), "function cbrt_of_nobody is missing");
}

TEST(SharedLibrary, NamesTheLibraryThatIsNotThere) {
  const auto library = SharedLibrary::Open("mathematics", "libm_of_nobody.so");
  EXPECT_EQ(library.status().code(), StatusCode::kNotFound);
  EXPECT_NE(library.status().message().find("mathematics cannot be loaded: libm_of_nobody.so"),
            std::string::npos)
      << library.status().message();
}

}  // namespace
}  // namespace troupe
