// Checks what a program can check of prose: openers whose subject the reader would have to guess,
// and home-made words for things that have a name in the field.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/tidy/prose.h"
#include "tests/tidy/sources.h"

namespace troupe {
namespace {

// Returns the text of a line that is nothing but a comment; empty for other lines.
std::string CommentText(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  for (const std::string mark : {"// ", "# "}) {
    if (line.compare(begin, mark.size(), mark) == 0) return line.substr(begin + mark.size());
  }
  return {};
}

// Whether a comment block begins with "Of", "What" or the like, so that its subject is missing. A
// question is a sentence.
bool HasBareOpener(const std::string& first_line, const std::string& whole) {
  static const std::regex opener("^(Of|What|Which|How|Why)\\b");
  return std::regex_search(first_line, opener) && whole.find('?') == std::string::npos;
}

TEST(Prose, CommentsBeginWithTheirSubject) {
  for (const SourceFile& file : ProgramFiles()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string text = CommentText(file.lines[i]);
      const bool first = i == 0 || CommentText(file.lines[i - 1]).empty();
      if (text.empty() || !first) continue;
      std::string whole = text;
      for (size_t next = i + 1; next < file.lines.size(); ++next) {
        const std::string more = CommentText(file.lines[next]);
        if (more.empty()) break;
        whole += " " + more;
      }
      EXPECT_FALSE(HasBareOpener(text, whole)) << file.path << ":" << i + 1 << ": " << text;
    }
  }
}

// Returns whether the line has a comment after code that begins with "of", "what" or the like.
bool HasBareOpenerAfterCode(const std::string& line) {
  static const std::regex opener("[;,{)] +// ([Oo]f|[Ww]hat|[Ww]hich|[Hh]ow|[Ww]hy)\\b");
  return std::regex_search(line, opener);
}

TEST(Prose, CommentsAfterCodeBeginWithTheirSubject) {
  for (const SourceFile& file : Sources()) {
    if (file.path == "tests/tidy/prose_test.cc") continue;  // it has bad examples
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(HasBareOpenerAfterCode(file.lines[i]))
          << file.path << ":" << i + 1 << ": " << file.lines[i];
    }
  }
}

// Retired phrases, with the field's words for them.
const std::map<std::string, std::string> kRetired = {
    {"settled", "drained, finalised"},
    {"settles", "drains, is finalised"},
    {"alike", "identical, identically"},
    {"beside", "next to, in addition to, with"},
    {"by turns", "alternately"},
    {"give back", "return, release, dequantise"},
    {"given back", "returned, released, dequantised"},
    {"gives back", "returns, releases, dequantises"},
    {"hand over", "submit, enqueue"},
    {"handed over", "submitted, enqueued"},
    {"hands over", "submits, enqueues"},
    {"in 8 bits", "FP8"},
    {"kept row", "row cached in shared memory"},
    {"largest magnitude", "amax"},
    {"on its way", "in flight"},
    {"on their way", "in flight"},
    {"onto a stream", "enqueued"},
    {"said", "reported, sent, stated"},
    {"say", "report, state, show"},
    {"says", "reports, states, shows"},
    {"so long", "for at most `limit`"},
    {"so many", "n"},
    {"stood", "was blocked, stopped"},
    {"tell", "report, ask, distinguish"},
    {"tells", "reports, asks, distinguishes"},
    {"told", "informed, reported, asked"},
    {"under way", "in flight, in progress"},
};

// Returns whether the word is the name of the function with which scripts print a line.
bool IsCallInScript(const SourceFile& file, size_t line, const std::string& word) {
  const bool is_script = file.path.ends_with(".py") || file.path == "run" || file.path == ".ci/run";
  return is_script && word == "say" && CommentText(file.lines[line - 1]).empty();
}

// Returns the lines with retired phrases, each with the phrase.
std::vector<std::pair<size_t, std::string>> RetiredPhrases(const SourceFile& file) {
  std::vector<std::pair<size_t, std::string>> found;
  const std::vector<ProseLine> prose = ProseOf(file);
  for (const auto& [phrase, plain] : kRetired) {
    for (const size_t line : LinesWith(prose, phrase)) {
      if (!IsCallInScript(file, line, phrase)) found.emplace_back(line, phrase);
    }
  }
  return found;
}

void ExpectPlainWords(const std::vector<SourceFile>& files) {
  for (const SourceFile& file : files) {
    if (file.path == "tests/tidy/prose_test.cc") continue;  // it has the list
    for (const auto& [line, phrase] : RetiredPhrases(file)) {
      ADD_FAILURE() << file.path << ":" << line << ": \"" << phrase
                    << "\"; better: " << kRetired.at(phrase);
    }
  }
}

TEST(Prose, CodeUsesTheWordsOfTheField) { ExpectPlainWords(ProgramFiles()); }

TEST(Prose, PagesUseTheWordsOfTheField) {
  ASSERT_GT(Pages().size(), 10u) << "run in the root of the repository";
  ExpectPlainWords(Pages());
}

TEST(Prose, PhrasesAreFoundInCommentsAndStringsAlone) {
  const SourceFile file{
      "a.cc",
      {"int stood = Lines(\"a'b\", '\"');  // is handed", "// over, and \"beside\" it",
       "Log(\"Under  way: {}\", beside);", "int under_way = 1;"}};
  const std::vector<ProseLine> prose = ProseOf(file);
  EXPECT_EQ(LinesWith(prose, "stood"), std::vector<size_t>());
  EXPECT_EQ(LinesWith(prose, "handed over"), std::vector<size_t>({1}));
  EXPECT_EQ(LinesWith(prose, "beside"), std::vector<size_t>({2}));
  EXPECT_EQ(LinesWith(prose, "under way"), std::vector<size_t>({3}));
  EXPECT_EQ(LinesWith(prose, "way"), std::vector<size_t>({3}));
}

TEST(Prose, TheFunctionSayOfScriptsIsNoProse) {
  using Found = std::vector<std::pair<size_t, std::string>>;
  const std::vector<std::string> lines = {"say \"2 of 3\"", "# it says why", "# to say why"};
  EXPECT_EQ(RetiredPhrases({"run", lines}), Found({{3, "say"}, {2, "says"}}));
  EXPECT_EQ(RetiredPhrases({"a.md", {"Pages say", "and tell, as it tells."}}),
            Found({{1, "say"}, {2, "tell"}, {2, "tells"}}));
}

TEST(Prose, PhrasesAreFoundInNamesOfTests) {
  const SourceFile file{"a.cc",
                        {"TEST(A, IsHandedOverOnce) {", "TEST_F(B, StaysIn8Bits) {",
                         "TEST_P(C, TheRowsAreBeside16Others) {", "int HandedOver = 1;"}};
  const std::vector<ProseLine> prose = ProseOf(file);
  EXPECT_EQ(LinesWith(prose, "handed over"), std::vector<size_t>({1}));
  EXPECT_EQ(LinesWith(prose, "in 8 bits"), std::vector<size_t>({2}));
  EXPECT_EQ(LinesWith(prose, "beside"), std::vector<size_t>({3}));
  const SourceFile script{"a.py", {"    def test_a_row_is_handed_over(self):"}};
  EXPECT_EQ(LinesWith(ProseOf(script), "handed over"), std::vector<size_t>({1}));
}

TEST(Prose, BareOpenersAfterCodeAreFound) {
  for (const char* word :
       {"of", "Of", "what", "What", "which", "Which", "how", "How", "why", "Why"})
    EXPECT_TRUE(HasBareOpenerAfterCode("  int ranks = 0;  // " + std::string(word) + " a job"));
  EXPECT_TRUE(HasBareOpenerAfterCode("enum class Kind {  // of a job"));
  EXPECT_FALSE(HasBareOpenerAfterCode("  int ranks = 0;  // often zero"));
  EXPECT_FALSE(HasBareOpenerAfterCode("  int ranks = 0;  // those of a job"));
  EXPECT_FALSE(HasBareOpenerAfterCode("  // of a job"));
}

TEST(Prose, BareOpenersAreFound) {
  EXPECT_TRUE(HasBareOpener("Of the job's own.", "Of the job's own."));
  EXPECT_TRUE(HasBareOpener("What a rank has.", "What a rank has."));
  EXPECT_TRUE(HasBareOpener("Which ranks wait.", "Which ranks wait."));
  EXPECT_FALSE(HasBareOpener("Often called.", "Often called."));
  EXPECT_FALSE(HasBareOpener("The bytes of a value.", "The bytes of a value."));
}

}  // namespace
}  // namespace troupe
