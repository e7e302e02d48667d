// Holds the pages to the tree: links and paths lead somewhere, every folder of sources is
// described, every page is in the index, and every key is one of the job file.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/tidy/sources.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// The texts between backticks within a line.
std::vector<std::string> Quoted(const std::string& text) {
  return Matches(text, std::regex("`([^`\n]+)`"));
}

// The anchors that GitHub gives to the headings of a page.
std::set<std::string> Anchors(const std::string& text) {
  std::set<std::string> anchors;
  for (const std::string& heading : Matches(text, std::regex("\n#+ ([^\n]*)"))) {
    std::string anchor;
    for (const char c : heading) {
      if (c == ' ' || c == '-') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(Docs, LinksLeadToFilesAndHeadings) {
  const std::regex link(R"(\]\(([^)\s]+)\))");
  for (const SourceFile& file : Pages()) {
    const fs::path page = file.path;
    for (const std::string& target : Matches(TextOf(page), link)) {
      if (target.starts_with("http") || target.find('[') != std::string::npos) continue;
      const size_t hash = std::min(target.find('#'), target.size());
      const fs::path linked =
          hash == 0 ? page : (page.parent_path() / target.substr(0, hash)).lexically_normal();
      EXPECT_TRUE(fs::exists(linked)) << page << " links to " << target;
      if (hash == target.size() || linked.extension() != ".md") continue;
      EXPECT_TRUE(Anchors("\n" + TextOf(linked)).contains(target.substr(hash + 1)))
          << page << " links to " << target;
    }
  }
}

// Whether a worked example of CONTRIBUTING.md would add the path.
bool IsOfAnExample(const std::string& path) {
  static const std::regex kExample("(.*/)?(square(_kernels)?|post_norm_mlp|eager_1f1b).*");
  return std::regex_match(path, kExample);
}

TEST(Docs, PathsExist) {
  std::set<std::string> top_folders = {"dashboards", "deploy", "docs", "examples", "python"};
  top_folders.insert(SourceFolders().begin(), SourceFolders().end());
  const std::regex path("[\\w./-]+");
  size_t paths = 0;
  for (const SourceFile& file : Pages()) {
    const fs::path page = file.path;
    for (const std::string& text : Quoted(TextOf(page))) {
      if (!std::regex_match(text, path) || IsOfAnExample(text)) continue;
      if (text.find('/') == std::string::npos || !top_folders.contains(TopFolder(text))) continue;
      ++paths;
      // A module is named without its extension.
      const bool exists = std::ranges::any_of(
          std::vector<std::string>{"", ".h", ".cc", ".py"},
          [&](const std::string& extension) { return fs::exists(text + extension); });
      EXPECT_TRUE(exists) << page << " names " << text;
    }
  }
  EXPECT_GT(paths, 100u);
}

// The names of all tests, "Suite.Name", of C++ and of Python.
std::set<std::string> TestNames() {
  static const std::regex kTest(R"(^TEST(_F|_P)?\((\w+),\s*(\w+)\).*)");
  static const std::regex kClass(R"(^class (\w+)\b.*)");
  static const std::regex kMethod(R"(^    def (test_\w+)\(.*)");
  std::set<std::string> names;
  std::smatch match;
  for (const SourceFile& file : ProgramFiles()) {
    std::string suite;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      std::string line = file.lines[i];
      if (line.starts_with("TEST")) {
        if (line.ends_with(',') && i + 1 < file.lines.size()) line += file.lines[i + 1];
        if (std::regex_match(line, match, kTest))
          names.insert(match[2].str() + "." + match[3].str());
      } else if (line.starts_with("class ") && std::regex_match(line, match, kClass)) {
        suite = match[1];
      } else if (line.starts_with("    def test_") && std::regex_match(line, match, kMethod)) {
        names.insert(suite + "." + match[1].str());
      }
    }
  }
  return names;
}

TEST(Docs, TestsThatPagesNameExist) {
  const std::set<std::string> names = TestNames();
  ASSERT_GT(names.size(), 1000u);
  const std::regex test(R"([A-Z]\w+\.([A-Z][A-Za-z0-9]{9,}|test_\w+))");
  size_t named = 0;
  for (const SourceFile& file : Pages()) {
    for (const std::string& text : Quoted(TextOf(file.path))) {
      if (!std::regex_match(text, test)) continue;
      ++named;
      EXPECT_TRUE(names.contains(text)) << file.path << " names " << text;
    }
  }
  EXPECT_GT(named, 30u);
}

TEST(Docs, EveryAttackOfTheSecurityPageNamesItsTest) {
  const std::string page = TextOf("docs/security.md");
  const size_t begin = page.find("\n## Attacks that were tried\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string part = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  const std::vector<std::string> rows = Matches(part, std::regex("\n\\|([^\n]*)\\|"));
  ASSERT_GT(rows.size(), 12u);
  for (size_t i = 2; i < rows.size(); ++i) {  // after the header and its rule
    const std::string last = rows[i].substr(rows[i].rfind('|') + 1);
    EXPECT_FALSE(Matches(last, std::regex("`(\\w+\\.\\w+)`")).empty()) << rows[i];
  }
}

TEST(Docs, EveryFolderOfSourcesIsDescribed) {
  std::set<std::string> described;
  for (const std::string& text : Quoted(TextOf("docs/architecture.md"))) described.insert(text);
  std::set<std::string> folders;
  for (const SourceFile& file : Sources()) {
    folders.insert(file.path.substr(0, file.path.rfind('/') + 1));
  }
  ASSERT_GT(folders.size(), 50u);
  for (const std::string& folder : folders) {
    if (folder.starts_with("proto/")) continue;
    // Folders with the same name in several places are described once.
    const std::string name = folder.substr(folder.rfind('/', folder.size() - 2) + 1);
    EXPECT_TRUE(described.contains(folder) || described.contains(name)) << folder;
  }
}

TEST(Docs, EveryPageIsInTheIndex) {
  const std::string index = TextOf("docs/README.md");
  for (const SourceFile& file : Pages()) {
    const fs::path page = file.path;
    const std::string name = page.filename();
    if (page.parent_path() != "docs" || name == "README.md") continue;
    EXPECT_NE(index.find("](" + name + ")"), std::string::npos) << name;
  }
}

TEST(Docs, KeysAreThoseOfTheJobFile) {
  std::set<std::string> keys, messages;
  for (std::string key : Matches(TextOf("docs/job-keys.md"), std::regex("\n\\| `([^`]+)` \\|"))) {
    key = std::regex_replace(key, std::regex("\\[\\]"), "");  // lists have it
    keys.insert(key);
    for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
      messages.insert(key.substr(0, dot));
    }
  }
  ASSERT_GT(keys.size(), 50u);
  // Names of tensors and of files begin as keys do.
  const std::set<std::string> others = {"model.embed_tokens.weight", "model.safetensors",
                                        "model.safetensors.index.json", "optimizer.applied_steps",
                                        "lr_schedule.cooldown_steps"};
  for (const SourceFile& file : Pages()) {
    const fs::path page = file.path;
    for (const std::string& text : Quoted(TextOf(page))) {
      const std::string key = text.substr(0, text.find(": "));
      if (!std::regex_match(key, std::regex("[a-z_]+(\\.[a-z_]+)+")) || others.contains(key))
        continue;
      if (!messages.contains(TopFolder(std::regex_replace(key, std::regex("\\."), "/")))) continue;
      EXPECT_TRUE(keys.contains(key) || messages.contains(key)) << page << " names " << key;
    }
  }
}

}  // namespace
}  // namespace troupe
