// Checks the comments that a program can check: openers whose subject the reader would have to
// guess.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "tests/tidy/sources.h"

namespace troupe {
namespace {

// Returns the text of a line that is nothing but a comment; empty for other lines.
std::string CommentText(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string::npos || line.compare(begin, 3, "// ") != 0) return {};
  return line.substr(begin + 3);
}

// Whether a comment block begins with "Of" or "What", so that its subject is missing. A question is
// a sentence.
bool HasBareOpener(const std::string& first_line, const std::string& whole) {
  static const std::regex opener("^(Of|What)\\b");
  return std::regex_search(first_line, opener) && whole.find('?') == std::string::npos;
}

TEST(Prose, CommentsBeginWithTheirSubject) {
  for (const SourceFile& file : Sources()) {
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

TEST(Prose, BareOpenersAreFound) {
  EXPECT_TRUE(HasBareOpener("Of the job's own.", "Of the job's own."));
  EXPECT_TRUE(HasBareOpener("What a rank has.", "What a rank has."));
  EXPECT_FALSE(HasBareOpener("Often called.", "Often called."));
  EXPECT_FALSE(HasBareOpener("The bytes of a value.", "The bytes of a value."));
}

}  // namespace
}  // namespace troupe
