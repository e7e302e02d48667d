#include "data/decompressed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_files.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StatusOr<std::string> Decompress(const std::string& content) {
  const MemoryFile file(content);
  TROUPE_ASSIGN_OR_RETURN(const auto source, DecompressedFile::Open(file, "x"));
  std::string text;
  for (;;) {
    TROUPE_ASSIGN_OR_RETURN(const std::string_view part, source->Next());
    if (part.empty()) break;
    text += part;
  }
  EXPECT_EQ(source->bytes_read(), file.size());
  return text;
}

// Returns a text that compresses badly, longer than the parts in which a file is read.
std::string LongIncompressibleText() {
  std::string text;
  uint32_t state = 1;
  while (text.size() < 1'500'000) {
    state = state * 1664525 + 1013904223;
    text += static_cast<char>(state >> 24);
  }
  return text;
}

TEST(DecompressedFileTest, TheContentDecides) {
  const std::string text = LongIncompressibleText();
  EXPECT_EQ(*Decompress(""), "");
  EXPECT_EQ(*Decompress("plain"), "plain");
  EXPECT_EQ(*Decompress(text), text);
  for (const auto compress : {Gzip, Zstd}) {
    EXPECT_EQ(*Decompress(compress("")), "");
    EXPECT_EQ(*Decompress(compress("small")), "small");
    EXPECT_EQ(*Decompress(compress(text)), text);
  }
}

TEST(DecompressedFileTest, MembersFramesAndPaddingAreReadToTheEnd) {
  EXPECT_EQ(*Decompress(Gzip("one") + Gzip("") + Gzip("two") + std::string(1000, '\0')), "onetwo");
  EXPECT_EQ(*Decompress(Zstd("one") + Zstd("") + Zstd("two")), "onetwo");
  // A frame to skip, as pzstd writes it.
  const std::string skipped("\x5E\x2A\x4D\x18\x04\x00\x00\x00????", 12);
  EXPECT_EQ(*Decompress(skipped + Zstd("one") + skipped), "one");
}

TEST(DecompressedFileTest, WhatEndsEarlyIsRefusedWhereverItEnds) {
  for (const auto compress : {Gzip, Zstd}) {
    const std::string whole = compress("the text of a document");
    for (size_t bytes = 4; bytes < whole.size(); ++bytes) {
      const auto read = Decompress(whole.substr(0, bytes));
      EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << bytes;
      EXPECT_THAT(Message(read.status()),
                  AllOf(HasSubstr(fmt::format("beyond byte {0} of {0}", bytes)),
                        HasSubstr("they end early")));
    }
    EXPECT_FALSE(Decompress(compress(LongIncompressibleText()).substr(0, 1'200'000)).ok());
    EXPECT_FALSE(Decompress(compress("one") + whole.substr(0, 7)).ok());
  }
}

TEST(DecompressedFileTest, WhatIsDamagedIsRefused) {
  std::string damaged = Gzip("the text of a document");
  damaged[damaged.size() - 8] ^= 1;  // a byte of the checksum
  EXPECT_THAT(Message(Decompress(damaged).status()),
              AllOf(HasSubstr("x: its gzip data"), HasSubstr("incorrect data check")));
  EXPECT_THAT(Message(Decompress(Gzip("one") + "rest").status()),
              HasSubstr("incorrect header check"));
  EXPECT_THAT(Message(Decompress(Zstd("one") + "rest").status()), HasSubstr("x: its zstd data"));
  // One flipped bit anywhere gives an error or a text, and nothing else.
  for (const auto compress : {Gzip, Zstd}) {
    const std::string whole = compress("the text of a document, of a document, of a document");
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string flipped = whole;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      const auto read = Decompress(flipped);
      EXPECT_TRUE(!read.ok() || read->size() < 1000);
    }
  }
}

TEST(DecompressedFileTest, AFrameThatNeedsALargerWindowIsRefused) {
  // The header of a frame with a window of 2^28 bytes.
  EXPECT_THAT(Message(Decompress(std::string("\x28\xB5\x2F\xFD\x00\x90\x01\x00\x00", 9)).status()),
              HasSubstr("requires too much memory"));
}

}  // namespace
}  // namespace troupe
