#include "base/http/health_pages.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(HealthPages, AProcessCanLiveAndNotBeReady) {
  bool lives = true, is_ready = false;
  const HttpPages pages = HealthPages([&] { return lives; }, [&] { return is_ready; });
  EXPECT_EQ(pages({.path = "/healthz"}).code, 200);
  EXPECT_EQ(pages({.path = "/healthz"}).body, "ok\n");
  EXPECT_EQ(pages({.path = "/readyz"}).code, 503);
  is_ready = true;
  EXPECT_EQ(pages({.path = "/readyz"}).code, 200);
  lives = false;
  EXPECT_EQ(pages({.path = "/healthz"}).code, 503);
  EXPECT_EQ(pages({.path = "/healthz"}).body, "not ok\n");
  for (const char* path : {"/", "/metrics", "/health", "/healthz/"}) {
    EXPECT_EQ(pages({.path = path}).code, 404) << path;
  }
}

}  // namespace
}  // namespace troupe
