#include "checkpoint/digest.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/file_system.h"

namespace troupe {
namespace {

TEST(Crc32c, GivesTheValuesOfRfc3720) {
  const std::vector<std::byte> zeros(32, std::byte{0}), ones(32, std::byte{0xFF});
  for (const auto crc : {&Crc32c, &Crc32cPortable}) {
    EXPECT_EQ(crc(zeros, 0), 0x8A9136AAu);
    EXPECT_EQ(crc(ones, 0), 0x62A8AB43u);
    EXPECT_EQ(crc(AsBytes("123456789"), 0), 0xE3069283u);
    EXPECT_EQ(crc({}, 0), 0u);
  }
}

TEST(Crc32c, IsTheSameByTablesAndInPartsAtAnyAlignment) {
  std::mt19937_64 random(1);
  std::vector<std::byte> bytes(1000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (int i = 0; i < 200; ++i) {
    const size_t begin = random() % 20, cut = begin + random() % 400;
    const auto all = std::span(bytes).subspan(begin);
    const uint32_t whole = Crc32c(all);
    EXPECT_EQ(Crc32cPortable(all), whole);
    const auto head = std::span(bytes).subspan(begin, cut - begin);
    EXPECT_EQ(Crc32c(std::span(bytes).subspan(cut), Crc32c(head)), whole);
    EXPECT_EQ(Crc32cPortable(std::span(bytes).subspan(cut), Crc32cPortable(head)), whole);
  }
}

TEST(Sha256, GivesTheValueOfFips180) {
  const std::string abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(Sha256Of(AsBytes("abc")), abc);
  Sha256 parts;
  parts.Append(AsBytes("a"));
  parts.Append(AsBytes("bc"));
  EXPECT_EQ(parts.Finish(), abc);
  EXPECT_TRUE(IsSha256(abc));
  EXPECT_FALSE(IsSha256(abc.substr(1)));
  EXPECT_FALSE(IsSha256(abc.substr(0, 70)));
  EXPECT_FALSE(IsSha256(abc.substr(0, 70) + "G"));
}

TEST(DigestBlocks, CountsTheShortLastOne) {
  EXPECT_EQ(DigestBlocks(0), 0);
  EXPECT_EQ(DigestBlocks(1), 1);
  EXPECT_EQ(DigestBlocks(kDigestBlockBytes), 1);
  EXPECT_EQ(DigestBlocks(kDigestBlockBytes + 1), 2);
  EXPECT_EQ(DigestBlocks(INT64_MAX), INT64_MAX / kDigestBlockBytes + 1);
}

}  // namespace
}  // namespace troupe
