#include "data/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "data/split_pattern.h"

namespace troupe {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr char kFolder[] = "data/testdata/";

Json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

std::string HexDigest(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string HexDigest(const std::vector<int32_t>& ids) {
  return HexDigest({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]});
}

// Generates the texts of tests/interop/tokenizer_text.py byte for byte: one splitmix64 stream
// selects from the same parts.
class TextMaker {
 public:
  explicit TextMaker(uint64_t seed)
      : state_(seed), parts_(ReadJson(kFolder + std::string("text_parts.json"))) {
    for (const char* name : {"words", "punctuation", "spaces", "emoji"}) {
      lists_[name] = parts_[name].get<std::vector<std::string>>();
    }
    ranges_ = parts_["ranges"].get<std::vector<std::array<uint32_t, 2>>>();
  }

  std::string Code(size_t size) {
    std::string text;
    while (text.size() < size) {
      const uint64_t draw = Below(16);
      if (draw < 8) {
        text += Of("words") + " ";
      } else if (draw < 11) {
        text += Of("punctuation");
      } else if (draw < 13) {
        text += Of("spaces");
      } else if (draw < 14) {
        uint64_t bound = 1;
        for (uint64_t digits = 1 + Below(12); digits > 0; --digits) bound *= 10;
        text += std::to_string(Below(bound));
      } else {
        for (uint64_t letters = 1 + Below(10); letters > 0; --letters) {
          text += static_cast<char>('a' + Below(26));
        }
      }
    }
    return text;
  }

  std::string Unicode(size_t size) {
    std::string text;
    while (text.size() < size) {
      const uint64_t draw = Below(16);
      if (draw < 9) {
        const auto [first, last] = ranges_[Below(ranges_.size())];
        for (uint64_t characters = 1 + Below(6); characters > 0; --characters) {
          Put(first + static_cast<uint32_t>(Below(last - first + 1)), text);
        }
      } else if (draw < 11) {
        text += Of("emoji");
      } else if (draw < 13) {
        text += Of("spaces");
      } else if (draw < 14) {
        text += Of("words");
      } else if (draw < 15) {
        text += Of("punctuation");
      } else {
        const std::string space = Of("spaces");
        for (uint64_t times = 1 + Below(30); times > 0; --times) text += space;
      }
    }
    return text;
  }

 private:
  uint64_t Below(uint64_t bound) {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return (z ^ (z >> 31)) % bound;
  }
  const std::string& Of(const char* list) {
    const auto& things = lists_[list];
    return things[Below(things.size())];
  }
  static void Put(uint32_t c, std::string& text) {
    if (c < 0x80) {
      text += static_cast<char>(c);
      return;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    text += static_cast<char>((0xF0 << (3 - more)) | (c >> (6 * more)));
    for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F));
  }

  uint64_t state_;
  const Json parts_;
  std::map<std::string, std::vector<std::string>> lists_;
  std::vector<std::array<uint32_t, 2>> ranges_;
};

class TokenizerFileTest : public ::testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<Tokenizer> Open(const std::string& rule) {
    PosixFileSystem files;
    auto tokenizer = OpenTokenizerFile(files, kFolder + rule + "_tokenizer.json", 0);
    TROUPE_CHECK_OK(tokenizer.status());
    return *std::move(tokenizer);
  }
};

TEST_P(TokenizerFileTest, GivesTheIdsOfTheTokenizersPackage) {
  const std::unique_ptr<Tokenizer> tokenizer = Open(GetParam());
  const Json expected = ReadJson(kFolder + std::string(GetParam()) + "_expected.json");
  EXPECT_EQ(tokenizer->vocab_size(), expected["vocab_size"].get<int64_t>());
  std::vector<int32_t> ids;
  ASSERT_TRUE(tokenizer->Encode(expected["text"].get<std::string>(), ids).ok());
  EXPECT_EQ(ids, expected["ids"].get<std::vector<int32_t>>());

  const uint64_t seed = expected["seed"].get<uint64_t>();
  const size_t size = expected["size"].get<size_t>();
  for (const char* kind : {"code", "unicode"}) {
    TextMaker maker(seed);
    const std::string text =
        std::string_view(kind) == "code" ? maker.Code(size) : maker.Unicode(size);
    ASSERT_EQ(HexDigest(text), expected[kind]["text_sha256"].get<std::string>());
    ids.clear();
    ASSERT_TRUE(tokenizer->Encode(text, ids).ok());
    EXPECT_EQ(ids.size(), expected[kind]["ids"].get<size_t>()) << kind;
    EXPECT_EQ(HexDigest(ids), expected[kind]["ids_sha256"].get<std::string>()) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, TokenizerFileTest, ::testing::Values("gpt2", "llama3"));

// The published rules of GPT-2 and Llama 3. The pieces themselves are compared, because ids reveal
// a cut only if the vocabulary has a merge across it. tests/interop/make_splits.py asks the
// package.
class PublishedSplitRules : public ::testing::TestWithParam<const char*> {};

TEST_P(PublishedSplitRules, CutTextsAsTheTokenizersPackageDoes) {
  const Json expected = ReadJson(kFolder + std::string("splits.json"));
  const Json& rule = expected["rules"][GetParam()];
  const auto pattern = SplitPattern::Compile(rule["pattern"].get<std::string>());
  TROUPE_CHECK_OK(pattern.status());
  for (const char* kind : {"code", "unicode"}) {
    TextMaker maker(expected["seed"].get<uint64_t>());
    const auto size = expected["size"].get<size_t>();
    const std::string text =
        std::string_view(kind) == "code" ? maker.Code(size) : maker.Unicode(size);
    SplitPattern::Cutter cutter(*pattern);
    std::vector<int32_t> lengths;
    for (std::string_view rest = text; !rest.empty();
         rest.remove_prefix(static_cast<size_t>(lengths.back()))) {
      const auto bytes = cutter.FirstPiece(rest);
      TROUPE_CHECK_OK(bytes.status());
      lengths.push_back(static_cast<int32_t>(*bytes));
    }
    EXPECT_EQ(lengths.size(), rule[kind]["pieces"].get<size_t>()) << kind;
    EXPECT_EQ(HexDigest(lengths), rule[kind]["bytes_sha256"].get<std::string>()) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, PublishedSplitRules, ::testing::Values("gpt2", "llama3"));

TEST(PublishedSplitRules, OfGpt2IsTheOneThatByteLevelMeans) {
  EXPECT_EQ(
      ReadJson(kFolder + std::string("splits.json"))["rules"]["gpt2"]["pattern"].get<std::string>(),
      kGpt2Pattern);
}

// Changes one key of a tokenizer.json and checks the reader's error.
class ChangedFileTest : public ::testing::Test {
 protected:
  Json root_ = ReadJson("data/testdata/llama3_tokenizer.json");

  void Write(std::string_view name, std::string_view text) {
    std::ofstream(folder_.Child(name), std::ios::binary) << text;
  }

  StatusOr<std::unique_ptr<Tokenizer>> Open(const Json& root, std::optional<int64_t> end = 0) {
    Write("tokenizer.json", root.dump());
    return OpenTokenizerFile(files_, folder_.Child("tokenizer.json"), end);
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(ChangedFileTest, WhatWouldChangeAnIdIsRefusedByItsName) {
  const struct {
    const char* pointer;
    Json value;
    const char* named;
  } cases[] = {
      {"/normalizer", {{"type", "NFC"}}, "normalizer is {\"type\":\"NFC\"}"},
      {"/truncation", {{"max_length", 5}}, "truncation is"},
      {"/padding", {{"pad_id", 0}}, "padding is"},
      {"/surprise", 1, "surprise is 1"},
      {"/model", nullptr, "model is missing"},
      {"/model/type", "Unigram", "model.type is \"Unigram\""},
      {"/model/type", "WordPiece", "model.type is \"WordPiece\""},
      {"/model/dropout", 0.1, "model.dropout is 0.1"},
      {"/model/byte_fallback", true, "model.byte_fallback is true"},
      {"/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix is \"</w>\""},
      {"/model/continuing_subword_prefix", "##", "model.continuing_subword_prefix is \"##\""},
      {"/model/ignore_merges", 1, "model.ignore_merges is 1"},
      {"/model/surprise", 1, "model.surprise is 1"},
      {"/model/vocab", Json::array(), "model.vocab is []"},
      {"/model/vocab/!", 1u << 31, "model.vocab[\"!\"] is 2147483648, not in [0, "},
      {"/model/vocab/!", -1, "model.vocab[\"!\"] is -1"},
      {"/model/vocab/!", 5, "is 5, which another token has too"},
      {"/model/merges", "a b", "model.merges is \"a b\""},
      {"/model/merges/0", "a", "model.merges[0] is \"a\""},
      {"/model/merges/0", "a b c", "model.merges[0] is \"a b c\""},
      {"/model/merges/0", {"a", 1}, "model.merges[0] is [\"a\",1]"},
      {"/model/merges/0", {"a", "missing"}, "\"missing\" is not in model.vocab"},
      {"/added_tokens/0/lstrip", true, "added_tokens[0].lstrip is true"},
      {"/added_tokens/0/rstrip", true, "added_tokens[0].rstrip is true"},
      {"/added_tokens/0/single_word", true, "added_tokens[0].single_word is true"},
      {"/added_tokens/0/content", "", "added_tokens[0].content is missing"},
      {"/added_tokens/0/id", 1u << 31, "added_tokens[0].id is 2147483648, not in"},
      {"/added_tokens/0/id", 3, "added_tokens has id 3 for \"<|begin_of_text|>\""},
      {"/pre_tokenizer", nullptr, "pre_tokenizer is missing"},
      {"/pre_tokenizer", {{"type", "Whitespace"}}, "type of the last step is \"Whitespace\""},
      {"/pre_tokenizer/pretokenizers/0/type", "Digits", "pretokenizers[0].type is \"Digits\""},
      {"/pre_tokenizer/pretokenizers/1", nullptr, "pretokenizers[1]. is null"},
      {"/pre_tokenizer/pretokenizers/0/behavior", "Removed", "behavior is \"Removed\""},
      {"/pre_tokenizer/pretokenizers/0/invert", true, "pretokenizers[0].invert is true"},
      {"/pre_tokenizer/pretokenizers/0/pattern", {{"String", " "}}, "pattern.String is \" \""},
      {"/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+", "\"\\w\" at byte 0"},
      {"/pre_tokenizer/pretokenizers/1/add_prefix_space", true, "add_prefix_space after a Split"},
  };
  ASSERT_TRUE(Open(root_).ok());
  for (const auto& change : cases) {
    Json changed = root_;
    changed[Json::json_pointer(change.pointer)] = change.value;
    const Status status = Open(changed).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << change.pointer;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(change.named));
    EXPECT_THAT(std::string(Message(status)), HasSubstr("tokenizer.json: "));
  }
  Json without_byte = root_;
  without_byte["model"]["vocab"].erase("!");
  without_byte["model"]["vocab"]["missing"] = root_["model"]["vocab"]["!"];
  EXPECT_THAT(std::string(Message(Open(without_byte).status())),
              HasSubstr("no token for byte 0x21"));
}

TEST_F(ChangedFileTest, AFileThatIsNoTokenizerIsRefused) {
  EXPECT_EQ(OpenTokenizerFile(files_, folder_.Child("none.json"), {}).status().code(),
            StatusCode::kNotFound);
  for (const char* text : {"", "{", "[]", "\"x\"", "{\"model\": {\"vocab\": {\"\xFF\": 1}}}"}) {
    Write("bad.json", text);
    EXPECT_THAT(
        std::string(Message(OpenTokenizerFile(files_, folder_.Child("bad.json"), {}).status())),
        HasSubstr("is not a JSON object"))
        << text;
  }
  Write("bad.json", "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n");
  EXPECT_THAT(
      std::string(Message(OpenTokenizerFile(files_, folder_.Child("bad.json"), {}).status())),
      HasSubstr("bad.json: is a Git LFS pointer"));
  const std::string deep(1 << 20, '[');
  Write("bad.json", deep);
  EXPECT_FALSE(OpenTokenizerFile(files_, folder_.Child("bad.json"), {}).ok());
}

TEST_F(ChangedFileTest, TheEndOfDocumentIsStatedElseConfiguredElseTheUsualToken) {
  const auto id_of = [&](const char* content) {
    for (const Json& token : root_["added_tokens"]) {
      if (token["content"] == content) return token["id"].get<int64_t>();
    }
    return int64_t{-1};
  };
  const auto end = [&](std::optional<int64_t> stated) {
    const auto tokenizer = Open(root_, stated);
    TROUPE_CHECK_OK(tokenizer.status());
    return int64_t{(*tokenizer)->end_of_document()};
  };
  EXPECT_EQ(end({}), id_of("<|end_of_text|>"));
  EXPECT_EQ(end(7), 7);
  const auto configure = [&](std::string_view text) { Write("tokenizer_config.json", text); };
  configure(R"({"eos_token": "<|pad|>"})");
  EXPECT_EQ(end({}), id_of("<|pad|>"));
  EXPECT_EQ(end(7), 7);
  configure(R"({"eos_token": {"content": "<|begin_of_text|>", "lstrip": false}})");
  EXPECT_EQ(end({}), id_of("<|begin_of_text|>"));
  configure(R"({"eos_token": null})");
  EXPECT_EQ(end({}), id_of("<|end_of_text|>"));
  configure(R"({"eos_token": "gone"})");
  EXPECT_THAT(std::string(Message(Open(root_, {}).status())), HasSubstr("has no token \"gone\""));
  configure(R"({"eos_token": 5})");
  EXPECT_THAT(std::string(Message(Open(root_, {}).status())), HasSubstr("eos_token is 5"));
  EXPECT_THAT(std::string(Message(Open(root_, 1 << 20).status())),
              HasSubstr("end of document 1048576 is not in [0, "));
}

TEST_F(ChangedFileTest, WithoutAnyEndOfDocumentItIsAskedFor) {
  root_["added_tokens"] = Json::array();
  EXPECT_THAT(std::string(Message(Open(root_, {}).status())), HasSubstr("state its id"));
}

TEST_F(ChangedFileTest, APrefixSpacePrecedesEveryStretchOfText) {
  root_ = ReadJson("data/testdata/gpt2_tokenizer.json");
  const auto ids = [&](bool prefix, std::string_view text) {
    root_["pre_tokenizer"]["add_prefix_space"] = prefix;
    const auto tokenizer = Open(root_);
    TROUPE_CHECK_OK(tokenizer.status());
    std::vector<int32_t> made;
    TROUPE_CHECK_OK((*tokenizer)->Encode(text, made));
    return made;
  };
  EXPECT_EQ(ids(true, "the<|endoftext|>of"), ids(false, " the<|endoftext|> of"));
  EXPECT_EQ(ids(true, " the"), ids(false, " the"));
}

}  // namespace
}  // namespace troupe
