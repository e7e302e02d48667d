// The source files of the repository, for the tests that check coding rules.
#ifndef TROUPE_TESTS_TIDY_SOURCES_H_
#define TROUPE_TESTS_TIDY_SOURCES_H_

#include <map>
#include <regex>
#include <string>
#include <vector>

namespace troupe {

struct SourceFile {
  std::string path;  // relative to the root: "checkpoint/format/manifest.h"
  std::vector<std::string> lines;
};

// A statement, or its part up to a brace, joined into one line without comments.
struct Statement {
  size_t line = 0;  // the number of its first line, from 1
  std::string text;
};

// The top folders with sources.
const std::vector<std::string>& SourceFolders();

// Returns all C++, CUDA and protobuf files. REQUIRES: the working directory is the repository's
// root.
const std::vector<SourceFile>& Sources();

// Returns all C++, CUDA, protobuf, Python, CMake and shell files. REQUIRES: as of Sources().
const std::vector<SourceFile>& ProgramFiles();

// Returns all Markdown pages. REQUIRES: as of Sources().
const std::vector<SourceFile>& Pages();

// Returns the text of a file; empty if it cannot be read.
std::string TextOf(const std::string& path);

// Returns the first group of each match of `pattern` in `text`.
std::vector<std::string> Matches(const std::string& text, const std::regex& pattern);

// Returns the statements of a file in their order. It relies on the layout of clang-format: a line
// at indentation 0 begins a statement. A label belongs to the statement after it.
std::vector<Statement> Statements(const SourceFile& file);

// Returns "checkpoint" for "checkpoint/format/manifest.h".
std::string TopFolder(const std::string& path);

// Whether the file is a test or serves tests alone.
bool IsTest(const std::string& path);

// Returns the header of `#include "…"`; empty for other lines.
std::string IncludedHeader(const std::string& line);

}  // namespace troupe

#endif  // TROUPE_TESTS_TIDY_SOURCES_H_
