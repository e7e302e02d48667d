// Checks the layout of files: short lines, and C++ as clang-format writes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/tidy/sources.h"

namespace troupe {
namespace {

constexpr size_t kMostColumns = 100;

// Returns the number of characters of a line in UTF-8.
size_t Columns(const std::string& line) {
  return static_cast<size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TEST(Format, NoLineIsLongerThanAHundredColumns) {
  ASSERT_GT(ProgramFiles().size(), Sources().size()) << "run in the root of the repository";
  for (const SourceFile& file : ProgramFiles()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_LE(Columns(file.lines[i]), kMostColumns)
          << file.path << ":" << i + 1 << ": " << file.lines[i];
    }
  }
}

// Whether a line of a page may be longer, because Markdown cannot break it: a row of a table, an
// image, or code that is indented.
bool MayBeLong(const std::string& line) {
  const size_t start = line.find_first_not_of(' ');
  if (start == std::string::npos) return true;
  const std::string text = line.substr(start);
  return start >= 4 || text.starts_with("|") || text.starts_with("![");
}

// Returns the numbers of the lines of prose that are too long. Those between fences are a program's
// output, or code.
std::vector<size_t> LongLinesOfProse(const std::vector<std::string>& lines) {
  std::vector<size_t> found;
  bool is_fenced = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("```") == lines[i].find_first_not_of(' ') && !lines[i].empty())
      is_fenced = !is_fenced;
    else if (!is_fenced && Columns(lines[i]) > kMostColumns && !MayBeLong(lines[i]))
      found.push_back(i + 1);
  }
  return found;
}

TEST(Format, NoLineOfAPagesProseIsLongerThanAHundredColumns) {
  ASSERT_FALSE(Pages().empty()) << "run in the root of the repository";
  for (const SourceFile& page : Pages()) {
    EXPECT_EQ(LongLinesOfProse(page.lines), std::vector<size_t>()) << page.path;
  }
}

TEST(Format, LongLinesOfProseAreFound) {
  const std::string words(kMostColumns + 1, 'a');
  EXPECT_EQ(LongLinesOfProse({words, "short", "- " + words}), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(LongLinesOfProse({"```", words, "```", words}), (std::vector<size_t>{4}));
  EXPECT_EQ(LongLinesOfProse({"| " + words + " |", "![" + words + "](a.svg)", "    " + words}),
            std::vector<size_t>());
}

TEST(Format, ColumnsAreCharacters) {
  EXPECT_EQ(Columns("a → b"), 5u);
  EXPECT_EQ(Columns(""), 0u);
}

struct Ended {
  int status = 0;
  std::string output;
};

Ended RunShell(const std::string& command) {
  Ended ended;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {.status = -1, .output = "popen failed"};
  std::array<char, 4096> buffer;
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    ended.output.append(buffer.data(), n);
  ended.status = ::pclose(pipe);
  return ended;
}

// Returns the pin of clang-format in tests/requirements.txt, such as "14.0.6".
std::string PinnedVersion() {
  const std::string package = "clang-format==";
  std::ifstream pins("tests/requirements.txt");
  for (std::string line; std::getline(pins, line);) {
    if (line.starts_with(package)) return line.substr(package.size());
  }
  return {};
}

// Returns a clang-format of that version: the one that ./run installs, or the system's; empty if
// there is none.
std::string ClangFormat(const std::string& version) {
  for (const char* tool : {".venv/bin/clang-format", "clang-format-14", "clang-format"}) {
    const Ended ended = RunShell(tool + std::string(" --version 2>/dev/null"));
    if (ended.status == 0 && ended.output.find("version " + version) != std::string::npos)
      return tool;
  }
  return {};
}

TEST(Format, ClangFormatChangesNoFile) {
  const std::string version = PinnedVersion();
  ASSERT_NE(version, "");
  const std::string tool = ClangFormat(version);
  if (tool.empty()) GTEST_SKIP() << "there is no clang-format " << version << ": ./run deps";
  const std::string list = testing::TempDir() + "/troupe_formatted_files";
  std::ofstream out(list);
  for (const SourceFile& file : Sources()) {
    const bool is_code =
        file.path.ends_with(".h") || file.path.ends_with(".cc") || file.path.ends_with(".cu");
    if (is_code) out << file.path << "\n";
  }
  out.close();
  const Ended ended =
      RunShell("xargs -a '" + list + "' -n 100 -P 2 " + tool + " --dry-run -Werror 2>&1");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output, "") << "run clang-format -i on these files";
}

TEST(Format, AFileThatClangFormatChangesIsFound) {
  const std::string version = PinnedVersion();
  const std::string tool = ClangFormat(version);
  if (tool.empty()) GTEST_SKIP() << "there is no clang-format " << version << ": ./run deps";
  const Ended ended =
      RunShell("echo 'int  a ;' | " + tool + " --dry-run -Werror --assume-filename=base/a.cc 2>&1");
  EXPECT_NE(ended.status, 0);
}

}  // namespace
}  // namespace troupe
