// Checks the structure of the sources: modules include each other in one direction, a folder has
// few enough modules to survey, and a function or a test is short enough to read at once. A module
// is a header with its source files of the same name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/tidy/sources.h"

namespace troupe {
namespace {

using Graph = std::map<std::string, std::set<std::string>>;

std::string ModuleOf(const std::string& path) { return path.substr(0, path.rfind('.')); }

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

Graph Modules() {
  std::set<std::string> headers;
  for (const SourceFile& file : Sources()) headers.insert(file.path);
  Graph graph;
  for (const SourceFile& file : Sources()) {
    const std::string from = ModuleOf(file.path);
    graph[from];
    for (const std::string& line : file.lines) {
      const std::string header = IncludedHeader(line);
      if (headers.contains(header) && ModuleOf(header) != from)
        graph[from].insert(ModuleOf(header));
    }
  }
  return graph;
}

// Finds the strongly connected components of more than one module (Tarjan's algorithm).
class CycleFinder {
 public:
  explicit CycleFinder(const Graph& graph) : graph_(graph) {
    for (const auto& [module, included] : graph_) {
      if (!index_.contains(module)) Visit(module);
    }
  }

  const std::vector<std::set<std::string>>& cycles() const { return cycles_; }

 private:
  void Visit(const std::string& module) {
    index_[module] = low_[module] = static_cast<int>(index_.size());
    stack_.push_back(module);
    on_stack_.insert(module);
    for (const std::string& next : graph_.at(module)) {
      if (!index_.contains(next)) {
        Visit(next);
        low_[module] = std::min(low_[module], low_[next]);
      } else if (on_stack_.contains(next)) {
        low_[module] = std::min(low_[module], index_[next]);
      }
    }
    if (low_[module] != index_[module]) return;
    std::set<std::string> component;
    std::string member;
    do {
      member = stack_.back();
      stack_.pop_back();
      on_stack_.erase(member);
      component.insert(member);
    } while (member != module);
    if (component.size() > 1) cycles_.push_back(std::move(component));
  }

  const Graph& graph_;
  std::map<std::string, int> index_, low_;
  std::vector<std::string> stack_;
  std::set<std::string> on_stack_;
  std::vector<std::set<std::string>> cycles_;
};

TEST(Modules, IncludeEachOtherInOneDirection) {
  const Graph graph = Modules();
  ASSERT_GT(graph.size(), 500u) << "run in the root of the repository";
  const CycleFinder finder(graph);
  for (const std::set<std::string>& cycle : finder.cycles()) {
    for (const std::string& module : cycle) {
      for (const std::string& next : graph.at(module)) {
        if (cycle.contains(next)) ADD_FAILURE() << module << " includes " << next << " in a cycle";
      }
    }
  }
}

TEST(Modules, CyclesAreFound) {
  const Graph graph = {{"a", {"b"}}, {"b", {"c"}}, {"c", {"b", "d"}}, {"d", {}}};
  const std::vector<std::set<std::string>> expected = {{"b", "c"}};
  EXPECT_EQ(CycleFinder(graph).cycles(), expected);
}

constexpr size_t kMostModules = 30;

TEST(Modules, AFolderHasFewEnoughToSurvey) {
  std::map<std::string, std::set<std::string>> folders;
  for (const SourceFile& file : Sources()) {
    if (!IsTest(file.path)) folders[FolderOf(file.path)].insert(ModuleOf(file.path));
  }
  for (const auto& [folder, modules] : folders) EXPECT_LE(modules.size(), kMostModules) << folder;
}

// Families of operations. A sub-folder with such a name holds a part of its folder, in the same cut
// on every backend that has it, and is of its folder's layer.
const std::set<std::string> kFamilies = {"collectives", "experts"};

// Returns the folder to whose layer the file belongs.
std::string LayerOf(const std::string& path) {
  const std::string folder = FolderOf(path);
  const size_t slash = folder.rfind('/');
  if (slash == std::string::npos || !kFamilies.contains(folder.substr(slash + 1))) return folder;
  return folder.substr(0, slash);
}

// The layers inside each top folder, lowest first: a folder, with its families, includes only
// folders before it in this list, apart from its own.
const std::map<std::string, std::vector<std::string>> kLayers = {
    {"actor", {"actor", "actor/sim"}},
    {"base",
     {"base/golden", "base/testing", "base/text", "base/program", "base", "base/audit",
      "base/confined", "base/security", "base/http", "base/metrics", "base/store"}},
    {"bench", {"bench", "bench/gpu"}},
    {"checkpoint", {"checkpoint/format", "checkpoint/write", "checkpoint/read", "checkpoint"}},
    {"cli", {"cli/compile", "cli/cluster", "cli/help", "cli/output", "cli/tensorboard", "cli"}},
    {"collective",
     {"collective/algorithm", "collective", "collective/loopback", "collective/nccl",
      "collective/ucx"}},
    {"coordinator",
     {"coordinator/state", "coordinator/faults", "coordinator/history", "coordinator/job",
      "coordinator/machine", "coordinator/engine", "coordinator/access", "coordinator/kubernetes",
      "coordinator/page", "coordinator/service", "coordinator"}},
    {"kernels",
     {"kernels/numerics", "kernels/backend", "kernels/exchange", "kernels/reference", "kernels/cpu",
      "kernels/cpu/levels", "kernels/cuda/emulator", "kernels/cuda/device_code",
      "kernels/cuda/kernels", "kernels/cuda/runtime", "kernels/cuda/libraries",
      "kernels/cuda/emulated", "kernels/xla/text", "kernels/xla/ops", "kernels/xla/pjrt",
      "kernels/xla/runtime", "kernels/xla/compile"}},
    {"model",
     {"model/program", "model/ops", "model/passes", "model/optimizers", "model/blocks", "model"}},
    {"plan",
     {"plan/schedules", "plan/job", "plan/device", "plan/layout", "plan/validate", "plan/cost",
      "plan/text", "plan", "plan/search"}},
    {"report", {"report/text", "report", "report/live"}},
    {"worker",
     {"worker/executor", "worker/rank", "worker/devices", "worker/session", "worker/daemon",
      "worker"}},
};

TEST(Modules, FoldersIncludeLowerLayersOnly) {
  for (const SourceFile& file : Sources()) {
    if (IsTest(file.path)) continue;
    const auto layers = kLayers.find(TopFolder(file.path));
    if (layers == kLayers.end()) continue;
    const auto layer_of = [&](const std::string& path) {
      return std::ranges::find(layers->second, LayerOf(path)) - layers->second.begin();
    };
    const auto own = layer_of(file.path);
    ASSERT_LT(own, std::ssize(layers->second)) << FolderOf(file.path) << " is in no layer";
    for (const std::string& line : file.lines) {
      const std::string header = IncludedHeader(line);
      if (TopFolder(header) != layers->first) continue;
      EXPECT_LE(layer_of(header), own) << file.path << " includes " << header;
    }
  }
}

constexpr size_t kMostFunctionLines = 70;

// Functions that may be longer, as "path name", with the reason.
const std::map<std::string, std::string> kLongFunctions = {
    {"checkpoint/format/manifest_test.cc ValidateManifest.RefusesWhatNoCheckpointMayHold",
     "a table: a change of a manifest and its error in a row"},
    {"kernels/cuda/kernels/attention_grad.cu KeyGradKernel",
     "one kernel; its values stay in registers"},
    {"plan/job/key_warnings_test.cc KeyWarningsTest.EachConditionalKeyIsNamedWhereItHasNoEffect",
     "a table: a key with jobs in which it has and has no effect"},
    {"plan/validate/validate_test.cc ValidateTest.EachRelationIsRefusedNamingFieldAndValue",
     "a table: a wrong value and its error in a row"},
    {"worker/devices/device_health_test.cc DeviceHealth.TheWorstOfWhatHappenedDecides",
     "a table: a sample with events and the verdict in a row"},
};

struct Function {
  std::string name;
  size_t first_line = 0;
  size_t lines = 0;
};

// Whether no function begins with this line.
bool BeginsNoFunction(const std::string& text) {
  static const std::set<std::string> kWords = {"namespace", "struct", "class", "enum",  "union",
                                               "switch",    "if",     "for",   "while", "else",
                                               "do",        "return", "case"};
  const bool is_other =
      std::ranges::any_of(std::vector<std::string>{"//", "}", "#", "INSTANTIATE_"},
                          [&](const auto& begin) { return text.starts_with(begin); });
  const auto end =
      std::ranges::find_if(text, [](unsigned char c) { return !std::isalnum(c) && c != '_'; });
  return is_other || kWords.contains(std::string(text.begin(), end));
}

// Returns "Suite.Name" for the body of a test, whose signature begins with `text` and may go on in
// the next lines; else the word before the parenthesis at `open`.
std::string NameOf(const SourceFile& file, size_t begin, const std::string& text, size_t open) {
  static const std::regex kTest(R"((?:TYPED_)?TEST(?:_F|_P)?\((\w+),\s*(\w+)\).*)");
  const std::string both = begin + 1 < file.lines.size() ? text + file.lines[begin + 1] : text;
  std::smatch test;
  if (std::regex_match(both, test, kTest)) return test[1].str() + "." + test[2].str();
  const size_t name = text.find_last_of(" *&", open) + 1;
  return text.substr(name, open - name);
}

// Finds the C++ functions and bodies of tests defined at indentation 0 or, inside classes, 2. It
// relies on the layout of clang-format: a body begins with a line that ends with `{` and ends with
// `}` at the indentation of the signature's first line.
std::vector<Function> CppFunctions(const SourceFile& file) {
  std::vector<Function> functions;
  for (size_t begin = 0; begin < file.lines.size(); ++begin) {
    const std::string& line = file.lines[begin];
    const size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos || (indent != 0 && indent != 2)) continue;
    const std::string text = line.substr(indent);
    const size_t open = text.find('(');
    if (open == std::string::npos || BeginsNoFunction(text)) continue;
    // The signature goes on over lines of a deeper indentation.
    size_t body = begin;
    while (body < file.lines.size() && !file.lines[body].ends_with("{") &&
           !file.lines[body].ends_with(";") && !file.lines[body].ends_with("}") &&
           body - begin < 12) {
      ++body;
    }
    if (body == file.lines.size() || !file.lines[body].ends_with("{")) continue;
    const std::string close = std::string(indent, ' ') + "}";
    size_t end = body + 1;
    while (end < file.lines.size() && file.lines[end] != close) ++end;
    if (end == file.lines.size()) continue;
    functions.push_back({NameOf(file, begin, text, open), begin + 1, end - begin + 1});
    begin = end;
  }
  return functions;
}

// Finds the functions of a Python file, methods and nested functions too. A function ends before
// the next code that is indented no deeper than its `def`.
std::vector<Function> PythonFunctions(const SourceFile& file) {
  static const std::regex kDef(R"( *(?:async )?def (\w+)\(.*)");
  static const std::regex kQuotes("(\"{3})");
  struct Open {
    size_t indent = 0;
    size_t index = 0;
  };
  std::vector<Function> functions;
  std::vector<Open> open;
  bool is_quoted = false;  // the line begins between triple quotes
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const bool is_code = !is_quoted;
    if (Matches(line, kQuotes).size() % 2 == 1) is_quoted = !is_quoted;
    const size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos || (is_code && line[indent] == '#')) continue;
    // A parenthesis may close the signature at the indentation of its `def`.
    if (is_code && line[indent] != ')') {
      while (!open.empty() && indent <= open.back().indent) open.pop_back();
    }
    std::smatch def;
    if (is_code && std::regex_match(line, def, kDef)) {
      open.push_back({indent, functions.size()});
      functions.push_back({def[1], i + 1, 0});
    }
    for (const Open& outer : open) {
      Function& function = functions[outer.index];
      function.lines = i + 2 - function.first_line;
    }
  }
  return functions;
}

// Finds the functions of a C++, CUDA or Python file; none in others.
std::vector<Function> Functions(const SourceFile& file) {
  if (file.path.ends_with(".py")) return PythonFunctions(file);
  const bool is_cpp =
      file.path.ends_with(".h") || file.path.ends_with(".cc") || file.path.ends_with(".cu");
  return is_cpp ? CppFunctions(file) : std::vector<Function>();
}

TEST(Functions, AreShortEnoughToReadAtOnce) {
  std::set<std::string> found;
  size_t cpp = 0, python = 0;
  for (const SourceFile& file : ProgramFiles()) {
    for (const Function& function : Functions(file)) {
      ++(file.path.ends_with(".py") ? python : cpp);
      if (function.lines <= kMostFunctionLines) continue;
      const std::string name = file.path + " " + function.name;
      found.insert(name);
      EXPECT_TRUE(kLongFunctions.contains(name))
          << file.path << ":" << function.first_line << ": " << function.name << " has "
          << function.lines << " lines";
    }
  }
  EXPECT_GT(cpp, 6000u);
  EXPECT_GT(python, 300u);
  for (const auto& [name, reason] : kLongFunctions)
    EXPECT_TRUE(found.contains(name)) << name << " is short: take it off the list";
}

TEST(Functions, AreMeasuredFromSignatureToBrace) {
  const SourceFile file{"a.cc",
                        {"int A::F(int a,",
                         "         int b) {",
                         "  if (a) {",
                         "    return 1;",
                         "  }",
                         "  return b;",
                         "}",
                         "",
                         "class B {",
                         "  void G() {",
                         "    H();",
                         "  }",
                         "};",
                         "",
                         "double D() {",
                         "  return 1;",
                         "}",
                         "",
                         "static const int& S() {",
                         "  do (void)D();",
                         "  while (false);",
                         "}",
                         "",
                         "TYPED_TEST(Suite,",
                         "           Name) {",
                         "  D();",
                         "}"}};
  const std::vector<Function> functions = Functions(file);
  ASSERT_EQ(functions.size(), 5u);
  EXPECT_EQ(functions[0].name, "A::F");
  EXPECT_EQ(functions[0].lines, 7u);
  EXPECT_EQ(functions[1].name, "G");
  EXPECT_EQ(functions[1].first_line, 10u);
  EXPECT_EQ(functions[1].lines, 3u);
  EXPECT_EQ(functions[2].name, "D");
  EXPECT_EQ(functions[3].name, "S");
  EXPECT_EQ(functions[4].name, "Suite.Name");
  EXPECT_EQ(functions[4].lines, 4u);
}

TEST(Functions, InPythonAreMeasuredFromDefToTheLastLine) {
  const SourceFile file{"a.py",
                        {"\"\"\"A script.",
                         "def no_function(): it is text.",
                         "\"\"\"",
                         "class A:",
                         "    @property",
                         "    def first(self):",
                         "        \"\"\"A text.\"\"\"",
                         "        return self.b",
                         "",
                         "    async def second(",
                         "        self,",
                         "    ):",
                         "        text = f\"\"\"",
                         "name: text",
                         "\"\"\"",
                         "# A comment ends nothing.",
                         "        def inner(): return text",
                         "",
                         "        return inner()",
                         "",
                         "# The next one.",
                         "def third():",
                         "    return 3",
                         "",
                         "third()"}};
  const std::vector<Function> functions = Functions(file);
  ASSERT_EQ(functions.size(), 4u);
  EXPECT_EQ(functions[0].name, "first");
  EXPECT_EQ(functions[0].lines, 3u);
  EXPECT_EQ(functions[1].name, "second");
  EXPECT_EQ(functions[1].first_line, 10u);
  EXPECT_EQ(functions[1].lines, 10u);
  EXPECT_EQ(functions[2].name, "inner");
  EXPECT_EQ(functions[2].lines, 1u);
  EXPECT_EQ(functions[3].name, "third");
  EXPECT_EQ(functions[3].lines, 2u);
}

}  // namespace
}  // namespace troupe
