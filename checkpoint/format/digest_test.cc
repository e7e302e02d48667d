#include "checkpoint/format/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
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
  std::vector<std::byte> bytes(60'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (int i = 0; i < 200; ++i) {
    const size_t begin = random() % 20, cut = begin + random() % (bytes.size() - begin);
    const auto all = std::span(bytes).subspan(begin);
    const uint32_t whole = Crc32c(all);
    EXPECT_EQ(Crc32cPortable(all), whole);
    const auto head = std::span(bytes).subspan(begin, cut - begin);
    EXPECT_EQ(Crc32c(std::span(bytes).subspan(cut), Crc32c(head)), whole);
    EXPECT_EQ(Crc32cPortable(std::span(bytes).subspan(cut), Crc32cPortable(head)), whole);
  }
}

// The values that `xxh128sum` prints for the same bytes.
TEST(FileChecksums, GiveTheValueOfXxh128sumAndTheCrcOfEachBlock) {
  FileChecksums nothing;
  EXPECT_EQ(nothing.Digest(), "xxh128:99aa06d3014798d86001c324468d497f");
  EXPECT_TRUE(nothing.block_crc32c().empty());
  FileChecksums digits;
  digits.Append(AsBytes("123456789"));
  EXPECT_EQ(digits.Digest(), "xxh128:33119477ede5dcd5e9716427681d5860");
  EXPECT_EQ(digits.block_crc32c(), std::vector<uint32_t>{0xE3069283u});

  const auto block = static_cast<size_t>(kDigestBlockBytes);
  std::vector<std::byte> bytes(2 * block + 12345);
  std::mt19937_64 random(2);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const auto all = std::span<const std::byte>(bytes);
  FileChecksums whole, parts;
  whole.Append(all);
  for (const auto& part : {all.first(block), all.subspan(block, block), all.subspan(2 * block)}) {
    parts.Append(part);
  }
  EXPECT_EQ(whole.Digest(), parts.Digest());
  EXPECT_EQ(whole.Digest(), Xxh128Of(all));
  EXPECT_EQ(whole.block_crc32c(), parts.block_crc32c());
  EXPECT_THAT(whole.block_crc32c(),
              testing::ElementsAre(Crc32c(all.first(block)), Crc32c(all.subspan(block, block)),
                                   Crc32c(all.subspan(2 * block))));
  bytes[block + 77] ^= std::byte{1};
  FileChecksums other;
  other.Append(all);
  EXPECT_NE(other.Digest(), whole.Digest());
}

TEST(Sha256Of, GivesTheValueOfFips180) {
  EXPECT_EQ(Sha256Of(AsBytes("abc")),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(IsSha256, AndIsXxh128WantTheirPrefixAndAllDigits) {
  const std::string digits(64, 'a');
  EXPECT_TRUE(IsSha256("sha256:" + digits));
  EXPECT_TRUE(IsXxh128("xxh128:" + digits.substr(32)));
  for (const std::string& bad :
       {digits, "sha256:" + digits.substr(1), "sha256:" + digits + "a", "xxh128:" + digits,
        "sha256:" + digits.substr(1) + "G", "xxh128:" + digits.substr(33) + "A"}) {
    EXPECT_FALSE(IsSha256(bad)) << bad;
    EXPECT_FALSE(IsXxh128(bad)) << bad;
  }
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
