// Checks the coding rules that a program can check: include arrows, file sizes, leftovers, names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
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
    {"report", {"base", "proto", "plan"}},
    {"coordinator", {"base", "proto", "actor", "model", "plan", "checkpoint", "data", "report"}},
    {"worker",
     {"base", "proto", "actor", "collective", "model", "plan", "kernels", "checkpoint", "data",
      "interop"}},
    {"cli",
     {"base", "proto", "model", "plan", "checkpoint", "data", "interop", "report",
      "kernels/xla/compile/stage_compiler.h"}},
};

// Returns the folder of an included header, where generated protobuf headers count as proto; empty
// for a header that is not ours.
std::string IncludedFolder(const std::string& header) {
  if (header.starts_with("troupe/v1/") || header.starts_with("google/rpc/")) return "proto";
  const std::string folder = TopFolder(header);
  return header.find('/') != std::string::npos && std::ranges::count(SourceFolders(), folder)
             ? folder
             : "";
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
    const std::string other = from == "worker"        ? "coordinator"
                              : from == "coordinator" ? "worker"
                                                      : "";
    if (other.empty()) continue;
    for (const std::string& line : file.lines) {
      EXPECT_FALSE(line.starts_with("#include \"" + other + "/")) << file.path << ": " << line;
    }
  }
}

TEST(Tidy, HeadersAreGuardedByTheirPath) {
  // Each file of kernels/cpu/levels begins and ends a part with them, and one batch has several.
  const std::set<std::string> kRepeated = {"kernels/cpu/level_end.h", "kernels/cpu/level_target.h"};
  for (const SourceFile& file : Sources()) {
    if (!file.path.ends_with(".h") || kRepeated.contains(file.path)) continue;
    std::string guard = "TROUPE_" + file.path + "_";
    for (char& c : guard)
      c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::toupper(c)) : '_';
    bool found = false;
    for (const std::string& line : file.lines)
      found |= line == "#ifndef " + guard || line == "#pragma once";
    EXPECT_TRUE(found) << file.path << " has no guard " << guard;
  }
}

TEST(Tidy, NothingIsLeftOver) {
  // The words are joined here so that this file does not match itself.
  const std::regex leftover("\\b(" + std::string("TO") + "DO|FIX" + "ME|XX" + "X|HA" + "CK)\\b");
  for (const SourceFile& file : Sources()) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.lines[i], leftover))
          << file.path << ":" << i + 1 << ": " << file.lines[i];
    }
  }
}

// Files that may exceed 500 lines, with the reason.
const std::map<std::string, std::string> kLongFiles = {
    {"coordinator/machine/machine.cc", "the dispatch of every event of the coordinator"},
    {"kernels/cuda/kernels/quantize.cu", "the kernels of one operation, which share their tile"},
    {"tests/simulation/catalog_observer.cc", "every invariant of what the catalog holds"},
    {"proto/troupe/v1/worker.proto",
     "every message of the one stream between coordinator and worker"},
};

TEST(Tidy, FilesOverFiveHundredLinesHaveAReason) {
  for (const SourceFile& file : Sources()) {
    if (IsTest(file.path)) continue;
    EXPECT_TRUE(file.lines.size() <= 500 || kLongFiles.contains(file.path))
        << file.path << " has " << file.lines.size() << " lines";
    EXPECT_FALSE(file.lines.size() <= 500 && kLongFiles.contains(file.path))
        << file.path << " needs no exception";
  }
}

// Matches a comparison with one of `literals`, alternatives of a regex.
std::regex ComparisonWith(const std::string& literals) {
  const std::string one = "(" + literals + ")";
  return std::regex("[=!]= *" + one + "|" + one + " *[=!]=|case " + one +
                    "|(find|contains|count|starts_with|ends_with)\\([^;]*" + one);
}

// Returns the statements of `file` in which `pattern` is found, as "path:number: statement".
std::vector<std::string> MatchingStatements(const SourceFile& file, const std::regex& pattern) {
  std::vector<std::string> found;
  for (const Statement& statement : Statements(file)) {
    if (std::regex_search(statement.text, pattern))
      found.push_back(file.path + ":" + std::to_string(statement.line) + ": " + statement.text);
  }
  return found;
}

// Expects that no code of `folders` compares with one of `literals`, alternatives of a regex.
void ExpectNoneCompares(const std::string& literals, const std::set<std::string>& folders) {
  const std::regex compares = ComparisonWith(literals);
  for (const SourceFile& file : Sources()) {
    if (!folders.contains(TopFolder(file.path)) || IsTest(file.path)) continue;
    for (const std::string& found : MatchingStatements(file, compares)) ADD_FAILURE() << found;
  }
}

// Returns the alternatives of a regex: `texts` with "|" between them.
std::string Joined(const std::set<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : "|") + text;
  return joined;
}

// Returns what the group of `pattern` matches in the files at `path`, joined by "|".
std::string Alternatives(const std::string& path, const std::regex& pattern) {
  std::set<std::string> found;
  for (const SourceFile& file : Sources()) {
    if (!file.path.starts_with(path)) continue;
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (std::regex_search(line, match, pattern)) found.insert(match[1]);
    }
  }
  return Joined(found);
}

TEST(Tidy, OnlyItsRecordHasTheLetterOfABlock) {
  const std::string letters = Alternatives("model/blocks/", std::regex("\\.letter = ('.')"));
  ASSERT_NE(letters, "");
  ExpectNoneCompares(letters, {"model", "plan", "kernels", "checkpoint", "data", "interop",
                               "report", "coordinator", "worker", "cli"});
}

TEST(Tidy, OnlyTheirTraitsHaveTheKindsOfDevices) {
  const std::string kinds =
      Alternatives("plan/device/device_traits.cc", std::regex("\\.kind = (\"[a-z]+\")"));
  ASSERT_NE(kinds, "");
  ExpectNoneCompares(kinds, {"plan", "report", "coordinator", "worker", "cli"});
}

// Returns the words of the enumerated keys of a schema: "wsd" for the value DECAY_TYPE_WSD of an
// enum DecayType that the option `words` of a key names.
std::set<std::string> WordsOfKeys(const std::string& schema) {
  std::set<std::string> words;
  for (const std::string& type : Matches(schema, std::regex("words: \"(\\w+)\""))) {
    const auto is_upper = [](unsigned char c) { return std::isupper(c) != 0; };
    const size_t prefix = type.size() + static_cast<size_t>(std::ranges::count_if(type, is_upper));
    for (const std::string& body : Matches(schema, std::regex("enum " + type + " \\{([^}]*)\\}"))) {
      for (const std::string& value : Matches(body, std::regex("(\\w+) = [0-9]+;"))) {
        std::string word = value.substr(prefix);
        std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
        words.insert(std::move(word));
      }
    }
  }
  return words;
}

TEST(Tidy, NoCodeComparesTheWordsOfKeys) {
  const std::set<std::string> words = WordsOfKeys(TextOf("proto/troupe/v1/job.proto"));
  ASSERT_GT(words.size(), 20u);
  ASSERT_TRUE(words.contains("inverse_sqrt"));
  ExpectNoneCompares("\"(" + Joined(words) + ")\"",
                     {"plan", "report", "coordinator", "worker", "interop", "cli"});
}

TEST(Tidy, ComparisonsWithTheWordsOfKeysAreFound) {
  const std::set<std::string> words = WordsOfKeys(
      "enum DecayType {\n  DECAY_TYPE_WSD = 0;\n  DECAY_TYPE_INVERSE_SQRT = 1;\n}\n"
      "enum OtherType {\n  OTHER_TYPE_WORD = 0;\n}\n"
      "optional string decay_type = 2 [(key) = {default: \"wsd\" words: \"DecayType\"}];\n");
  EXPECT_EQ(words, (std::set<std::string>{"inverse_sqrt", "wsd"}));
  const SourceFile file{
      "a.cc",
      {"if (type == \"wsd\") return 1;", "if (type == \"wsd2\") return 2;",
       "spec.set_decay_type(\"wsd\");", "return \"inverse_sqrt\" != type;",
       "  const bool is_wsd = type.has_value() && *type ==", "                      \"wsd\";",
       "  return std::ranges::count(", "      types, \"wsd\");", "  // type == \"wsd\""}};
  const std::vector<std::string> expected = {
      "a.cc:1: if (type == \"wsd\") return 1;", "a.cc:4: return \"inverse_sqrt\" != type;",
      "a.cc:5: const bool is_wsd = type.has_value() && *type == \"wsd\";",
      "a.cc:7: return std::ranges::count( types, \"wsd\");"};
  EXPECT_EQ(MatchingStatements(file, ComparisonWith("\"(" + Joined(words) + ")\"")), expected);
}

TEST(Tidy, ComparisonsWithTheLettersOfBlocksAreFound) {
  const SourceFile file{"a.cc",
                        {"if (layer.letter ==", "    'A') {", "switch (letter) {",
                         "  case 'D':", "    return 1;", "}", "spec.set_letter('A');"}};
  const std::vector<std::string> expected = {"a.cc:1: if (layer.letter == 'A') {",
                                             "a.cc:4: case 'D': return 1;"};
  EXPECT_EQ(MatchingStatements(file, ComparisonWith("'A'|'D'")), expected);
}

// Expects that no product code but the header `list` writes one of the words that it defines.
void ExpectOnlyListWritesItsWords(const std::string& list) {
  const std::string words = Alternatives(list, std::regex("= \"([A-Z_]+)\";"));
  ASSERT_NE(words, "");
  const std::regex literal("\"(" + words + ")\"");
  const std::set<std::string> folders = {"base", "report", "coordinator", "worker", "cli"};
  for (const SourceFile& file : Sources()) {
    if (!folders.contains(TopFolder(file.path)) || IsTest(file.path) || file.path == list) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.lines[i], literal))
          << file.path << ":" << i + 1 << ": " << file.lines[i];
    }
  }
}

TEST(Tidy, OnlyTheirListHasTheCausesOfFailures) {
  ExpectOnlyListWritesItsWords("base/failure_cause.h");
}

TEST(Tidy, OnlyTheirListHasTheStatesOfWorkers) {
  ExpectOnlyListWritesItsWords("base/worker_state.h");
}

// Matches a call that records an event whose kind is a literal.
const std::regex kLiteralEvent("RecordEvent\\([^;\"]*,[^;,\"]*\"[A-Z_]+\"[^;]*\\)");

TEST(Tidy, OnlyTheirListHasTheKindsOfEvents) {
  for (const SourceFile& file : Sources()) {
    if (TopFolder(file.path) != "coordinator" || IsTest(file.path)) continue;
    std::string text;
    for (const std::string& line : file.lines) text += line + "\n";
    EXPECT_FALSE(std::regex_search(text, kLiteralEvent))
        << file.path << ": coordinator/state/event_kind.h lists the kinds";
  }
}

TEST(Tidy, LiteralKindsOfEventsAreFound) {
  EXPECT_TRUE(std::regex_search("RecordEvent(job, \"GREW\", text, turn);", kLiteralEvent));
  EXPECT_TRUE(std::regex_search(
      "RecordEvent(\n  job, grew ? \"GREW\" : \"STARTED\",\n text, turn);", kLiteralEvent));
  EXPECT_FALSE(
      std::regex_search("RecordEvent(job, event::kGrew, \"a text\", turn);", kLiteralEvent));
}

// The purpose of a stop is one value; its fields alone could contradict each other.
TEST(Tidy, OnlyStopsHaveTheFieldsOfTheirRecord) {
  const std::regex field("\\b(set_|clear_)?(stop_attempt|grows|leaves_workers|cancels_anyway)\\(");
  size_t found = 0;
  for (const SourceFile& file : Sources()) {
    if (TopFolder(file.path) != "coordinator" || IsTest(file.path)) continue;
    for (const std::string& line : file.lines) {
      if (!std::regex_search(line, field)) continue;
      ++found;
      EXPECT_EQ(file.path, "coordinator/state/stop.cc") << line;
    }
  }
  EXPECT_GT(found, 0u);
}

TEST(Tidy, NamesStateWhatAThingIs) {
  const std::regex vague("(^|_)(util|utils|helpers?|manager|misc|new|fast)(_|\\.|$)");
  for (const SourceFile& file : Sources()) {
    const std::string name = fs::path(file.path).filename();
    EXPECT_FALSE(std::regex_search(name, vague)) << file.path;
  }
}

// Rules and passes are made of programs, never the other way round.
TEST(Tidy, ProgramsDoNotSeeTheRulesOfOperations) {
  for (const SourceFile& file : Sources()) {
    if (!file.path.starts_with("model/program/") || IsTest(file.path)) continue;
    for (const std::string& line : file.lines) {
      EXPECT_FALSE(line.starts_with("#include \"model/ops/")) << file.path << ": " << line;
    }
  }
}

// The kinds of model/program/op_kinds.def.
std::set<std::string> OperationKinds() {
  std::set<std::string> kinds;
  const std::regex row("^TROUPE_OP\\((\\w+), ");
  for (const SourceFile& file : Sources()) {
    if (file.path != "model/program/op_kinds.def") continue;
    for (const std::string& line : file.lines) {
      std::smatch match;
      if (std::regex_search(line, match, row)) kinds.insert(match[1]);
    }
  }
  return kinds;
}

// Operations that no test runs alone, with the reason.
const std::map<std::string, std::string> kUntestedAlone = {
    {"AdamW", "it updates the parameters of a whole program: program_kernels_test.cc"},
    {"Sgd", "as AdamW"},
};

TEST(Tidy, EveryOperationHasATestOfItsKernels) {
  std::set<std::string> untested = OperationKinds();
  EXPECT_GT(untested.size(), 60u);
  for (const auto& [name, reason] : kUntestedAlone) {
    EXPECT_EQ(untested.erase(name), 1u) << "k" << name << " is no operation";
  }
  const std::regex kind("\\bOpKind::k(\\w+)");
  for (const SourceFile& file : Sources()) {
    const std::string name = fs::path(file.path).filename();
    // The tests that every backend compiles, and the headers that they include.
    if (fs::path(file.path).parent_path() != "kernels/testing") continue;
    if (!name.ends_with("_kernels_test.cc") && !name.ends_with("_test.h")) continue;
    for (const std::string& line : file.lines) {
      for (std::sregex_iterator match(line.begin(), line.end(), kind), end; match != end; ++match) {
        untested.erase((*match)[1]);
      }
    }
  }
  for (const std::string& name : untested)
    ADD_FAILURE() << "no kernels/testing/*_kernels_test.cc runs k" << name;
}

// Code that runs for every optimizer asks its record (model/optimizers/optimizer_kind.h).
TEST(Tidy, OnlyAnOptimizersOwnFilesNameWhatItKeeps) {
  const std::regex own("(^|/)(adamw|sgd)[._]");
  for (const SourceFile& file : Sources()) {
    if (IsTest(file.path) || std::regex_search(file.path, own)) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      EXPECT_EQ(code.find("exp_avg"), std::string::npos) << file.path << ":" << i + 1;
      EXPECT_EQ(code.find("momentum_buffer"), std::string::npos) << file.path << ":" << i + 1;
    }
  }
}

// PrintOutput and PrintMessage show what a terminal would obey (base/program/program.h).
TEST(Tidy, ProgramsPrintThroughTheirFrame) {
  const std::regex prints("fmt::print\\(|\\b(std::)?f?printf\\(|std::(cout|cerr)\\b");
  const std::set<std::string> folders = {"base", "cli", "coordinator", "worker"};
  for (const SourceFile& file : Sources()) {
    // A failed check reports a bug of Troupe, and ends the process.
    if (!folders.contains(TopFolder(file.path)) || IsTest(file.path) ||
        file.path == "base/check.cc")
      continue;
    for (const std::string& found : MatchingStatements(file, prints)) ADD_FAILURE() << found;
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
