#include "kernels/xla/runtime/padding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe::kernels::xla {
namespace {

using testing::ElementsAre;

std::vector<int> Copied(const std::vector<int>& from, const Shape& from_shape, const Shape& shape) {
  std::vector<int> to(static_cast<size_t>(ElementsOf(shape)), -1);
  CopyCommonElements(std::as_bytes(std::span(from)), from_shape,
                     std::as_writable_bytes(std::span(to)), shape);
  return to;
}

TEST(Padding, CopiesElementsToTheSameIndices) {
  EXPECT_THAT(Copied({1, 2, 3}, {3}, {5}), ElementsAre(1, 2, 3, -1, -1));
  EXPECT_THAT(Copied({1, 2, 3}, {3}, {2}), ElementsAre(1, 2));
  EXPECT_THAT(Copied({1, 2, 3, 4}, {2, 2}, {3, 3}), ElementsAre(1, 2, -1, 3, 4, -1, -1, -1, -1));
  EXPECT_THAT(Copied({1, 2, 3, 4, 5, 6}, {2, 3}, {1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(Copied({1, 2, 3, 4}, {2, 1, 2}, {2, 2, 2}), ElementsAre(1, 2, -1, -1, 3, 4, -1, -1));
}

TEST(Padding, CopiesNothingOfATensorWithoutElements) {
  EXPECT_THAT(Copied({}, {0, 2}, {1, 2}), ElementsAre(-1, -1));
  EXPECT_THAT(Copied({}, {2, 0}, {2, 1}), ElementsAre(-1, -1));
}

}  // namespace
}  // namespace troupe::kernels::xla
