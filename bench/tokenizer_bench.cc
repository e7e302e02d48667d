// Measures the bytes per second that a tokenizer.json encodes on one core. Standard input names the
// files, one per line; each is a document, encoded from memory with an empty cache.
#include <fmt/format.h>

#include <ctime>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file_system.h"
#include "base/flag_parser.h"
#include "base/text/utf8.h"
#include "data/tokenizer_file.h"

namespace troupe {
namespace {

constexpr int kRepetitions = 5;

// CPU time of the one working thread equals wall-clock time on an otherwise idle machine.
double CpuSeconds() {
  timespec now{};
  TROUPE_CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void Run(const std::string& path) {
  PosixFileSystem files;
  std::vector<std::string> documents;
  size_t bytes = 0;
  for (std::string name; std::getline(std::cin, name);) {
    auto text = ReadFile(files, name, int64_t{1} << 30, SymbolicLinks::kFollow);
    TROUPE_CHECK_OK(text.status());
    ReplaceIllFormed(*text);
    bytes += text->size();
    documents.push_back(*std::move(text));
  }
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const auto tokenizer = OpenTokenizerFile(files, path, 0);
    TROUPE_CHECK_OK(tokenizer.status());
    std::vector<int32_t> ids;
    const double begin = CpuSeconds();
    size_t tokens = 0;
    for (const std::string& document : documents) {
      ids.clear();
      TROUPE_CHECK_OK((*tokenizer)->Encode(document, ids));
      tokens += ids.size();
    }
    fmt::print("{{\"bytes\":{},\"tokens\":{},\"cpu_seconds\":{}}}\n", bytes, tokens,
               CpuSeconds() - begin);
  }
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  std::vector<std::string> arguments;
  troupe::FlagParser parser({.name = "troupe-bench-tokenizer",
                             .usage = "troupe-bench-tokenizer TOKENIZER.json < paths",
                             .summary = "Measures how fast a tokenizer encodes the files that "
                                        "standard input names, one per line, on one core."});
  parser.AddArguments(1, 1, &arguments);
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  troupe::Run(arguments[0]);
  return 0;
}
