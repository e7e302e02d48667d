#include "checkpoint/format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(LayOutSafetensors, SortsByDtypeThenNameAndAlignsTheData) {
  std::vector<SafetensorsEntry> entries = {{.name = "b", .dtype = "BF16", .shape = {3}},
                                           {.name = "z", .dtype = "F32", .shape = {2, 2}},
                                           {.name = "a", .dtype = "BF16", .shape = {}},
                                           {.name = "e", .dtype = "F32", .shape = {0, 5}}};
  const auto head = LayOutSafetensors(entries, {{"k", "a \"b\"\\\n"}});
  ASSERT_TRUE(head.ok()) << ToString(head.status());
  EXPECT_EQ(head->size() % 4096, 0u);
  uint64_t length;
  std::memcpy(&length, head->data(), 8);
  EXPECT_EQ(length + 8, head->size());
  EXPECT_THAT(
      head->substr(8),
      ::testing::StartsWith(R"({"__metadata__":{"k":"a \"b\"\\\u000a"},)"
                            R"("e":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},)"
                            R"("z":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                            R"("a":{"dtype":"BF16","shape":[],"data_offsets":[16,18]},)"
                            R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[18,24]}}   )"));
  const auto parsed = ParseSafetensorsJson(std::string_view(*head).substr(8), 24);
  ASSERT_TRUE(parsed.ok()) << ToString(parsed.status());
  EXPECT_EQ(parsed->metadata.at("k"), "a \"b\"\\\n");
  EXPECT_EQ(parsed->entries, entries);
}

TEST(LayOutSafetensors, RefusesTwoTensorsOfOneNameAndUnknownDtypes) {
  std::vector<SafetensorsEntry> twice = {{.name = "a", .dtype = "F32", .shape = {1}},
                                         {.name = "a", .dtype = "F16", .shape = {1}}};
  EXPECT_EQ(LayOutSafetensors(twice, {}).status().code(), StatusCode::kInvalidArgument);
  std::vector<SafetensorsEntry> unknown = {{.name = "a", .dtype = "float", .shape = {1}}};
  EXPECT_EQ(LayOutSafetensors(unknown, {}).status().code(), StatusCode::kInvalidArgument);
}

TEST(ParseSafetensorsJson, RefusesHostileHeadersNamingTensorAndValue) {
  const auto entry = [](std::string_view shape, std::string_view offsets) {
    return fmt::format(R"({{"t":{{"dtype":"F32","shape":{},"data_offsets":{}}}}})", shape, offsets);
  };
  struct Case {
    std::string json;
    int64_t buffer;
    std::string message;
  };
  const Case cases[] = {
      {"", 0, "does not begin"},
      {" {}", 0, "does not begin"},
      {"[]", 0, "does not begin"},
      {"{", 0, "invalid JSON at byte"},
      {"{}x", 0, "invalid JSON at byte"},
      {R"({"t":1})", 0, "unexpected number 1 at \"t\""},
      {R"({"t":null})", 0, "unexpected null"},
      {R"({"t":{}})", 0, "dtype, shape or data_offsets is missing"},
      {R"({"t":{"dtype":"F32","shape":[1]}})", 4, "dtype, shape or data_offsets is missing"},
      {R"({"t":{"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}})", 4,
       "key dtype appears twice"},
      {R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1}})", 4, "unknown key"},
      {R"({"t":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", 4, "unexpected an array"},
      {R"({"t":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "dtype \"F33\""},
      {R"({"t":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "12 bits"},
      {entry("[1]", "[0,4,8]"), 4, "data_offsets has 3 numbers"},
      {entry("[1]", "[]"), 4, "data_offsets has 0 numbers"},
      {entry("[-1]", "[0,4]"), 4, "unexpected number -1"},
      {entry("[1.5]", "[0,4]"), 4, "unexpected number 1.5"},
      {entry("[1e3]", "[0,4]"), 4, "unexpected number 1e3"},
      {entry("[[1]]", "[0,4]"), 4, "unexpected an array"},
      {entry("[9223372036854775808]", "[0,4]"), 4, "9223372036854775808 is above 2^63 - 1"},
      {entry("[18446744073709551616]", "[0,4]"), 4, "18446744073709551616"},
      {entry("[9223372036854775807]", "[0,4]"), 4, "more than 2^60 bytes"},
      {entry("[4294967296,4294967296]", "[0,4]"), 4, "more than 2^63 - 1 elements"},
      {entry("[1]", "[0,9223372036854775807]"), 4, "data_offsets [0, 9223372036854775807]"},
      {entry("[1]", "[4,0]"), 4, "begins at 4"},
      {entry("[1]", "[4,8]"), 8, "begins at 4, but the data before it ends at 0"},
      {entry("[1]", "[0,4]"), 5, "the tensors end at 4, but the buffer has 5"},
      {entry("[1]", "[0,4]"), 3, "the tensors end at 4, but the buffer has 3"},
      {"{}", 1, "the tensors end at 0, but the buffer has 1"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       8, "\"a\" appears twice"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6, "tensor \"b\" begins at 2, but the data before it ends at 4"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
       6, "tensor \"b\" begins at 4, but the data before it ends at 2"},
      {R"({"__metadata__":{"a":1}})", 0, "unexpected number 1"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "key \"a\" appears twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "appears twice"},
      {"{\"\xff\":{}}", 0, "invalid JSON at byte"},
      {std::string(100000, '[').insert(0, "{\"t\":"), 0, "unexpected an array"},
  };
  for (const Case& c : cases) {
    const auto header = ParseSafetensorsJson(c.json, c.buffer);
    EXPECT_EQ(header.status().code(), StatusCode::kInvalidArgument) << c.json.substr(0, 200);
    EXPECT_THAT(std::string(Message(header.status())), HasSubstr(c.message));
  }
}

TEST(ReadSafetensorsHeader, ChecksTheLengthBeforeItReadsOrAllocates) {
  TemporaryDirectory folder;
  PosixFileSystem files;
  const auto read = [&](uint64_t length, std::string_view rest) {
    std::string text(8, '\0');
    std::memcpy(text.data(), &length, 8);
    TROUPE_CHECK_OK(WriteFileDurably(files, folder.Child("f"), AsBytes(text.append(rest))));
    return ReadSafetensorsHeader(**files.Open(folder.Child("f"), SymbolicLinks::kRefuse)).status();
  };
  EXPECT_TRUE(read(2, "{}").ok());
  for (const uint64_t length :
       {uint64_t{3}, uint64_t{100'000'001}, uint64_t{1} << 63, ~uint64_t{0}}) {
    EXPECT_THAT(std::string(Message(read(length, "{}"))),
                HasSubstr(fmt::format("header length {} is above", length)));
  }
  TROUPE_CHECK_OK(WriteFileDurably(files, folder.Child("f"), AsBytes("1234567")));
  EXPECT_EQ(ReadSafetensorsHeader(**files.Open(folder.Child("f"), SymbolicLinks::kRefuse))
                .status()
                .code(),
            StatusCode::kInvalidArgument);
}

TEST(ReadSafetensorsHeader, NamesAPointerOfGitLfs) {
  TemporaryDirectory folder;
  PosixFileSystem files;
  const auto read = [&](std::string_view text) {
    TROUPE_CHECK_OK(WriteFileDurably(files, folder.Child("f"), AsBytes(text)));
    return std::string(Message(
        ReadSafetensorsHeader(**files.Open(folder.Child("f"), SymbolicLinks::kRefuse)).status()));
  };
  EXPECT_THAT(read("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n"),
              HasSubstr("is a Git LFS pointer"));
  EXPECT_THAT(read("version 2 of something else, as long as a pointer"), HasSubstr("is above"));
}

TEST(ParseSafetensorsJson, NeverCrashesOnDamagedHeaders) {
  std::vector<SafetensorsEntry> entries = {{.name = "a", .dtype = "F32", .shape = {2, 3}},
                                           {.name = "b", .dtype = "BF16", .shape = {7}}};
  const std::string json = LayOutSafetensors(entries, {{"k", "v"}})->substr(8, 170);
  ASSERT_TRUE(ParseSafetensorsJson(json, 38).ok());
  std::mt19937_64 random(5);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = json;
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n) {
      const size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + random() % 5);
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 20));
      }
      if (damaged.empty()) damaged = "{";
    }
    const auto header = ParseSafetensorsJson(damaged, 38);
    if (!header.ok()) continue;
    ++accepted;  // a changed name, for example: the header is still consistent
    int64_t end = 0;
    for (const SafetensorsEntry& entry : header->entries) {
      EXPECT_EQ(entry.begin, end);
      end = entry.end;
    }
    EXPECT_EQ(end, 38);
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace troupe
