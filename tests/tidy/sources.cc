#include "tests/tidy/sources.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::vector<SourceFile> ReadSources() {
  static const std::set<std::string> kExtensions = {".h", ".cc", ".cu", ".def", ".proto"};
  std::vector<SourceFile> files;
  for (const std::string& folder : SourceFolders()) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!kExtensions.contains(entry.path().extension())) continue;
      SourceFile file{entry.path().generic_string(), {}};
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) file.lines.push_back(line);
      files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace

const std::vector<std::string>& SourceFolders() {
  static const std::vector<std::string> kFolders = {
      "base", "proto",   "actor",       "collective", "model", "plan",  "kernels", "checkpoint",
      "data", "interop", "coordinator", "worker",     "cli",   "tests", "bench"};
  return kFolders;
}

const std::vector<SourceFile>& Sources() {
  static const std::vector<SourceFile> kSources = ReadSources();
  return kSources;
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
