#include "base/text/scaled.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ScaledTest, AValueHasThreeDigitsAndADecimalPrefix) {
  EXPECT_EQ(Scaled(1234567, "B"), "1.23 MB");
  EXPECT_EQ(Scaled(1234567, ""), "1.23 M");
  EXPECT_EQ(Scaled(12.25, "FLOP"), "12.25 FLOP");
  EXPECT_EQ(Scaled(999'400, "B"), "999 kB");
  EXPECT_EQ(Scaled(999'500, "B"), "1 MB") << "and not 1e+03 kB";
}

TEST(ScaledTest, BytesAreWholeWhereTheyHaveNoPrefix) {
  EXPECT_EQ(Scaled(204.75, "B"), "205 B");
  EXPECT_EQ(Scaled(204.25, "B"), "204 B");
  EXPECT_EQ(Scaled(999.75, "B"), "1 kB");
  EXPECT_EQ(Scaled(0.25, "B"), "1 B") << "something is not nothing";
  EXPECT_EQ(Scaled(0, "B"), "0 B");
}

}  // namespace
}  // namespace troupe
