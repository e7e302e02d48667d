#include "cli/output/cores_text.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(CoresTextTest, NeighboursAreRanges) {
  v1::CoreSet set;
  EXPECT_EQ(CoresText(set), "");
  for (const int core : {0, 1, 2, 3, 8, 10, 11}) set.add_cores(core);
  EXPECT_EQ(CoresText(set), "0-3,8,10-11");
  set.set_shared_by(1);
  EXPECT_EQ(CoresText(set), "0-3,8,10-11");
  set.set_shared_by(2);
  EXPECT_EQ(CoresText(set), "0-3,8,10-11 (shared by 2 ranks)");
}

}  // namespace
}  // namespace troupe
