#include "tests/tidy/sources.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

namespace fs = std::filesystem;

SourceFile ReadFile(const fs::path& path) {
  SourceFile file{path.generic_string(), {}};
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

// Reads the files of these extensions in `folders`.
std::vector<SourceFile> ReadFiles(const std::vector<std::string>& folders,
                                  const std::set<std::string>& extensions) {
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (extensions.contains(entry.path().extension())) files.push_back(ReadFile(entry.path()));
    }
  }
  return files;
}

// Returns the code of a line, without indentation and comment.
std::string CodeOf(const std::string& line) {
  size_t end = line.find("//");
  // The slashes of an address in a text are no comment.
  while (end != std::string::npos && end != 0 && line[end - 1] != ' ') {
    end = line.find("//", end + 1);
  }
  const std::string code = line.substr(0, end);
  const size_t first = code.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return code.substr(first, code.find_last_not_of(' ') - first + 1);
}

// The folders with sources, and those with other files that people read.
std::vector<std::string> AllFolders() {
  std::vector<std::string> folders = SourceFolders();
  for (const char* folder : {"dashboards", "deploy", "docs", "examples", "python"})
    folders.push_back(folder);
  return folders;
}

std::vector<SourceFile> ReadProgramFiles() {
  std::vector<SourceFile> files = Sources();
  for (SourceFile& file : ReadFiles(AllFolders(), {".py", ".sh", ".cmake", ".txt"})) {
    const bool is_text = file.path.ends_with(".txt");
    if (!is_text || file.path.ends_with("/CMakeLists.txt")) files.push_back(std::move(file));
  }
  for (const char* path : {"CMakeLists.txt", "CMakePresets.json", "run", ".ci/run"})
    files.push_back(ReadFile(path));
  return files;
}

std::vector<SourceFile> ReadPages() {
  std::vector<SourceFile> pages = ReadFiles(AllFolders(), {".md"});
  for (const char* path : {"README.md", "CONTRIBUTING.md"}) pages.push_back(ReadFile(path));
  return pages;
}

}  // namespace

const std::vector<std::string>& SourceFolders() {
  static const std::vector<std::string> kFolders = {
      "base", "proto",   "actor",  "collective",  "model",  "plan", "kernels", "checkpoint",
      "data", "interop", "report", "coordinator", "worker", "cli",  "tests",   "bench"};
  return kFolders;
}

const std::vector<SourceFile>& Sources() {
  static const std::vector<SourceFile> kSources =
      ReadFiles(SourceFolders(), {".h", ".cc", ".cu", ".def", ".proto"});
  return kSources;
}

const std::vector<SourceFile>& ProgramFiles() {
  static const std::vector<SourceFile> kFiles = ReadProgramFiles();
  return kFiles;
}

const std::vector<SourceFile>& Pages() {
  static const std::vector<SourceFile> kPages = ReadPages();
  return kPages;
}

std::string TextOf(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> Matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

std::vector<Statement> Statements(const SourceFile& file) {
  std::vector<Statement> statements;
  bool is_complete = true;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string code = CodeOf(file.lines[i]);
    if (code.empty()) continue;
    if (is_complete || file.lines[i].front() != ' ') {
      statements.push_back({i + 1, code});
    } else {
      statements.back().text += " " + code;
    }
    is_complete = code.ends_with(';') || code.ends_with('{') || code.ends_with('}');
  }
  return statements;
}

std::string TopFolder(const std::string& path) { return path.substr(0, path.find('/')); }

bool IsTest(const std::string& path) {
  return path.ends_with("_test.cc") || path.ends_with("_test.h") ||
         path.find("/testing/") != std::string::npos;
}

std::string IncludedHeader(const std::string& line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) return {};
  return line.substr(kInclude.size(), line.find('"', kInclude.size()) - kInclude.size());
}

}  // namespace troupe
