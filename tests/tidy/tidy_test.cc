// Checks the coding rules that a program can check: include arrows, file sizes, leftovers, names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/tidy/sources.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// The folders that each folder may include (docs/architecture.md). "a/b.h" permits a single header.
const std::map<std::string, std::set<std::string>> kArrows = {
    {"base", {}},
    {"actor", {"base"}},
    {"collective", {"base"}},
    {"model", {"base"}},
    {"plan", {"base", "proto", "model"}},
    {"kernels",
     {"base", "model", "collective/communicator.h", "collective/device_communicator.h",
      "collective/device_statistics.h", "collective/statistics.h"}},
    {"checkpoint", {"base", "proto"}},
    {"data", {"base", "proto"}},
    {"interop", {"base", "proto", "model", "checkpoint", "data"}},
    {"coordinator", {"base", "proto", "actor", "model", "plan", "checkpoint", "data"}},
    {"worker",
     {"base", "proto", "actor", "collective", "model", "plan", "kernels", "checkpoint", "data",
      "interop"}},
    {"cli", {"base", "proto", "model", "plan", "checkpoint", "data", "interop"}},
};

// Returns the folder of an included header, where generated protobuf headers count as proto; empty
// for a header that is not ours.
std::string IncludedFolder(const std::string& header) {
  if (header.starts_with("troupe/v1/") || header.starts_with("google/rpc/")) return "proto";
  const std::string folder = TopFolder(header);
  return header.find('/') != std::string::npos && std::ranges::count(SourceFolders(), folder) ? folder : "";
}

TEST(Tidy, ThereAreSourcesToLookAt) { EXPECT_GT(Sources().size(), 50u); }

TEST(Tidy, IncludesFollowTheArrowsOfTheDesign) {
  for (const SourceFile& file : Sources()) {
    const std::string from = TopFolder(file.path);
    const auto arrows = kArrows.find(from);
    if (arrows == kArrows.end() || IsTest(file.path)) continue;
    for (const std::string& line : file.lines) {
      const std::string header = IncludedHeader(line), to = IncludedFolder(header);
      if (to.empty() || to == from) continue;
      EXPECT_TRUE(arrows->second.contains(to) || arrows->second.contains(header))
          << file.path << " includes \"" << header << "\": " << from << " may not include " << to;
    }
  }
}

TEST(Tidy, CoordinatorAndWorkerNeverSeeEachOtherEvenInTests) {
  for (const SourceFile& file : Sources()) {
    const std::string from = TopFolder(file.path);
    const std::string other = from == "worker" ? "coordinator" : from == "coordinator" ? "worker" : "";
    if (other.empty()) continue;
    for (const std::string& line : file.lines) {
      EXPECT_FALSE(line.starts_with("#include \"" + other + "/")) << file.path << ": " << line;
    }
  }
}

TEST(Tidy, HeadersAreGuardedByTheirPath) {
  for (const SourceFile& file : Sources()) {
    if (!file.path.ends_with(".h")) continue;
    std::string guard = "TROUPE_" + file.path + "_";
    for (char& c : guard) c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::toupper(c)) : '_';
    bool found = false;
    for (const std::string& line : file.lines) found |= line == "#ifndef " + guard || line == "#pragma once";
    EXPECT_TRUE(found) << file.path << " has no guard " << guard;
  }
}

TEST(Tidy, NothingIsLeftOver) {
  // The words are joined here so that this file does not match itself.
  const std::regex leftover("\\b(" + std::string("TO") + "DO|FIX" + "ME|XX" + "X|HA" + "CK)\\b");
  for (const SourceFile& file : Sources()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.lines[i], leftover)) << file.path << ":" << i + 1 << ": " << file.lines[i];
    }
  }
}

// Files that may exceed 500 lines, with the reason.
const std::map<std::string, std::string> kLongFiles = {
    {"coordinator/machine.cc", "the dispatch of every event of the coordinator"},
    {"tests/simulation/catalog_observer.cc", "every invariant of what the catalog holds"},
    {"proto/troupe/v1/worker.proto", "every message of the one stream between coordinator and worker"},
};

TEST(Tidy, FilesOverFiveHundredLinesHaveAReason) {
  for (const SourceFile& file : Sources()) {
    if (IsTest(file.path)) continue;
    EXPECT_TRUE(file.lines.size() <= 500 || kLongFiles.contains(file.path))
        << file.path << " has " << file.lines.size() << " lines";
  }
}

TEST(Tidy, NamesSayWhatAThingIs) {
  const std::regex vague("(^|_)(util|utils|helpers?|manager|misc|new|fast)(_|\\.|$)");
  for (const SourceFile& file : Sources()) {
    const std::string name = fs::path(file.path).filename();
    EXPECT_FALSE(std::regex_search(name, vague)) << file.path;
  }
}

TEST(Tidy, TestsNeverWaitBySleeping) {
  for (const SourceFile& file : Sources()) {
    if (!IsTest(file.path) || file.path.starts_with("tests/tidy/")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_EQ(file.lines[i].find("sleep_for("), std::string::npos) << file.path << ":" << i + 1;
      EXPECT_EQ(file.lines[i].find("usleep("), std::string::npos) << file.path << ":" << i + 1;
    }
  }
}

}  // namespace
}  // namespace troupe
