#include "data/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_files.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Documents {
  std::vector<std::string> texts;
  int64_t replaced = 0;
};

StatusOr<Documents> ReadDocuments(const std::string& content, const std::string& key = "text",
                                  int64_t line_bytes_max = JsonLines::kLineBytesMax) {
  const MemoryFile file(content);
  TROUPE_ASSIGN_OR_RETURN(const auto source, DecompressedFile::Open(file, "f"));
  JsonLines lines(*source, "f", key, line_bytes_max);
  Documents documents;
  for (;;) {
    std::string text;
    TROUPE_ASSIGN_OR_RETURN(const bool is_there, lines.Next(text));
    if (!is_there) return documents;
    documents.texts.push_back(text);
    documents.replaced += lines.replaced();
  }
}

std::vector<std::string> TextsOf(const std::string& content, const std::string& key = "text") {
  const auto documents = ReadDocuments(content, key);
  EXPECT_TRUE(documents.ok()) << ToString(documents.status());
  return documents.ok() ? documents->texts : std::vector<std::string>();
}

std::string ErrorOf(const std::string& content, const std::string& key = "text") {
  const auto documents = ReadDocuments(content, key);
  EXPECT_EQ(documents.status().code(), StatusCode::kInvalidArgument) << content;
  return std::string(Message(documents.status()));
}

TEST(JsonLinesTest, EachLineIsADocument) {
  const std::string lines = R"({"text": "one"})"
                            "\n"
                            R"({"id": 7, "meta": {"text": "inner", "x": [1, {"text": 2}]}, )"
                            R"("text": "a\nb \u00e9\ud83d\ude00"})"
                            "\n"
                            R"({"text": ""})";
  const std::vector<std::string> expected = {"one", "a\nb \xC3\xA9\xF0\x9F\x98\x80", ""};
  EXPECT_EQ(TextsOf(lines), expected);
  EXPECT_EQ(TextsOf(lines + "\n"), expected);
  EXPECT_EQ(TextsOf(Gzip(lines)), expected);
  EXPECT_EQ(TextsOf(Zstd(lines)), expected);
  EXPECT_THAT(TextsOf(R"({"text": "x", "a.b": "y", "": "z"})", "a.b"), ElementsAre("y"));
  EXPECT_THAT(TextsOf(R"({"text": "x", "a.b": "y", "": "z"})", ""), ElementsAre("z"));
  // The key may be written with escapes, and text may be longer than a part of the file.
  EXPECT_THAT(TextsOf(R"({"t\u0065xt": "x"})"), ElementsAre("x"));
  const std::string large(3'000'000, 'q');
  EXPECT_THAT(TextsOf("{\"text\": \"" + large + "\"}\n{\"text\": \"x\"}"), ElementsAre(large, "x"));
}

TEST(JsonLinesTest, EmptyLinesOtherEndsOfLinesAndAByteOrderMarkChangeNothing) {
  EXPECT_THAT(TextsOf("\xEF\xBB\xBF{\"text\": \"a\"}\r\n\r\n \t\n\n{\"text\": \"b\"}\r\n\r\n"),
              ElementsAre("a", "b"));
  EXPECT_THAT(TextsOf("\xEF\xBB\xBF"), ElementsAre());
  EXPECT_THAT(TextsOf("\n\n"), ElementsAre());
}

TEST(JsonLinesTest, WhatIsNoUnicodeBecomesTheReplacementCharacterAndIsCounted) {
  const auto documents = ReadDocuments(
      "{\"text\": \"bad \xFF\xE2\x82 end\"}\n"
      R"({"text": "\ud83d, \ude00, \ud83d\ud83d\ude00, \\ud83d, \ud83dx, \ud83d"})"
      "\n"
      R"({"text": "good \u0000"})");
  ASSERT_TRUE(documents.ok()) << ToString(documents.status());
  EXPECT_THAT(
      documents->texts,
      ElementsAre(
          "bad \xEF\xBF\xBD\xEF\xBF\xBD end",
          "\xEF\xBF\xBD, \xEF\xBF\xBD, \xEF\xBF\xBD\xF0\x9F\x98\x80, \\ud83d, \xEF\xBF\xBDx, "
          "\xEF\xBF\xBD",
          std::string("good \0", 6)));
  EXPECT_EQ(documents->replaced, 2 + 5);
}

TEST(JsonLinesTest, AnErrorNamesFileLineValueAndRelation) {
  const std::string good = "{\"text\": \"x\"}\n\n";  // two lines
  EXPECT_EQ(ErrorOf(good + "[1]"), "f:3: the line is an array, not an object: \"[1]\"");
  EXPECT_EQ(ErrorOf(good + "\"x\""), "f:3: the line is a string, not an object: \"\\\"x\\\"\"");
  EXPECT_EQ(ErrorOf("12"), "f:1: the line is the number 12, not an object: \"12\"");
  EXPECT_EQ(ErrorOf("null"), "f:1: the line is null, not an object: \"null\"");
  EXPECT_EQ(ErrorOf(R"({"text": 12})"),
            "f:1: the line has the number 12 at the key \"text\", not a string: "
            "\"{\\\"text\\\": 12}\"");
  for (const auto& [value, what] : {std::pair("null", "null"),
                                    {"[\"x\"]", "an array"},
                                    {"{\"a\": 1}", "an object"},
                                    {"true", "true"},
                                    {"-1.5", "the number -1.5"}}) {
    EXPECT_THAT(ErrorOf(fmt::format("{{\"text\": {}}}", value)),
                HasSubstr(fmt::format("has {} at the key \"text\", not a string", what)));
  }
  EXPECT_EQ(ErrorOf(R"({"body": "x", "id": 1})"),
            "f:1: the line has no key \"text\"; its keys are [\"body\", \"id\"]; --json-key states "
            "the one of the text");
  EXPECT_THAT(ErrorOf(R"({"a": {"text": "x"}})"), HasSubstr("its keys are [\"a\"];"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("its keys are [];"));
  EXPECT_THAT(ErrorOf(R"({"text": "a", "id": 1, "text": "b"})"),
              HasSubstr("has the key \"text\" twice"));
  EXPECT_EQ(
      ErrorOf(R"({"text": "x", "score": NaN})"),
      "f:1: the line is not one JSON object from byte 24 on: \"xt\\\": \\\"x\\\", \\\"score\\\": "
      "NaN}\"");
  EXPECT_THAT(ErrorOf(R"({"text": "x", "score": 1e999})"),
              HasSubstr("has a number that float64 cannot hold"));
  for (const char* line : {"{\"text\": \"x\"} {\"text\": \"y\"}", "{\"text\": \"x\"", "{", "text",
                           "{'text': 'x'}", "{\"text\": \"x\",}", "{\"text\": \"\\q\"}",
                           "{\"text\": \"\\u12\"}", "{\"text\": \"a\tb\"}", "\x1F\x8B"}) {
    EXPECT_FALSE(ReadDocuments(line).ok()) << line;
  }
  EXPECT_THAT(ErrorOf(std::string("{\0\"\0t\0", 6)),
              HasSubstr("f:1: the line is not one JSON object"));
}

TEST(JsonLinesTest, AnErrorShowsNoControlCharactersAndLittleOfALongLine) {
  const std::string error = ErrorOf("{\"\\u001b]0;x\\u0007\": \"" + std::string(1000, 'q') + "\"}");
  EXPECT_THAT(error, HasSubstr("\"\\u001b]0;x\\u0007\""));
  EXPECT_LT(error.size(), 200);
  EXPECT_LT(ErrorOf("{\"" + std::string(1000, 'k') + "\": 1}").size(), 200);
  EXPECT_LT(ErrorOf("\x1B[2J" + std::string(1000, 'q')).size(), 200);
  EXPECT_EQ(ErrorOf("\x1B[2J").find('\x1B'), std::string::npos);
  std::string many = "{\"k\": 1";
  for (int i = 0; i < 100; ++i) many += fmt::format(", \"{}\": 1", i);
  EXPECT_THAT(ErrorOf(many + "}"), HasSubstr("\"6\", …];"));
}

TEST(JsonLinesTest, ALongLineAndADeepOneAreBounded) {
  const std::string line = "{\"text\": \"" + std::string(1000, 'q') + "\"}";
  const auto bytes = static_cast<int64_t>(line.size());
  EXPECT_TRUE(ReadDocuments(line, "text", bytes).ok());
  const auto refused = ReadDocuments("\n" + line, "text", bytes - 1);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(refused.status()), HasSubstr("f:2: the line has more than 1011 bytes"));
  // A small file that decompresses to one endless line.
  EXPECT_EQ(ReadDocuments(Gzip(std::string(20'000'000, ' ')), "text", 1 << 20).status().code(),
            StatusCode::kInvalidArgument);
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(ReadDocuments("{\"text\": \"x\", \"a\": " + deep).ok());
  EXPECT_TRUE(
      ReadDocuments("{\"text\": \"x\", \"a\": " + deep + std::string(1'000'000, ']') + "}").ok());
}

TEST(JsonLinesTest, NamesOfJsonLines) {
  for (const char* name : {"a.jsonl", "/b/a.jsonl.gz", "a.jsonl.zst", ".jsonl"}) {
    EXPECT_TRUE(IsJsonLinesName(name)) << name;
  }
  for (const char* name : {"a.json", "a.json.gz", "jsonl", "a.jsonl.bz2", "a.jsonl/b", "a.gz"}) {
    EXPECT_FALSE(IsJsonLinesName(name)) << name;
  }
}

TEST(JsonLinesTest, ATextLooksLikeThemByItsFirstLines) {
  for (const char* text :
       {"{\"a\": 1}\n{\"a\": 2}\n", "{\"a\": 1}\r\n\n{\"a\": \"cut he", "{}\n{}",
        "\xEF\xBB\xBF{\"text\": \"x\"}", "\n {\"text\": \"x\"}\n", "{\"a\": 1, \"text\": \"cut he",
        "{\"text\": \"\\ud83d \xFF\"}\n", "{\"text\": null}\n", "{\"text\": 1, \"text\": 2}\n",
        "{ \"text\": \"x\", \"score\": NaN} \n", "{\"score\": NaN}\n{\"score\": NaN}\n"}) {
    for (const auto& key : {std::optional<std::string>(), std::optional<std::string>("text")}) {
      EXPECT_TRUE(LooksLikeJsonLines(text, /*is_whole=*/true, key)) << text;
      EXPECT_TRUE(LooksLikeJsonLines(text, /*is_whole=*/false, key)) << text;
    }
  }
  for (const char* text : {"", "\n", "{", "{\n", "{\n{", "{\n  \"text\": \"x\"\n}\n",
                           "{\"a\": 1}\ntext", "{a: 1}\n{a: 2}\n", "[1]\n[2]\n", "text",
                           "{ return x; }\n{ return y; }\n", "{\"text\": \"x\",\n\"b\": 1}\n"}) {
    for (const auto& key : {std::optional<std::string>(), std::optional<std::string>("text")}) {
      EXPECT_FALSE(LooksLikeJsonLines(text, /*is_whole=*/true, key)) << text;
      EXPECT_FALSE(LooksLikeJsonLines(text, /*is_whole=*/false, key)) << text;
    }
  }
}

TEST(JsonLinesTest, ALongKeyIsFound) {
  const std::string key(100, 'k');
  EXPECT_TRUE(LooksLikeJsonLines("{\"" + key + "\": \"x\"}\ntext", /*is_whole=*/true, key));
}

TEST(JsonLinesTest, AnObjectAloneLooksLikeThemIfTheKeyIsStated) {
  for (const char* text : {"{\"a\": 1}", "{\"a\": 1}\n", "{\"a\": {\"text\": \"x\"}}\n\n"}) {
    EXPECT_FALSE(LooksLikeJsonLines(text, /*is_whole=*/true, std::nullopt)) << text;
    EXPECT_TRUE(LooksLikeJsonLines(text, /*is_whole=*/true, "text")) << text;
  }
  EXPECT_FALSE(LooksLikeJsonLines("{\"a\": \"cut he", /*is_whole=*/true, "text"));
}

TEST(JsonLinesTest, ALineLongerThanTheHeadLooksLikeThemByItsBeginning) {
  EXPECT_TRUE(LooksLikeJsonLines("{\"a\": \"cut he", /*is_whole=*/false, std::nullopt));
  EXPECT_TRUE(LooksLikeJsonLines("{\"a\": 1}\n", /*is_whole=*/false, std::nullopt));
  EXPECT_FALSE(LooksLikeJsonLines("{a, cut he", /*is_whole=*/false, std::nullopt));
}

}  // namespace
}  // namespace troupe
